// Package datadir opens a data directory for commands that work without a running node, and calls the node that runs on
// it through its management socket.
//
// It checks that the directory exists and replays its log. If a directory cannot be opened, it explains why: a node
// uses the directory, or the log is damaged. Errors have exit codes and say what an operator can do.
package datadir
