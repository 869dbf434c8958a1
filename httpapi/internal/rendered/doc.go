// Package rendered keeps a response body in encoded form, plain and compressed with gzip, so that a request only copies
// it. A body may contain the field generatedAt, the time of the response in whole seconds. In a later second the body
// is copied with the new time, without encoding or compressing it again:
//
//	Encoded --New--> Body --At(second, acceptsGzip)--> bytes for one response
//	text --Undated--> Body --Send--> response to a request of net/http
//
// The ETag of a body does not depend on generatedAt. Bodies are immutable, so a connection can still write an old one
// while requests get a newer one. A Cache keeps a bounded number of bodies, or other values, until they expire. Start
// reading at Body.
package rendered
