// Package backup has the commands that work on the files of a data directory: tasard backup, tasard restore, and
// tasard log, which verifies, prints and repairs a log.
//
// A backup of a running node comes through the node's management socket. A backup of a directory without a running
// node is read from its files. Both are verified while they are copied and again when they are complete. The commands
// never replace an existing file, and never restore to a directory that is not empty. Package wal defines the format.
package backup
