// Package remote is a running node that a command speaks to through its
// management socket: how it is named by flags, asked for an operation or a list,
// and what to do when it does not answer.
//
// Errors carry their exit codes: 69 where no node is, and for a refusal the one
// of its reason.
package remote
