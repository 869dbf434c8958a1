// Package conformance asks a server whether it keeps the contract of /v1: this node, a proxy in front of it, another
// implementation. It knows the contract and nothing else: no package of the node but its client, and no data set.
//
//	func TestContract(t *testing.T) {
//		conformance.Run(t, "http://127.0.0.1:8080", conformance.Options{})
//	}
//
// What no caller can see is not here: what is kept in the log (L1, K2), how sources and refreshes are judged (S11, T3, I1 to
// I4), snapshots (P3), the announcement before it is made (K7).
//
// Every rule is a subtest named after its decision (S2, P1, Q12; the register is in docs/decisions.md), so that go test -run picks
// some and a report tells rule by rule. What can't be seen from outside, or not with the data that the server has (no rate
// without a side, nothing expired), passes, and says so in the log.
//
// The expectations come from the server's own lists, read first: a ranking is held against the rates, a page against the
// walk, a count against what is counted. A refresh in the middle of a rule looks like a breach; so a rule is broken only when
// it fails twice.
//
// The kit asks some 650 times, with more currencies more often. Where limits stand in the way it waits for Retry-After, with
// Options.Wait: at 60 requests a minute that is a quarter of an hour. It changes nothing, unless Options.Code lets it: then it
// makes a few accounts and keys.
//
// # Where to change what
//
//	a rule           a row in rules.go, its work in the file of its group
//	a field          shapes in answers.go
//	what is sent     client.go: requests as they are written, right or wrong; typed.go: those of httpapi/client
package conformance
