// Package core is the part of a node that answers clients: the actors with their
// log, and the HTTP server with pages and documents. Package node adds listeners,
// the management API, a certificate, mail, a cluster, collectors and metrics;
// httpapi/apitest adds a clock and faults. A real node and a node in a test
// therefore give the same answers.
//
// Package core does not import mail, clusters, collectors and metrics, so that
// tests of clients need not build them.
package core
