// Package conformance checks whether a server keeps the contract of /v1: a node, a proxy in front of one, or another
// implementation.
//
//	func TestContract(t *testing.T) {
//		conformance.Run(t, "http://127.0.0.1:8080", conformance.Options{})
//	}
//
// Every rule is a subtest named by its id in docs/decisions.md, such as S2 or P1. A rule that the data of the server
// cannot show (there is no rate without a side, no rate has expired) passes with a note. Rules that no client can
// observe are not here: what is durable, how sources are judged, how a page relates to a snapshot.
//
// The expected answers come from the server's own lists: a ranking is compared with the rates, a page with the whole
// list. Data that changes during a rule looks like a violation; a rule therefore fails only if it fails twice.
//
// The check sends about 650 requests, more with more currencies, and waits for Retry-After: at 60 requests a minute it
// takes a quarter of an hour. It changes data only if Options.Code is set, and then creates a few accounts and keys.
//
// # Where to start reading
//
//	rules.go         the rules, each with its function
//	responses.go     the fields of every answer
//	client.go        requests that may be wrong; typed.go: those of httpapi/client
//	conformance.go   Options, Run, Check
package conformance
