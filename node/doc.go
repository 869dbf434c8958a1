// Package node runs a whole node as a value: tasard serve, tasard demo and any Go
// program open one. Open takes a Config and returns a Node that serves callers over
// HTTP, its operator over a Unix socket, and this program in memory. Close stops it
// in order.
//
//	n, err := node.Open(ctx, node.Config{Dir: "data", HTTP: node.HTTP{Listen: ":8080"}})
//
// The parts, in the order in which they start: certificate, listeners, mail, cluster,
// actors with their log, management, collectors. Each has a file:
//
//	config.go     the configuration and its defaults
//	node.go       start, stop, readiness, failure
//	server.go     listener and HTTP server
//	core/         actors, pages and documents, management: the part that answers
//	tls.go        the certificate of the HTTP server
//	mail.go       how login codes are sent; secrets in files
//	collect.go    collecting from the sources, in a cluster by one node at a time
//	cluster.go    joining and leaving a cluster; the build tag nocluster replaces
//	              cluster_enabled.go by cluster_disabled.go
//	health.go     state of the node for the operator: readiness, sources, cluster
//	reload.go     files that may change while a node runs
//	reference.go  institutions, currencies and definitions of sources
//	metrics/      metrics for Prometheus
//
// Guarantees:
//
//   - Open returns while the log is still being read: requests get 503 until Ready.
//     A node ends by itself (Done, Err) when a write failed, because going on could
//     lose data; open it again.
//   - Secrets are files of one line that only their owner can access. The service
//     manager guards those in Config.Credentials.
//   - Close stops collecting first, so that nothing reaches a stopped system. With
//     HTTP.DrainDelay it first announces the stop in every answer and in /readyz.
//   - Reload uses all files or, on any error, none. Descriptions of sources in rates
//     and the set of institutions are read only by Open, because they are part of
//     answers and of the log.
//   - Made-up rates of a demo are never served as real ones: a node refuses a
//     directory with rates of unknown demo sources.
//
// The package does not know flags, terminals, exit codes, signals or the
// environment; package cmd does. Errors name the field of Config that they concern.
package node
