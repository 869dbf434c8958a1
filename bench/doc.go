// Command bench measures a whole node under load, beside yardsticks in the same run, and tells which goals of performance it meets.
//
//	make bench                                 everything that it needs is built and installed; the reports are in bench-report
//	make bench BENCHFLAGS="-goals F1,F12 -quick"
//
// # What runs where
//
// The node is the real program, tasard serve, as a process of its own on the first core, on data that the harness has made. The load
// runs in this process on the second core: one thread, its own epoll, requests drawn from a seed. Yardsticks are processes on the
// node's core, idle while the other side is asked:
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
// charged for all that would have come. CPU time is that of all the target's processes; where the load itself takes nearly all of its
// core, it says more than requests a second do.
//
// # Where to change what
//
//	a goal                 its row in scenario.go, its function in goals_*.go
//	how two are compared   compare.go; what is started for that: lab.go
//	what is asked          load_mixes.go; how requests are made: load_mix.go
//	the load               load.go, load_linux.go, load_line_linux.go, wire.go (answers), epoll_linux.go
//	a contender            contract.go, contender.go and a file of its own; its process: process.go; its data: fixture.go
//	the report             result.go, report*.go
//	the command line       settings.go; a load on a node that runs: address.go
package main
