// Package cmd is the command tasard, the Dominican exchange-rate node: it collects what
// Dominican institutions publish, keeps every current rate in memory, writes
// each fact to a log before it counts, and answers /v1 over HTTP.
//
// One file for each command. Run is the one place
// where the real clock, chance, the environment and the process's exit code are
// touched; everything it calls can be called by a test.
//
// # The operator's side
//
// A service (service.go) is a node, its HTTP front, its way to send letters and
// its management listener: a Unix socket, HTTP with strict JSON, for tasard
// admin alone (management*.go, admin*.go). What the decisions register left open
// was decided here:
//
//   - O1: who made a change is the user at the other end of the socket, as the
//     operating system knows it; a name given with --by stands before it:
//     "ana (root)". Suspensions, limits and announcements are events with it.
//   - O2: the socket has mode 0600 before it has a name. One that nobody answers
//     is replaced, one that is answered is refused; it is removed at the end.
//   - O3: --mail=log prints login codes on standard output, never into the log.
//     It and an announcement of required keys exclude each other, whichever
//     comes first. With --mail=off keys can be announced; the answer warns.
//   - O4: Link goes to --account-url with both relations (K7); without the flag
//     to the README.
//   - O5: an e-mail address is what an account is known by, so the data directory
//     has it. Everything that is printed masks it, but admin accounts show.
//   - O6: a secret is one line of a file that only its owner can read or write;
//     files in CREDENTIALS_DIRECTORY are guarded by the service manager.
//   - O7: keys of serve are of the live environment, those of demo of the test
//     one (K4). The demo has no limits unless asked (L10).
//   - O8: at the end what collects stops first: nothing reaches a system that stops.
//     A slot that this cuts short is asked for again after the next start.
//   - O9: a manual rate goes through the rules as every other one (I3); what can
//     never be published, as a zero, is refused and not held. Who set it is in the
//     log, as who withdrew, released or rejected.
//   - O10: a document that is imported is of its own days, the newest one too: it
//     says nothing about today, and the same whenever it is read.
//   - O11: what an operator's catalogue file says of a source wins over the
//     source's definition, but for the bounds, which such a file can't say.
//   - O12: how sources are is told at the management socket: /sources for
//     tasard sources list, /metrics for Prometheus.
//   - O13: SIGHUP reads again what can change under a running node: certificate, password of the mail server, how sources are asked and read.
//     All of it or nothing. What rates say of their sources, and which institutions there are, is read at a start: it is in answers that
//     are kept, and in the log.
//   - O14: a stop begins with a word to everybody: the service manager, /readyz, each answer. --drain-delay is how long that is all; then
//     nobody is accepted any more.
//   - O15: the watchdog of a service manager hears from a node whose actors answer. A slow disk or failing sources are told elsewhere: a
//     restart would not cure them.
//   - O16: --metrics-listen offers /metrics, /livez and /readyz over TCP, to whoever reaches it: none of it is secret or changes anything.
//     Profiles stay at the socket. The host must be written, so that nobody is shown everything by leaving it out; an address that other
//     machines reach is taken at its word, with a warning in the log.
//   - O17: metrics are asked for when they are scraped, of those who have the numbers anyway (metrics*.go). Their labels come from closed
//     lists. Their names are kept in a golden file: dashboards and alerts, ours in packaging among them, rely on them.
//   - O18: an access log has a line for an answer, with its request id, and no path, query, key or whole address: what is in it can't be used.
package cmd
