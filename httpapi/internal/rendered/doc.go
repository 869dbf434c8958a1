// Package rendered caches response bodies in encoded form, plain and compressed with gzip. A body may contain the field
// generatedAt, the time of the response in whole seconds. In a later second only this time is replaced; the rest is
// neither encoded nor compressed again:
//
//	Encoded --New--> Body --At(second, acceptsGzip)--> bytes for one response
//	text --Undated--> Body --Send--> response to a request of net/http
//
// Terms:
//
//	form:     a body as plain text or compressed with gzip
//	undated:  without generatedAt
//	hole:     a part of a body whose content differs between responses; only the rest is compressed in advance
//
// The ETag of a body does not depend on generatedAt. The bytes of a response never change, so a connection can still
// write an old body while other requests get a newer one. A Cache stores a limited number of bodies, or other values,
// until they expire. A File answers requests for a public file, such as the API specification, with methods, limits,
// headers and errors. Start reading at Body.
package rendered
