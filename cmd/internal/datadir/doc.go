// Package datadir opens a data directory for commands that work without a running node.
//
// It checks that the directory exists, replays its log, and explains why a directory cannot be opened: a node uses
// it, or it is damaged. Errors have exit codes and say what an operator can do.
package datadir
