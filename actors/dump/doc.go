// Package dump formats records of the log as lines of JSON for people. It shows the fields of the events, named as in
// the HTTP API.
//
// It shows no secrets: e-mail addresses are masked, and digests are shortened. For an unknown kind of record, Record
// returns record.ErrUnknown (exported by package actors as ErrUnknownRecord). The format may change; programs should
// read the log through package wal.
package dump
