// Package client is a client for the HTTP API of a node. It imports only the standard library.
//
//	c, err := client.New(client.Config{BaseURL: "https://rates.example", Key: client.Secret(os.Getenv("TASARD_KEY"))})
//	best, err := c.Best(ctx, client.BestQuery{Operation: client.Buy, Filter: client.Filter{Currency: "USD", Limit: 3}})
//	for rate, err := range c.AllRates(ctx, client.Filter{Currency: "EUR"}) { ... }
//
// # Promises
//
// Decimals stay texts (Decimal). An answer that breaks the contract is an error: an invalid decimal, a rate without
// id, a truncated body. Unknown fields are ignored.
//
// A refusal is an *Error. 429 and 503 are retried after Retry-After, unless that exceeds Config.WaitMax or the
// deadline of the context. Other 5xx answers and broken connections are retried with increasing waits if the request
// is idempotent. Otherwise the request may have been executed, and the error says so. A refused request for a login
// code is not repeated, because a new code voids the one that was sent.
//
// The key goes into the Authorization header and nowhere else: not into URLs, errors or the output of %v. Redirects
// are not followed.
//
// # Limits
//
// There is no cache. A 304 counts as a request like a 200, so only keeping an answer saves quota; LastResponse has its
// max-age and the remaining quota. Requests are not throttled.
//
// # Where to start reading
//
//	operations.go, account.go   a method for each operation; query.go: their parameters
//	responses.go                the types of answers and their checks
//	send.go, retry.go           how a request is sent and repeated
//	iterate.go                  page after page
package client
