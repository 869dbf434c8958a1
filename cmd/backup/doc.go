// Package backup has the commands that work on the files of a data directory: tasard backup, tasard restore, and
// tasard log, which verifies, prints and repairs a log.
//
// A backup is a snapshot that a running node takes and sends through its management socket. If no node is running, it
// is the newest snapshot of the directory. Both kinds are verified while they are copied, and again when they are
// complete. No command replaces an existing file. restore writes only to a new or empty directory. Package wal
// defines the format of backups.
package backup
