// Package dump formats records of the log as lines of JSON for people. Fields have the names of the API.
//
// It shows no secret: e-mail addresses are masked, and of digests only the beginning is shown. A record of an unknown
// kind is record.ErrUnknown, which actors exports as ErrUnknownRecord. The format may change; programs read the log
// through package wal.
package dump
