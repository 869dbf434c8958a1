// Package httpapi is the HTTP server of /v1: routes, parameters, JSON, errors and rate limits. The rates and the rules
// about them are in engine.Service, accounts and quotas in account.Service. Terms:
//
//	HTTP library:   fasthttp; only this package, conn and internal/counters import it
//	data:           currencies, institutions and rates; all of /v1 except /v1/account
//	operation:      an entry of the API, such as GET /v1/rates; a data operation or an account operation
//	page:           a part of a long list of results (engine.Page); an HTML page is called a web page
//	charge:         to count a request against the caller's quota; a refund undoes the charge
//	announcement:   an operator's notice that requests will need an API key from some date on (account.KeyPolicy)
//
// # The path of a request
//
// Each step may answer the request:
//
//	conn/             accepts connections up to a maximum number, with TLS if Config.Certificate is set
//	express.go        the express path: answers nearly all requests, namely plain GETs for data with 200 or 304
//	(HTTP library)    the ordinary path, for all other requests: reads the request; rejectUnreadable answers if it
//	                  cannot be read
//	server.go         serve: 500 after a panic, 400 for malformed requests that the library accepts; finds the
//	                  operation by path (404), from the table of routes
//	operations.go     checks the method (405), authenticates (401), charges, checks readiness (503) and limits
//	                  (429); refunds after a 5xx
//	internal/params   parses the parameters and reports all problems at once (400)
//	operations.go     gets a page from the service and its encoded form (internal/rendered), or an error
//	responder.go      writes heads, errors, times and request ids; internal/rendered computes ETags and compresses
//
// Account operations (account.go) are never charged, cached or compressed. Web pages of other sites
// can neither send such requests nor read the responses. Config.Site answers all paths outside the API.
//
// # Promises
//
// All errors have the same JSON fields. The cause of an error is only logged. /livez, /healthz and /readyz are always
// answered, without keys or limits (health.go). Access records contain no path, query, key or address. The cache
// lifetime of a response ends before a rate in it expires, and before midnight. An ETag is a digest of the body without
// generatedAt (the time of the response), so it is the same on every node and after a restart.
//
// A key in a URL is always rejected, even with Config.AllowUnknownParameters. An Authorization header must be "Bearer",
// spaces and a key; anything else counts as a malformed key. A body that is not exactly one JSON object ends the
// connection.
//
// # Speed
//
// All requests for the same page share one immutable engine.Page. Its field Rendered caches the encoded body, which is
// copied with a new generatedAt at most once a second. The body of a conversion is a cached template with amounts
// inserted. On the express path, a request for an encoded page or a conversion costs one read, one write and no
// allocation.
//
// # Where to start
//
//	a parameter            its row and grammar in internal/params
//	an operation           a row in routes and a function and its fields in operations.go
//	an account operation   a row in account.go, its fields in the body there, a method of accountAPI
//	an error code          its status in internal/encode
//	a header               responder.go; then run "go test -run Golden -update" and read the diff
//	a test                 Harness in server.go: Date from the clock, planted errors
//	the API specification  contract/openapi.yaml; document_test.go compares it with the node
package httpapi
