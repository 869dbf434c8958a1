// Package yield lets other goroutines run during long work, such as reading a file.
//
// On a single processor runtime.Gosched is not enough: the yielding goroutine runs again before the runtime polls the
// network, which it does only every ten milliseconds otherwise. Network waits for the poller itself, by a byte
// through a pipe. That costs a few microseconds and two system calls: yield every fraction of a millisecond, not for
// every record.
package yield
