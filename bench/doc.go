// Command bench measures a whole node under load, beside yardsticks in the same run, and tells which goals of performance it meets.
//
//	make bench                                 everything that it needs is built and installed; the report is in bench-report
//	make bench BENCHFLAGS="-goals F1,F12 -quick"
//
// # What runs where
//
// The node is the real program, tasard serve, as a process of its own on the first core, on data that the harness has made. The load
// runs in this process on the second core: one thread, which looks for answers itself, and requests drawn from a seed. Yardsticks are
// processes on the node's core, idle while the other side is asked:
//
//	bare       the same HTTP library, which answers the same bytes from memory and does nothing else (bench bare)
//	nginx      the same body as a file
//	postgres   net/http with a pool of connections to PostgreSQL, which computes the same answer (bench postgres)
//
// What is not installed is skipped by name.
//
// # What a figure means
//
// Two sides are measured in turn, round by round, in changing order; a figure is the median of the rounds' ratios. Times by
// themselves mean little on a machine that does other things too. Without a rate each connection sends when its answer is there:
// that finds a ceiling. With a rate each request has its moment, and is timed from there, so that a server which stops for a while is
// charged for all that would have come. CPU time is that of all the server's processes; where the load itself takes nearly all of its
// core, it says more than requests a second do.
//
// # Where to change what
//
//	a goal                 its row in goals.go, its function there or in goals_more.go
//	how two are compared   lab.go
//	what is asked          mix.go; the load that asks: load.go, load_line.go; how an answer is read: answer.go
//	a server               server.go (the node, the bare server), nginx.go, postgres.go; its process: process.go; its data: fixture.go
//	the report             report.go
//	what a request costs   costs.go, costs_trace.go
package main
