// Package admin is the management API of a running node: JSON over HTTP on a Unix socket, for the command tasard admin.
// Unknown JSON fields are errors. The table in operations.go lists the operations, with their paths and the types of
// requests and responses; Server and Client share it. To add an operation, add a row to the table and register a
// function in Server.Handler.
//
// Terms:
//
//	operator:     a person who administers the node, with the command tasard admin
//	source:       a web page or file from which the node reads rates; "manual" is the source of an operator's rates
//	observation:  a rate as read from a source, before the node checks it
//	side:         the buy price or the sell price of a rate
//	quarantine:   suspicious observations, which are not published unless an operator releases them
//
// Access control is the file mode of the socket, 0600: a user who can open the socket can call every operation. The log
// names the author of a change as "ana (root)": the name in the request, and the operating-system user at the other end
// of the socket.
//
// Decisions of this package:
//
//   - With --smtp-addr log the node prints login codes, so every reader of its output can sign in as any user. API
//     keys therefore cannot be required with this setting.
//   - Accounts are named by number or e-mail address. Lists mask the addresses;
//     ShowAccount does not.
//   - A manual rate takes precedence over collected rates, but the same checks apply. A suspicious value is
//     quarantined: an operator must release the value before it is published. A manual value that can never be
//     published, such as zero, is rejected instead.
//   - ServeMetrics serves metrics and health to every client, without the causes of
//     failures. Profiles and operations are only at the socket.
//
// The package does not import the other parts of a node. Config contains functions for sources, cluster, readiness and
// metrics.
package admin
