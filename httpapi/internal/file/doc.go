// Package file answers requests for public files that the node generates, such as the API specification and the history
// as CSV. It handles methods, limits, headers and errors, which have the form of API errors.
//
// The content of a file is a rendered.Body, which contains the compressed form and the ETag. All responses share the
// body, so a large file is in memory only once, however many slow clients download it.
package file
