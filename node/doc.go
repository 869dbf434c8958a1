// Package node runs a whole node inside a Go program, such as the commands tasard serve and tasard demo. Open takes a
// Config and returns a Node. Clients use the node over HTTP, its operator over a Unix socket, and the program through
// methods. Close stops it.
//
//	n, err := node.Open(ctx, node.Config{Dir: "data", HTTP: node.HTTP{Listen: ":8080"}})
//
// The parts start in this order: certificate, listeners, mail, cluster, actors with
// their log, management, collectors. The files:
//
//	config.go     the configuration and its defaults
//	node.go       opens the parts of a node in their order; start, stop, readiness, failure
//	server.go     listener and HTTP server
//	core/         the parts that answer clients: actors, pages
//	tls.go        the certificate of the HTTP server, its reload, and one of an ACME authority (acme/ gets it)
//	mail.go       how login codes are sent; secrets in files
//	collect.go    collecting: fetching rates from sources, in a cluster by one node at a time
//	cluster.go    joining and leaving a cluster
//	health.go     the state of the node for the operator; the last backup and the last reload
//	reference.go  institutions, currencies, and definitions of sources: how to read their rates; their secrets
//	metrics/      metrics for Prometheus
//
// Guarantees:
//
//   - After a failed write a node stops by itself (Node.Done, Node.Err), because
//     continuing could lose data. Open it again.
//   - A secret is a file of one line. The node rejects a file that other users can
//     access. Only files in the directory Config.Credentials are exempt, because
//     systemd protects that directory.
//   - A node does not serve simulated rates as real ones: it rejects a data directory
//     with rates of demo sources outside its catalogue.
//
// The package does not use flags, terminals, exit codes, signals or the environment; package cmd does. Errors name a
// field of Config.
package node
