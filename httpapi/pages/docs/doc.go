// Package docs serves the pages for developers of clients:
//
//	/docs             the guide, which works without JavaScript (docs.go; files/guide.*.html)
//	/docs/reference   Swagger UI with the /openapi.json of this node (files/reference.*)
//
// The same paths exist under /en. files/snippets has a complete program in each programming language; a test of package
// cmd runs them.
//
// The folder vendored has Swagger UI as published, compressed, with its licenses. "make docs-assets" fetches the pinned
// version. The Content-Security-Policy of the reference also allows img-src data:, because the style of Swagger UI
// contains images. Swagger UI keeps a key that is typed into it only in memory.
package docs
