// Package load generates an HTTP load on one server and counts and times the responses. While it measures it allocates
// nothing, so that its own garbage collector does not distort latencies.
//
// A Generator has its settings, a RequestSource, and Results. It works in one of two ways:
//
//	closed loop, Rate 0    each client sends a request when it has the response to its previous one; finds the capacity
//	open loop              requests become due at a constant rate; latency is measured from the due time
//
// In an open loop, a stall of the server therefore adds to the latency of all requests that become due during the stall
// ("no coordinated omission").
//
// A Generator counts every request: it has a response, or was lost (its connection ended, or there was no response at
// the end). The package needs Linux.
package load
