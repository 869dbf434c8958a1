// Package cmd is the command tree of tasard, the Dominican exchange-rate node. Run runs the command named in the
// process's arguments.
//
// A command is a file here, or a package below this one if it is large:
//
//	serve.go, systemd.go the node of package node, config check; reports to the service manager, and its sockets
//	demo.go, mock.go     a node with made-up rates: to try it out, and for tests of clients
//	mcp.go               tools for language models, which call a node over HTTP
//	export.go, help.go   export; help, man and version
//	backup/              backup, restore, log: work on the files of a data directory
//	doctor/              doctor: checks of everything around a node
//	intake/              import, and serve --import: import of observations and of saved pages of sources
//	operator/            admin and ping: calls to a running node, through its management socket
//	sources/             sources: list and try the sources from which a node fetches rates
//
// Packages below internal are shared by the commands:
//
//	command   the description of a command; settings: flags that a variable or a file can set too
//	datadir   a data directory, and the node that runs on it
//	process   the environment of a command, and its input file
//	terminal  output and logs         exit     exit codes
//
// Only Run uses the real clock, random numbers, environment and standard streams. Tests run every command with their
// own.
//
// To add a command, write a command.Spec in a new file and add it to newRoot. Golden files in testdata have the help of
// every command and its errors for bad input; make golden writes them.
//
// Decisions of this package:
//
//   - API keys that serve makes begin with the prefix for live keys, those that demo makes with the prefix for test
//     keys. The demo enforces no quotas by default.
//   - On SIGHUP, serve reads its certificates again. It logs errors and continues with the old ones.
//   - Before serve stops, it announces the stop for the time of --drain-delay: to the service manager, in /readyz and
//     in each response. Then it accepts no more connections.
//   - serve sends keep-alives to the watchdog of the service manager as long as the actors, which own the rates,
//     respond. A slow disk or failing sources do not stop the keep-alives, because a restart would not repair them.
package cmd
