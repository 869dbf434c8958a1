// Package docs is what an integrator reads: a guide, complete without JavaScript, and the interactive reference. It knows neither rates nor
// accounts; what differs from node to node (limits, the end of anonymous access, the address) it is told.
//
//	/docs             the guide: quick starts, operations, limits, errors, transition, attribution (docs.go; files/guide.*.html)
//	/docs/reference   Swagger UI, reading /openapi.json of this node; requests that are tried go to this node (files/reference.*)
//
// The same under /en.
//
// # Quick starts
//
// files/snippets has one program for each language, whole: it asks, tells what was refused and why, and keeps rates as text or as exact
// decimals. {{service}} stands for the address of the service. A test of the root takes each out of the page and runs it against a node.
//
// # Swagger UI
//
// vendored has the program and its style as their makers publish them, compressed, with their licences; make docs-assets fetches the
// pinned version. Nothing of it is loaded from elsewhere, and it runs under the policy of all pages but for pictures that its style
// brings along (img-src data:). A key that is typed into it stays in the memory of the page: nothing is stored, a reload forgets it.
package docs
