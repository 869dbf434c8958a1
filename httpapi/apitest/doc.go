// Package apitest starts a whole node inside a test, as net/http/httptest starts a server: with a real log, real
// actors and real handlers, and with controls for time, data and failures.
//
//	func TestMyClient(t *testing.T) {
//		srv := apitest.Start(t, apitest.Seed("standard"))
//		res, err := srv.Client.Get(srv.URL + "/v1/rates/best?currency=USD&operation=buy")
//		...
//		srv.Clock.Advance(26 * time.Hour) // now the rates have expired
//	}
//
// Start closes the node when the test ends. Programs use Open and Close. Closing a node leaves no goroutine and no
// file behind. A control of a Server that fails ends the test. Programs use the controls through Node.Do. The package
// does not import testing.
//
// # Network
//
// The listener is in memory unless OnPort or OnListener is given. Client reaches it under every host name, over http
// and (without encryption) https, from the address 192.0.2.1; ClientFrom makes clients with other addresses.
//
// # Time
//
// Clock stands still until a test moves it. Everything that depends on the time of day follows it: expiry, midnight,
// quotas, login codes, sessions, the Date header. It starts at the time of the seed, or at Epoch. In a bubble of
// testing/synctest, FollowClock(time.Now) makes it follow the time of the bubble. Connection timeouts and Delay use
// real time.
//
// # Data
//
// Seed loads a data set. "standard/v1" is a data set that never changes, "standard" is its newest version. The same
// seed gives the same responses byte for byte on every machine, including request ids and keys. The rules of a real
// node apply to Rates and Publish. Lenient turns off the rules against values that jump.
//
// # Failures
//
// Fail, Delay, Drop, Truncate and Fault affect requests of a route: the next n, all, or a random share. A planted 429,
// 500 or 503 has the body and headers that a node sends. Restart stops and starts the node. Crash does the same as
// SIGKILL and a new start: data that was not on disk is lost.
//
// # The check at the end
//
// When the node is closed, its log is replayed into a second node, and both must have the same rates, history,
// accounts and keys. A difference fails the test.
//
// # Limits
//
// Quotas and required keys are off unless Limits, Quota or KeysRequired is given. Restart and Keys lose state that a
// real node keeps in memory: login codes and the counters of clients without a key.
//
// # Where to start reading
//
//	node.go        opens and closes a node; server.go, controls.go, control_http.go: its controls
//	acceptor.go    keeps connections across a restart
//	middleware.go  records requests and applies the faults of fault.go; httpapi/harness.go writes the error responses
//	seed.go        data sets: seeds/NAME-vN.json; a new version is a new file, with a golden file in testdata
package apitest
