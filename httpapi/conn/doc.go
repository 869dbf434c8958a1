// Package conn owns the connections of a server: who may have one, how long a request may take, what on the wire is no HTTP, who is served
// when not all can be, and how the last ones end. It knows nothing of routes or answers. It wraps the listener of a fasthttp.Server, which
// then serves *Conn; the server's handler calls Conn.BeginRequest, Malformed and, with an LoadShedder, Conn.RequestArrived and Conn.Admit for each request.
//
//	listener.go    accepts under a cap, whatever the machine is short of; share.go: per-client limit; spare.go: reserve beyond the cap
//	newcomers.go   a first request is awaited in a small buffer of its own: slow clients cost little
//	deadline.go    deadlines are armed only when they matter; gather.go: head and body leave in one system call
//	tls.go         TLS, below all of that
//	guard.go       what is malformed though the library takes it; wire.go: what the library hides, from the bytes of the connection
//	overload.go    load shedding, below; seats.go, rounds.go, age_*.go: its parts
//	shutdown.go    nobody new is let in, those who have come get their answers, silence is closed
//
// # LoadShedder
//
// The aim is goodput: as many answers as the machine can give, each soon, while more is asked than it can do. The signal is queue age (how
// long a request has lain unread in its socket, from TCP_INFO), because a queue that stands says overload whatever the processors show;
// CoDel uses the same one. While all is well one request in sixteen of a connection is looked at (sampleEvery), and nothing else is done.
// When most of a window of 25 ms were older than 10 ms, twice in a row, three things begin:
//
//   - Admission slots ("seats"). Only some 64 connections are served at a time, so that what belongs to them stays in the processors' caches.
//     The others wait before their request is worked on and are not read further: the backlog stays with the clients' kernels
//     (backpressure) and costs no memory here. A slot goes round: after 512 requests, when its connection has nothing to do, and when its
//     request waits for something else, such as a disk, so that a slow one does not stand at the head of the line (head-of-line blocking).
//   - Priority and order. Classes ("lanes") come first by importance: known callers before anonymous ones, what is costly last. Within a
//     class the youngest request is served first (adaptive LIFO): under overload the oldest has the least chance that its client still
//     waits. Each class has a patience of 50 to 150 ms, beyond which nobody works on a request any more. Health never waits.
//   - Load shedding. What is older than its patience is refused, at a rate of one to 64 answers: a refusal costs most of what an answer does,
//     so refusing everybody at once would leave nothing for answers. If half of the slots are idle there was a pause and no overload, and
//     the late ones are served.
//
// It ends after 40 windows in which nobody was late, or when nobody asks any more.
//
// Fair share has two more parts. A client address has at most a fifth of the connections (share.go); and where the busy keep every
// processor running, Go's scheduler asks the network for newcomers each 10 to 20 ms only. So the busy give way in rounds (rounds.go): each
// waits until a byte has come back through a pipe, behind everyone whose request arrived before it. A round that takes long (garbage
// collection, a neighbour) halves the slots, short ones give them back by a quarter each.
//
// Measured on half a processor under 90,000 requests a second, in two pairs of runs: 708,000 and 573,000 answers of 200 with it, 511,000 and
// 390,000 without.
package conn
