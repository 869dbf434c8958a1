// Package node is a whole node as a value: what tasard serve, demo and any Go
// program of yours open. Open takes one Config and gives a Node that answers
// callers over HTTP, its operator over a Unix socket and this program in memory;
// Close ends it in order.
//
//	n, err := node.Open(ctx, node.Config{Dir: "data", HTTP: node.HTTP{Listen: ":8080"}})
//
// The parts, in the order in which they begin: certificate, listeners, mail,
// the cluster where there is one, the actors with their log, management,
// collectors. Each has a file of its own:
//
//	config.go     what a node is made of, and what its zero values mean
//	node.go       the order of beginning and end, readiness, failure
//	front.go      the listener and the HTTP server; the access log
//	core/         actors, pages and documents, operator: what answers
//	tls.go        the certificate of the HTTP side
//	mail.go       how login codes leave; secrets in files
//	collect.go    what asks the institutions, and who in a cluster does
//	cluster.go    joining and leaving the other nodes; cluster_with.go is left out
//	              by the build tag nocluster, cluster_without.go stands for it
//	health.go     what the operator is told: readiness, sources, cluster
//	reload.go     what may change while a node runs
//	reference.go  institutions, currencies and definitions of sources
//	metrics/      what Prometheus reads
//
// Decisions:
//
//   - A node may be opened while its log is still read: callers get 503 until
//     Ready. It ends by itself (Done, Err) when a write failed, since going on
//     could lose data: open it again.
//   - Secrets are files of one line that only their owner can read or write;
//     those in Config.Credentials are guarded by the service manager.
//   - At the end what collects stops first: nothing reaches a system that stops.
//     With HTTP.DrainDelay every answer and /readyz say for so long that the node
//     leaves; then nobody is accepted any more.
//   - Reload takes all of what the files say, or nothing. What rates say of their
//     sources, and which institutions there are, is read at the opening: it is in
//     answers that are kept, and in the log.
//   - Made-up rates of a demo are never served as real ones: a directory that
//     holds some ends a node that does not know their sources.
//
// The package knows nothing of flags, terminals, exit codes, signals or the
// environment: cmd does. Errors name the field of Config that they are about.
package node
