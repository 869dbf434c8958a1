// Package file answers requests for public files that the node generates, such as the API specification and the history
// as CSV: methods, limits, headers and errors.
//
// The contents are bodies of package rendered, which has the ETags and compresses. Responses share a body: many slow
// readers of a large file need its memory once. An error has the form of API errors.
package file
