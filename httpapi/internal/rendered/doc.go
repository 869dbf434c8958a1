// Package rendered keeps a response body in encoded form, plain and compressed with gzip, so that a request only has to
// copy it. A body may have the field generatedAt, the time of the response in whole seconds. In a later second the body
// is copied and the copy gets the new time; it is neither encoded nor compressed again:
//
//	Encoded --New--> Page --Body(second, acceptsGzip)--> bytes for one response
//
// The ETag of a page does not depend on generatedAt. Bodies are immutable, so that a connection can still write an old
// one while requests get a newer one. Start reading at Page.
package rendered
