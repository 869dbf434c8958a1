// Package conformance checks whether a server conforms to the specification of the API /v1. The server may be a node, a
// proxy in front of a node, or another implementation.
//
//	func TestContract(t *testing.T) {
//		conformance.Run(t, "http://127.0.0.1:8080", conformance.Options{})
//	}
//
// Every rule is a subtest named by its id in docs/decisions.md, such as S2 or P1. If the data of the server is not
// sufficient to check a rule (for example because no rate has expired), the rule passes with a note. Rules that a
// client cannot observe are not checked, such as durability.
//
// The expected responses are computed from the server's own lists. For example, a ranking is compared with the rates,
// and a page with the whole list. Data that changes during a check looks like a violation, so a rule fails only if it
// fails twice.
//
// The check sends about 650 requests, and more if there are many currencies. It waits for Retry-After, so with 60
// requests a minute it takes a quarter of an hour. It changes data only if Options.Code is set: then it creates a few
// accounts and keys.
//
// # Where to start reading
//
//	rules.go         the rules, each with its function
//	responses.go     rules for every response
//	client.go        requests that may be invalid; typed.go: requests with httpapi/client
//	conformance.go   Options, Run, Check
package conformance
