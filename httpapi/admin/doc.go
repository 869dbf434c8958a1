// Package admin is the management API of a running node: strict JSON over HTTP on a
// Unix socket, for the command tasard admin. Server and Client share the table of
// operations in operations.go, which defines the paths and the types of requests and
// responses.
//
// To add an operation, add it to operations.go and register its function in
// Server.Handler.
//
// Access control is the file mode of the socket, 0600: a user who can open the socket can call every operation. The log
// names the author of a change as "ana (root)": the name in the request, and the operating-system user at the other end
// of the socket.
//
// Decisions of this package:
//
//   - --smtp-addr log prints login codes, and every reader of the output can use them to
//     sign in as any user. So --smtp-addr log can't be combined with required API keys.
//   - Accounts are named by number or e-mail address. Lists mask the addresses;
//     ShowAccount does not.
//   - A manual rate wins over collected rates, and passes the same checks. A suspicious
//     value is quarantined: an operator must release it before it is published. Manual
//     values that can never be published, such as zero, are rejected instead.
//   - ServeMetrics serves metrics and health to every client, without the causes of
//     failures. Profiles and operations are only at the socket.
//
// The package does not know the composition of a node: its Config contains functions for sources, cluster, readiness
// and metrics.
package admin
