// Package apitest starts a node inside a test, as net/http/httptest starts a server. The node runs the same code as
// tasard serve, but its journal (the log of all changes) is in memory. The test controls time, data and failures.
//
//	func TestMyClient(t *testing.T) {
//		srv := apitest.Start(t, apitest.Seed("standard"))
//		res, err := srv.Client.Get(srv.URL + "/v1/rates/best?currency=USD&operation=buy")
//		...
//		srv.Clock.Advance(26 * time.Hour) // now the rates have expired
//	}
//
// A control is a method of Server that changes time, data or failures. A control that fails ends the test. Start closes
// the node when the test ends. Programs that are not tests use Open, Node.Do and Node.Close. A node creates no file,
// and a closed node leaves no goroutine behind. The package does not import testing.
//
// # Network
//
// The listener is in memory. The options OnPort and OnListener replace it by a real one. Server.Client accepts any host
// name, and both http and https (without encryption). It has the address 192.0.2.1; ClientFrom returns clients with
// other addresses.
//
// # Time
//
// Clock stands still until a test moves it. Everything that depends on the time of day uses Clock: expiry, midnight,
// quotas, login codes, sessions, the Date header. Clock starts at the time of the data set (Seed), or at Epoch. In a
// bubble of testing/synctest, use FollowClock(time.Now). Connection timeouts and Delay use real time.
//
// # Data
//
// Seed loads a data set of rates. With the same data set, every machine gives the same responses byte for byte,
// including request ids and keys. The node validates the rates of Rates and Publish, as it validates those of sources;
// Lenient turns off four rules of this validation.
//
// # Failures
//
// Fail, Delay, Drop and Fault affect requests of a route: the next n, or all. The error responses 429, 500 and 503 have
// the body and headers of a real node. Restart stops the node and starts it again. Crash is like SIGKILL followed by a
// start: changes that are not in the journal are lost. Snapshot saves the journal, Restore goes back to it, and
// State.Write makes a data directory of it.
//
// # Limits
//
// The node enforces quotas only with the options Limits or Quota, and requires API keys only with KeysRequired. Restart
// loses what is only in memory: login codes, and the counts of requests without a key.
//
// # Where to start reading
//
//	node.go        opens and closes a node; rates and data sets: seeds/NAME-vN.json; a new version is a new file, with
//	               a golden file in testdata
//	journal.go     keeps the node's records
//	controls.go    has the controls, and serves them over HTTP
//	acceptor.go    accepts connections and ends them at a restart
//	fault.go       makes requests fail; httpapi.Plant makes the error responses
package apitest
