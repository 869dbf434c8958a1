// Package core is the part of a node that answers: the actors with their log,
// the HTTP server with pages and documents, and the operator's side, put
// together once. node adds what a node in the world has besides (listeners, a
// certificate, mail, a cluster, collectors, metrics); httpapi/apitest puts a
// clock and faults around it. So what the one answers, the other does.
//
// It imports nothing of mail, clusters, collectors and metrics: a test of a
// client is not to build them.
package core
