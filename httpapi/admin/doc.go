// Package admin is the operator's side of a running node: HTTP with strict
// JSON over a Unix socket, for tasard admin alone. Server answers, Client asks;
// both read the same table of operations (operations.go), so that a route, what
// is sent and what comes back are said once.
//
// Where to add an operation: a line in operations.go with the types of what is
// sent and answered, and its function in Server.Handler.
//
// Who may open the socket may do everything. It has mode 0600 before it has a
// name; one that nobody answers is replaced, one that is answered is refused,
// and it is removed at the end. Who made a change is the user at the other end,
// as the operating system knows it; a name that is given stands before it:
// "ana (root)".
//
// What was decided here:
//
//   - --mail=log prints login codes, so whoever reads the output can sign in as
//     anybody: it and an announcement of required keys exclude each other.
//   - An e-mail address is what an account is known by. Everything that is
//     listed masks it; one account, shown, has it as the log has.
//   - A manual rate goes through the rules as every other one (I3); what can
//     never be published, as a zero, is refused and not held.
//   - Public answers what may be shown to whoever reaches it: metrics and
//     health, without causes. Profiles and all changes stay at the socket.
//
// The package knows the engine and nothing of how a node is made: node gives it
// what it tells of sources, cluster, health and metrics (Config).
package admin
