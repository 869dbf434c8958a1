// Package backup is the commands that work on a data directory as files:
// tasard backup and restore, and tasard log, which verifies, prints and, as the
// last resort, cuts a log.
//
// A backup of a running node comes through its management socket, one of a
// directory at rest from its files; both are verified while they are copied and
// again when they are whole. Nothing is replaced: a name that is taken, and a
// directory that is not empty, are refused. The format is package wal's.
package backup
