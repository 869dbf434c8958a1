// Package dump formats records of the log as lines of JSON for people. The fields are those of the events, in the
// spelling of the HTTP API.
//
// It shows no secrets: e-mail addresses are masked, and digests are shortened. For a record of an unknown kind Record
// returns record.ErrUnknown, which package actors exports as ErrUnknownRecord. The format may change; programs should
// read the log through package wal.
package dump
