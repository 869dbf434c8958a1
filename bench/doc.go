// Command bench measures a whole node under load, compares it with baselines (other servers) in the same run, and
// reports which performance goals it meets.
//
//	make bench                                   installs and builds everything it needs
//	make bench BENCHFLAGS="-goals F1,F12 -rounds 5"   only the goals with these IDs (see goals.go), roughly
//
// # Processes
//
//	core 0   the node: tasard serve, with data from package apitest; or a baseline
//	core 1   the bench, with the load generator (load.go)
//
// Only one server has load at a time. Goals whose baseline is not installed are not measured:
//
//	bare       the same HTTP library, which sends the same bytes from memory (subcommand bench bare)
//	nginx      the same body as a static file
//
// The requests are those of real clients, with header fields that differ each time. The node has its default flags,
// except for limits that the load itself would exceed.
//
// # Figures
//
// Absolute times mean little on a shared machine, so most figures are ratios between two servers. The bench puts load
// on both servers alternately, in many short rounds, in changing order. A figure is the median of the ratios of all
// rounds, with its 95 % confidence interval. If the load generator uses nearly all of its core, CPU time says more than
// requests per second.
//
// # Where to change it
//
//	goals                   a row in goals.go, and a function there if it does not compare two servers
//	comparison of servers   runner.go
//	requests                mix.go; the load generator: load.go
//	servers, their data     server.go; processes: process.go
//	a load on any node      main.go
package main
