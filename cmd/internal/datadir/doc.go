// Package datadir is a data directory that a command works on without a node:
// whether there is one, what to do about one that is held or damaged, and Open,
// which replays its log and holds it until Close.
//
// Errors carry their exit codes and say what an operator can do.
package datadir
