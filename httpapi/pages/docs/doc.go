// Package docs serves the pages for integrators:
//
//	/docs             the guide, which works without JavaScript (docs.go, tables.go; files/guide.*.html)
//	/docs/reference   Swagger UI with the /openapi.json of this node (files/reference.*)
//
// The same paths exist under /en. files/snippets has a complete program for each language; a test of package cmd runs
// them.
//
// vendored has Swagger UI as published, compressed, with its licenses; "make docs-assets" fetches the pinned version.
// It runs under the policy of all pages, except that its style contains images (img-src data:). A key that is typed
// into it is kept in memory only.
package docs
