// Package datadir opens a data directory for commands that work without a node.
// It checks that the directory exists, explains one that is in use or damaged,
// and replays its log.
//
// Errors carry exit codes and say what an operator can do.
package datadir
