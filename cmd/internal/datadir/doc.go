// Package datadir opens a data directory for commands without a running node. It also calls the node running on a
// directory, through its management socket.
//
// It checks that the directory exists and replays its log. If that fails, it explains the reason: a node uses the
// directory, or the log is damaged. Errors have exit codes and advice for the operator.
package datadir
