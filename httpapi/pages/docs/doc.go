// Package docs serves the pages for developers of clients:
//
//	/docs             the guide, which works without JavaScript (docs.go; files/guide.*.html)
//	/docs/reference   the reference: Swagger UI with the /openapi.json of this node (files/reference.*)
//
// The same paths exist under /en. files/snippets contains one complete example program for each programming language; a
// test of package cmd runs the programs.
//
// The folder vendored contains the published Swagger UI, compressed, with its licenses. "make docs-assets" downloads
// the pinned version. The Content-Security-Policy of the reference also allows img-src data:, because the style sheet
// of Swagger UI contains images. Swagger UI keeps an API key that a user enters only in memory.
package docs
