// Package conn handles the connections of an HTTP server: connection limits, deadlines, TLS, checks of the raw bytes of
// requests, load shedding and shutdown. It does not know routes.
//
// Listen wraps the listener of a fasthttp.Server, whose connections then have the type *Conn. For each request the
// server's handler calls Conn.BeginRequest, Malformed and Conn.RequestArrived. For the requests that RequestArrived
// samples, the handler also calls Conn.Admit.
//
//	listener.go       accepts connections up to a cap; retries when file descriptors or memory are short
//	clientlimit.go    limits the connections of each client
//	proxysearch.go    finds a proxy that is not trusted, by its X-Forwarded-For
//	idle.go           finds the connection to close for a new one at the cap
//	reserve.go        accepts a few connections beyond the cap, which get 503 or a health response
//	firstrequest.go   reads the first request of a connection into a small buffer, so that slow clients cost little
//	deadline.go       sets deadlines without changing a runtime timer each time
//	transport.go      reads and writes; sends the head and body of a response in one system call
//	tls.go            TLS, between transport.go and deadline.go
//	express.go        answers requests before fasthttp reads them
//	guard.go          rejects malformed requests that fasthttp accepts
//	framing.go        rejects malformed requests that can be recognized only by their raw bytes
//	loadshedder.go    load shedding, with slots.go, scheduling.go and socketinfo_*.go
//	shutdown.go       stops accepting, waits for requests on their way, closes silent connections
//
// # Load shedding
//
// The goal is goodput: under overload, as many timely responses as the machine can give. The signal is the queue age of
// a request: the time for which it lay unread in its socket (from TCP_INFO). CoDel uses the same signal. Normally one
// request in sixteen of a connection is sampled: its queue age is measured. Overload begins when most samples of two
// consecutive windows of 25 ms are older than 10 ms. Then:
//
//   - Admission slots. Only about 64 connections are served at a time, so that their memory stays in the processors'
//     caches. The server does not read from the others until they get a slot. A connection loses its slot after 512
//     requests, when its next request has not arrived yet, or when its request waits for something such as a disk.
//   - Priorities. Requests with API keys are served first, then anonymous ones, then costly ones. Among requests of the
//     same priority the newest is served first (adaptive LIFO), because its client is the most likely to be still
//     waiting. Health checks never wait.
//   - Shedding. A request is shed (rejected) when it is older than the maximum queue age of its priority, 50 to 150 ms.
//     At most one request in 64 is shed, because rejecting a request costs nearly as much as answering it. If half of
//     the slots are unused, the process was paused rather than overloaded, and the maximum age is 100 ms higher.
//
// Overload ends after 40 consecutive windows in which no request waited for a slot.
//
// While every processor is busy, the Go scheduler polls the network only every 10 to 20 ms, and new requests would wait
// as long. So busy connections yield together, in scheduling rounds: all wait until a byte has passed through a pipe.
// Requests that arrived before the byte are read before it. A long round, caused by garbage collection or by other
// processes, halves the number of slots. A short round raises the number by a quarter.
//
// Measured on half a processor at 90,000 requests a second, in two pairs of runs: 708,000 and 573,000 responses with
// status 200 with load shedding, 511,000 and 390,000 without it.
package conn
