// Command bench measures a whole node under load against baselines in the same run, and reports which performance
// goals it meets.
//
//	make bench                                   installs and builds everything it needs; the report is in bench-report
//	make bench BENCHFLAGS="-goals F1,F12 -quick"
//
// # Processes
//
// The node is the real program, tasard serve, as a process on the first core, with data from the test harness. The
// load runs in this process on the second core: one thread with its own epoll loop, and requests drawn from a seed.
// Baselines are processes on the node's core, idle while the node is measured:
//
//	bare       the same HTTP library, which answers the same bytes from memory (bench bare)
//	nginx      the same body as a static file
//	postgres   net/http with a connection pool to PostgreSQL, which computes the same answer (bench postgres)
//
// A baseline that is not installed is skipped and named in the report.
//
// # Figures
//
// Two servers are measured alternately, round by round, in changing order; a figure is the median of the rounds'
// ratios. Absolute times mean little on a shared machine. A ratio whose rounds spread (between their quartiles) more
// than it differs from 1 is reported as "no difference shown". Without a rate each connection sends its next request
// when the answer has arrived, which finds the capacity. With a rate each request has an intended time from which it
// is measured, so that a server that stops is charged for all requests due meanwhile. CPU time counts all processes
// of a server; where the load generator itself uses nearly all of its core, it says more than requests per second.
//
// # Where to change it
//
//	a goal                  its row in goals.go, its function there, in goals_modes.go or goals_data.go
//	how two are compared    runner.go
//	requests                mix.go; the load generator: package load
//	servers                 server.go (node, bare server), nginx.go, postgres.go; processes: process.go; data: fixture.go
//	the report              report.go, and the tables in README.md and docs/performance.md: tables.go
//	the cost of a request   costs.go, costs_trace.go
package main
