// Package apitest starts a whole node inside a test, like net/http/httptest starts a server. The node is a real one,
// with actors, handlers and an in-memory journal. It has controls for time, data and failures.
//
//	func TestMyClient(t *testing.T) {
//		srv := apitest.Start(t, apitest.Seed("standard"))
//		res, err := srv.Client.Get(srv.URL + "/v1/rates/best?currency=USD&operation=buy")
//		...
//		srv.Clock.Advance(26 * time.Hour) // now the rates have expired
//	}
//
// Start closes the node when the test ends. If a control of the Server fails, it ends the test. Programs that are not
// tests use Open, Node.Do and Node.Close. A node creates no file, and a closed node leaves no goroutine behind. The
// package does not import testing.
//
// # Network
//
// The listener is in memory. The options OnPort and OnListener replace it by a real one. Client reaches it under every
// host name, over http and https (without encryption). Its address is 192.0.2.1. ClientFrom makes clients with other
// addresses.
//
// # Time
//
// Clock stands still until a test moves it. Everything that depends on the time of day uses it: expiry, midnight,
// quotas, login codes, sessions, the Date header. Clock starts at the time of the data set (Seed), or at Epoch. In a
// bubble of testing/synctest, use FollowClock(time.Now). Connection timeouts and Delay use real time.
//
// # Data
//
// Seed loads a data set. With the same seed, every machine gives the same responses byte for byte, including request
// ids and keys. The validation of a real node applies to Rates and Publish. Lenient turns off three rules of this
// validation.
//
// # Failures
//
// Fail, Delay, Drop and Fault affect requests of a route: the next n, or all. The error responses 429, 500 and 503 have
// the body and headers of a real node. Restart stops the node and starts it again. Crash is like SIGKILL followed by a
// start: changes that were not in the journal are lost. Snapshot and Restore save the journal and go back to it;
// State.Write makes a data directory from it.
//
// # Limits
//
// The node enforces quotas only with Limits or Quota, and requires API keys only with KeysRequired. A Restart loses
// data in memory: login codes, and the counts of requests without a key.
//
// # Where to start reading
//
//	node.go        opens and closes a node; journal.go keeps its records
//	server.go, controls.go, control_http.go   have the controls
//	acceptor.go    accepts connections and ends them at a restart
//	fault.go       makes requests fail; httpapi/harness.go writes the error responses
//	seed.go        data sets: seeds/NAME-vN.json; a new version is a new file, with a golden file in testdata
package apitest
