// Package client is a client for the HTTP API of a node. It imports only the standard library.
//
//	c, err := client.New(client.Config{BaseURL: "https://rates.example", Key: client.Secret(os.Getenv("TASARD_KEY"))})
//	best, err := c.Best(ctx, client.BestQuery{Operation: client.Buy, Filter: client.Filter{Currency: "USD", Limit: 3}})
//	for rate, err := range c.AllRates(ctx, client.Filter{Currency: "EUR"}) { ... }
//
// # Promises
//
// Decimals are kept as text (Decimal). A response that does not match the API specification is an error, for example
// an invalid decimal, a rate without id or a truncated body. Unknown fields are ignored.
//
// The error for an error response is an *Error. 429 and 503 are retried after Retry-After, unless Retry-After exceeds
// Config.WaitMax or the deadline of the context. Other 5xx responses and broken connections are retried with increasing
// delays if the request is idempotent. After a broken connection, the node may have executed a request that is not
// idempotent; the error says so. A request for a login code that got code_requested_too_soon is not retried, because a
// new code would invalidate the code that was sent.
//
// The key is sent only in the Authorization header. It is never in a URL, an error or the output of %v. Redirects are
// not followed.
//
// # Limits
//
// The client has no cache and does not throttle requests. A 304 counts against the quota like a 200, so a program that
// wants to save quota must reuse a response for its max-age. WithResponse gives max-age and the remaining quota.
//
// # Where to start reading
//
//	operations.go, account.go   a method for each operation; query.go: their parameters
//	responses.go                the types of responses and their validation
//	send.go, retry.go           sending and retrying a request
//	iterate.go                  iterators over all pages of a list
package client
