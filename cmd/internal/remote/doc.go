// Package remote calls a running node through its management socket. It finds the
// node that the flags name, calls operations, and explains errors.
//
// Errors carry exit codes: 69 when no node is running, and for an error response
// the code of its reason.
package remote
