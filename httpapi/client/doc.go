// Package client asks a node: every operation of /v1 as a method, answers as types. It imports the standard library and nothing else.
//
//	c, err := client.New(client.Config{BaseURL: "https://rates.example", Key: client.Secret(os.Getenv("TASARD_KEY"))})
//	best, err := c.Best(ctx, client.BestQuery{Operation: client.Buy, Filter: client.Filter{Currency: "USD", Limit: 3}})
//	for rate, err := range c.AllRates(ctx, client.Filter{Currency: "EUR"}) { ... }
//
// # What it promises
//
// Decimals stay the texts that they are on the wire (Decimal): nothing here is ever a binary fraction. An answer that is not of the contract (a
// decimal that is none, a rate without a name, a body that breaks off) is an error, never half an answer. Fields that it does not know
// are passed over.
//
// A refusal is an *Error with status, code, message and request id. 429 and 503 are tried again behind Retry-After, Config.Retries times, unless that
// is longer than Config.WaitMax or than the deadline of the context leaves: then the refusal is returned at once. Other 5xx and connections
// that break are tried again, with growing pauses, only where twice is the same as once: a POST whose answer was lost may have happened, and its error
// says so. A refused request for a login code is not repeated either: a new code voids the one that is on its way (K2).
//
// The key goes into the Authorization header and nowhere else: not into URLs, errors or what %v prints of a Config or a Client. Redirects are not followed, to no
// host: the contract has none (Q8).
//
// # What it has not
//
// No cache. A 304 costs a request as a 200 does (L6), so that an ETag saves bytes and no quota; what saves quota is to keep an answer as long as it
// may be kept, and how and where is the caller's matter. Client.LastResponse tells how long (Cache-Control).
//
// No guard against asking too often: the node counts, all clients of an account together, and says by LastResponse().Limits what is left.
//
// # Where to change what
//
//	an operation      a method in operations.go or account.go, its query in query.go
//	a field           answers.go; decode_test.go holds it against the golden answers
//	what is retried   retry.go
//	what is sent      exchange.go
package client
