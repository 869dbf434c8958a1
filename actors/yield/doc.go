// Package yield lets others run while something works long: the reading of a file, the deciding of a large refresh.
//
// runtime.Gosched is not enough on a single processor: the goroutine that yields stands in line again before the
// runtime polls the network, which it otherwise does every ten milliseconds only. So Network waits for the network
// poller itself, for a byte of its own in a pipe. A yield costs a few microseconds and two system calls; call it every
// fraction of a millisecond, not for every record.
package yield
