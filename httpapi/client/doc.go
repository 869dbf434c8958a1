// Package client is a client for the HTTP API of a node. It imports only the standard library.
//
//	c, err := client.New(client.Config{BaseURL: "https://rates.example", Key: os.Getenv("TASARD_KEY")})
//	best, err := c.Best(ctx, client.BestQuery{Operation: client.Buy, Filter: client.Filter{Currency: "USD", Limit: 3}})
//	for rate, err := range c.AllRates(ctx, client.Filter{Currency: "EUR"}) { ... }
//
// Decimals and dates are kept as text. Unknown fields are ignored.
//
// An error response becomes an *Error. 429 and 503 are retried after Retry-After, unless this wait exceeds
// Config.WaitMax or the context's deadline. Other 5xx responses and broken connections are retried with increasing
// delays, but only for idempotent requests. If the connection breaks during another request, the node may have executed
// the request, and the error says so. A request for a login code is not retried after code_requested_too_soon, because
// a new code would invalidate the earlier one.
//
// The key is sent only in the Authorization header. Redirects are not followed.
//
// The client has no cache and does not limit the rate of requests. Client.Usage returns the remaining quota.
package client
