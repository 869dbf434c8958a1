// Package apitest starts a whole node inside a test, as net/http/httptest starts a server: real log, real actors, real
// handlers. Time, chance and failure are buttons.
//
//	func TestMyClient(t *testing.T) {
//		srv := apitest.Start(t, apitest.Seed("standard"))
//		res, err := srv.Client.Get(srv.URL + "/v1/rates/best?currency=USD&operation=buy")
//		...
//		srv.Clock.Advance(26 * time.Hour) // now the rates have expired
//	}
//
// Start ends the node with the test; Open is for programs, which end it with Close. Nothing is left behind: no goroutine, no
// file. The package does not import testing; TB is what it needs of a test. The controls are those of a Server: one that can't do
// what it is told fails the test. Node.Do gives them to a program, and returns the error.
//
// # What is real, and what is not
//
// The code that answers is the node's own, from the listener's side of a connection on. The log is a directory of its own,
// written and synced as a node's is. The listener is in memory, unless OnPort: Client reaches it under every host name, over
// http and (without encryption) https, and no port is opened. Callers without a key come from 192.0.2.1; ClientFrom makes
// callers of other addresses.
//
// # Time
//
// Clock stands still until it is moved, and everything that the node does by the time of day happens at the moment to which
// it is moved: expiries, rankings that lose a rate, midnights, quotas, codes and sessions that run out, the Date header.
// It begins at the moment that the seed names, or at Epoch. FollowClock lets it run beside another clock: FollowClock(time.Now) inside
// a bubble of testing/synctest makes the node live in the bubble's time, where everything else of it works as well.
// Timeouts of connections, and Delay, are real time; in a bubble that is the bubble's.
//
// # Data
//
// Seed names a data set by name and version: "standard/v1" never changes, "standard" is its newest version. Every answer of
// a node with the same seed is the same, byte for byte, on every machine: request ids, keys, codes and dates too (RandomSeed
// draws others). Rates and Publish say what an institution publishes, through the rules of a real node: a value that they
// hold back is an error that says why, and Lenient lets jumps pass.
//
// # Failure
//
// Fail, Delay, Drop and Truncate, or a Fault with all its fields, spoil requests of a route: once, the next n, or a share of
// them by a seed. A planted 429, 500 or 503 has body and headers of a real one, those about limits where
// Limits are on. Restart is a stop and a start; Crash keeps what was written and loses what was not.
//
// # The check after each test
//
// When the node ends, its log is replayed into a fresh one, and the two must agree, on every rate, row, account and key.
// A difference fails the test: every test of a client is also a test of the node.
//
// # Limits
//
// Limits and keys are off, so that a test can ask as often as it likes: Limits and Quota turn limits on, KeysRequired keys.
// What was only in memory is lost by Restart as in a real node: login codes, counters of callers without a key. Keys, which makes
// a crowd of accounts at once, restarts as well.
//
// # Where to change what
//
//	a control         buttons.go; many keys at once: crowd.go; how one fails: server.go
//	an option         options.go
//	a fault           fault.go, around.go; what it looks like on the wire: httpapi/harness.go
//	a seed            seeds/NAME-vN.json; a new version is a new file, and a golden file in testdata
//	the mock command  control.go, and cmd/mock.go
package apitest
