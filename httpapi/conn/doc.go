// Package conn owns the connections of a server: their limits, deadlines, TLS, the checks of raw requests, load
// shedding and their end at a shutdown. It knows no routes and no answers. It wraps the listener of a
// fasthttp.Server, which then serves *Conn. For each request the server's handler calls Conn.BeginRequest,
// Malformed, Conn.RequestArrived and, for sampled ones, Conn.Admit.
//
//	listener.go       accepts under a cap, and retries when descriptors or memory are short
//	clientlimit.go    the limit of one client; reserve.go: connections beyond the cap, to answer 503 and health
//	firstrequest.go   the first request is awaited in a small buffer, so that slow clients cost little
//	deadline.go       deadlines are armed only when they matter
//	transport.go      reads and writes; head and body of a long answer leave in one system call
//	tls.go            TLS, below the transport
//	express.go        requests that the server need not read
//	guard.go          malformed requests that the library accepts; framing.go: the same from the raw bytes
//	loadshedder.go    load shedding; slots.go, scheduling.go, socketinfo_*.go: its parts
//	shutdown.go       stops accepting, lets requests end, closes idle connections
//
// # Load shedding
//
// The aim is goodput: as many answers as the machine can give, each soon, while more is asked for than it can do.
// The signal is queue age: how long a request has lain unread in its socket (TCP_INFO), as in CoDel. One request in
// sixteen of a connection is sampled; that is all that happens while requests are on time. When most samples of a
// window of 25 ms were older than 10 ms, twice in a row, three things begin:
//
//   - Admission slots. Only about 64 connections are served at a time, so that their memory stays in the
//     processors' caches. The others wait and are not read further: the backlog stays with the clients' kernels. A
//     slot is passed on after 512 requests, when its connection has nothing to do, and when its request waits for
//     something else, such as a disk.
//   - Priorities. Requests with keys come before anonymous ones, costly ones last; among equals the newest is
//     served first (adaptive LIFO), since its client is the most likely still to wait. Health is always answered at
//     once.
//   - Shedding. Requests older than the maximum queue age of their priority, 50 to 150 ms, are refused, at most one
//     for 64 answers, because a refusal costs most of what an answer does. If half of the slots are idle there was
//     a pause and no overload, and they are served.
//
// It ends after 40 windows without a late request.
//
// While every processor is busy, the Go scheduler polls the network only every 10 to 20 ms, and new requests would
// wait as long. So busy connections yield in scheduling rounds: all wait until a byte has come back through a pipe,
// behind every request that arrived before it. A long round (garbage collection, other processes) halves the number
// of slots; short ones restore it by a quarter each.
//
// Measured on half a processor under 90,000 requests a second, in two pairs of runs: 708,000 and 573,000 answers of
// 200 with it, 511,000 and 390,000 without.
package conn
