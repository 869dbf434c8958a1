// Package docs serves the pages for integrators:
//
//	/docs             the guide, which works without JavaScript (docs.go, tables.go; files/guide.*.html)
//	/docs/reference   Swagger UI with the /openapi.json of this node (files/reference.*)
//
// The same paths exist under /en. files/snippets has a complete program for each language; a test of package cmd runs
// them.
//
// vendored has Swagger UI as published, compressed, with its licenses; "make docs-assets" fetches the pinned version.
// Its Content-Security-Policy is that of all pages, and allows img-src data: in addition, because its style contains
// images. A key that is typed into it is only in memory.
package docs
