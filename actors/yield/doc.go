// Package yield lets other goroutines run during a long computation, such as replaying a log.
//
// On a single processor runtime.Gosched is not enough: the yielding goroutine runs again before the runtime polls the
// network, and a busy runtime does that only every ten milliseconds. Network waits for the poller itself, by sending
// a byte through a pipe. This takes a few microseconds and two system calls, so yield every fraction of a
// millisecond, not for every record.
package yield
