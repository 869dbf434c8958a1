// Package cmd is the command tree of tasard, the Dominican exchange-rate node:
// it collects what Dominican institutions publish, keeps every current rate in
// memory, writes each fact to a log before it counts, and answers /v1 over HTTP.
//
// Run is the one place where the real clock, chance, the environment and the
// process's exit code are touched; everything that it calls can be called by a
// test. A command is a file here, a large one a folder:
//
//	serve.go, notify.go  run the node of package node; what the service manager is told
//	demo.go, mock.go     a node with made-up rates, to look at and for tests of clients
//	mcp.go               tools for language models, which ask a node over HTTP
//	export.go, config.go, man.go, completion.go, version.go
//	backup/              backup, restore, log: the data directory as files
//	doctor/              doctor: everything around a node, and a rehearsal of required keys
//	intake/              import, and serve --import: files of observations, documents of sources
//	operator/            admin and ping: a running node, through its socket
//	sources/             sources: list, check, parse
//
// What commands share lies in internal, each part a word: command is the row
// that every command is made of, setting what a flag, a variable and a line of
// the file set alike, exit the codes, terminal what people and logs are told,
// process what a command has of the world, datadir a data directory at rest,
// remote a running node, input a file that may never end. Imports run one way:
// cmd, its folders, internal; within internal from remote and command through
// setting and process to terminal and exit.
//
// Where to add a command: a row (command.Command) in a file of its own, and its
// name in newRoot. The golden files in testdata have the help of every command,
// and what each says to bad input; make golden writes them.
//
// What the decisions register left open was decided here:
//
//   - O7: keys of serve are of the live environment, those of demo of the test
//     one (K4). The demo has no limits unless asked (L10).
//   - O13: SIGHUP has serve read its files again (Node.Reload). What is wrong with
//     them goes to the log, and the node goes on as before.
//   - O14: a stop begins with a word to everybody: the service manager, /readyz,
//     each answer. --drain-delay is how long that is all; then nobody is accepted
//     any more.
//   - O15: the watchdog of a service manager hears from a node whose actors
//     answer. A slow disk or failing sources are told elsewhere: a restart would
//     not cure them.
package cmd
