// Package file answers requests for public files that the node generates, such as the API specification and the history
// as CSV: methods, ETag, compression, limits, headers and errors.
//
//	text --New--> Content (compressed once) --File.ServeHTTP--> 200, 304, or an API error
//
// A Content is immutable, and responses share it: many slow readers of a large file need its memory once.
package file
