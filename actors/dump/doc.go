// Package dump shows records of the log to people, each as one line of JSON, under the names that the API uses.
//
// It shows no secret: e-mail addresses are masked, and of the digests of keys and sessions only the beginning is shown. It
// reads what package actors writes and knows no actor; a record of an unknown kind is record.ErrUnknown, which actors
// exports as ErrUnknownRecord. The form is for people and may change; programs read the log through package wal.
package dump
