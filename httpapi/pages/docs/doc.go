// Package docs serves the pages for developers of clients:
//
//	/docs             the guide, which works without JavaScript (docs.go; files/guide.*.html)
//	/docs/reference   Swagger UI with the /openapi.json of this node (files/reference.*)
//
// The same paths exist under /en. files/snippets has a complete program in each programming language; a test of package
// cmd runs them.
//
// The folder vendored contains the published Swagger UI, compressed, with its licenses. "make docs-assets" fetches the
// pinned version. The reference's Content-Security-Policy also allows img-src data:, because Swagger UI's style
// contains images. Swagger UI keeps an entered key only in memory.
package docs
