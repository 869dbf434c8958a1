// Package remote calls a running node through its management socket. It finds the node that --data or --admin-socket
// selects, calls operations of package httpapi/admin, and explains errors.
//
// Errors have exit codes. If no node is running, the exit code is 69. If the node returns an error response, the exit
// code depends on the error code in the response.
package remote
