// Package cmd is the command tree of tasard, the Dominican exchange-rate node.
//
// Run is the only place that uses the real clock, random numbers, environment
// and standard streams; a test runs every command with its own. A command is a
// file here, or a folder if it is large:
//
//	serve.go, notify.go  the node of package node; reports to the service manager
//	demo.go, mock.go     a node with made-up rates, to look at and for tests of clients
//	mcp.go               tools for language models, which call a node over HTTP
//	export.go, config.go, man.go, completion.go, help.go, version.go
//	backup/              backup, restore, log: the data directory as files
//	doctor/              doctor: checks of everything around a node
//	intake/              import, and serve --import: files of observations and documents
//	operator/            admin and ping: a running node, through its socket
//	sources/             sources: list, check, parse
//
// Shared parts are below internal: command is the description of a command,
// setting the flags that variables and a file can set too, exit the exit codes,
// terminal output and logs, process the environment of a command, datadir a data
// directory without a node, remote a running node, input an input file. Imports
// run one way: cmd, its folders, internal; within internal from remote and
// command through setting and process to terminal and exit.
//
// To add a command, write a command.Spec in a new file and add it to newRoot. The
// golden files in testdata hold the help of every command and its answers to bad
// input; make golden writes them.
//
// Decisions of this package:
//
//   - Keys of serve begin with the live prefix, those of demo with the test prefix
//     (decision O7). The demo enforces no quotas by default.
//   - SIGHUP makes serve read its files again (decision O13). Errors are logged, and
//     the node goes on unchanged.
//   - A stop is announced first, to the service manager, in /readyz and in each
//     answer, for the time of --drain-delay (decision O14). Then no connection is
//     accepted.
//   - The watchdog of the service manager is fed while the actors answer (decision
//     O15). A slow disk or failing sources are reported elsewhere, because a restart
//     does not mend them.
package cmd
