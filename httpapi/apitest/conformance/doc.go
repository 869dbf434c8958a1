// Package conformance checks whether a server implements the API /v1 as specified. The server may be a node, a proxy in
// front of a node, or another implementation.
//
//	func TestContract(t *testing.T) {
//		conformance.Run(t, "http://127.0.0.1:8080", conformance.Options{})
//	}
//
// Every rule is a subtest, named by the id of the rule in docs/decisions.md, such as S2 or P1. Some rules need certain
// data, for example an expired rate. If the server does not have the data, the rule passes with a note. A client cannot
// observe some rules, such as durability. They are not checked.
//
// The check compares the responses of the server with each other. For example, it compares a ranking with the list of
// rates, and the pages of a list with the whole list. If data changes between two responses, they may differ, and the
// rule seems to be violated. Therefore a rule fails only if it fails twice.
//
// The check sends about 650 requests, and more if there are many currencies. If the server allows 60 requests a minute,
// the check takes a quarter of an hour, because it waits as long as Retry-After says. It changes data only if
// Options.Code is set. Then it creates a few accounts and keys.
//
// # Where to start reading
//
//	rules.go         the rules, each with its function
//	responses.go     rules about every response
//	client.go        requests that may be invalid
//	typed.go         valid requests, sent with httpapi/client
//	conformance.go   Options, Run, Check
package conformance
