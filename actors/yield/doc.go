// Package yield lets other goroutines run during a long computation, such as the replay of a log.
//
// On a single processor runtime.Gosched is not enough. The goroutine that calls it runs again before the runtime polls
// the network, because a busy runtime polls only every ten milliseconds. Requests that have arrived wait until then.
// Yielder.Yield therefore sends a byte through a pipe and waits until the network poller delivers it. This takes two
// system calls and a few microseconds. Call Yield several times per millisecond, but not for every record.
package yield
