// Package admin is the management API of a running node: HTTP with strict JSON over
// a Unix socket, for tasard admin. Server and Client share the table of operations
// (operations.go), which defines paths, requests and answers.
//
// To add an operation, add a line to operations.go with the types of its request
// and answer, and its function to Server.Handler.
//
// Every user that can open the socket can call every operation. The socket has mode
// 0600 before it has a name. Listen replaces one that no process listens on, and
// refuses one that is in use. The author of a change is the user at the other end,
// as the operating system reports it, after the name that the request gives:
// "ana (root)".
//
// Decisions of this package:
//
//   - --mail=log prints login codes, with which any reader of the output can sign in
//     as any user. Therefore it can't be combined with required keys.
//   - An account is identified by its e-mail address. Lists mask it; the details of
//     one account show it.
//   - A manual rate goes through the rules like every other observation. Values that
//     can never be published, such as zero, are refused and not quarantined.
//   - ServeMetrics serves metrics and health without causes to any client. Profiles
//     and all changes are only at the socket.
//
// The package does not know how a node is composed: its Config holds functions for
// sources, cluster, readiness and metrics.
package admin
