// Package conn owns the connections of a server: their limits, deadlines, TLS, the checks of raw requests, load
// shedding and shutdown. It does not know routes or answers. It wraps the listener of a
// fasthttp.Server, which then serves *Conn. For each request the server's handler calls Conn.BeginRequest,
// Malformed, Conn.RequestArrived and, for sampled ones, Conn.Admit.
//
//	listener.go       accepts under a cap, and retries when descriptors or memory are short
//	clientlimit.go    the limit of one client; reserve.go: connections beyond the cap, to answer 503 and health
//	firstrequest.go   the first request is awaited in a small buffer, so that slow clients cost little
//	deadline.go       deadlines are armed only when they matter
//	transport.go      reads and writes; head and body of a long answer leave in one system call
//	tls.go            TLS, below the transport
//	express.go        requests that are answered before the library reads them
//	guard.go          refuses malformed requests that the library accepts; framing.go: the same from the raw bytes
//	loadshedder.go    load shedding; slots.go, scheduling.go, socketinfo_*.go: its parts
//	shutdown.go       stops accepting, lets requests end, closes idle connections
//
// # Load shedding
//
// The aim is goodput: under overload, to give as many timely answers as the machine can. The signal is queue age,
// the time for which a request lay unread in its socket (TCP_INFO), as in CoDel. While requests are on time, only
// one request in sixteen of a connection is sampled. When most samples in each of two consecutive windows of 25 ms
// are older than 10 ms, three things begin:
//
//   - Admission slots. Only about 64 connections are served at a time, so that their memory stays in the
//     processors' caches. The others wait, and no more requests are read from them. A slot is passed on after 512
//     requests, when its connection has no next request, and when its request waits for something else, such as a
//     disk.
//   - Priorities. Requests with keys come before anonymous ones, costly ones last; among equals the newest is
//     served first (adaptive LIFO), since its client is the most likely still to wait. Health is always answered at
//     once.
//   - Shedding. Requests older than the maximum queue age of their priority, 50 to 150 ms, are refused, at most one
//     for 64 answers, because a refusal costs nearly as much as an answer. If half of the slots are idle, there was
//     a pause rather than overload, and requests are served up to 100 ms later.
//
// Shedding ends after 40 consecutive windows in which no request waited for a slot.
//
// While every processor is busy, the Go scheduler polls the network only every 10 to 20 ms, and new requests would
// wait as long. So busy connections yield in scheduling rounds: all wait until a byte has come back through a pipe,
// after every request that arrived before it. A long round (garbage collection, other processes) halves the number
// of slots; each short one raises it by a quarter.
//
// Measured on half a processor under 90,000 requests a second, in two pairs of runs: 708,000 and 573,000 answers of
// 200 with it, 511,000 and 390,000 without.
package conn
