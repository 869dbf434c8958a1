// Package httpapi is the HTTP server of /v1: routes, parameters, JSON, errors and rate limits. It contains no rates and
// no rules about rates; these are in engine.Service and account.Service. "The HTTP library" in comments is fasthttp,
// imported only here and in conn and internal/counters.
//
// # The path of a request
//
// Each step may answer the request:
//
//	conn/             accepts connections up to a maximum number, with TLS if Config.Certificate is set
//	express.go        the express path: answers plain GETs for data with 200 or 304, which nearly all requests are
//	(HTTP library)    reads the request; rejectUnreadable answers if it can't
//	server.go         serve: 500 after a panic, 400 for malformed requests that the library accepts; finds the
//	                  operation by path (404), from the table in routes.go
//	operations.go     checks the method (405), authenticates (401), charges, checks readiness (503) and limits
//	                  (429); refunds after a 5xx
//	internal/params   parses the parameters and reports all problems at once (400)
//	operations.go     gets a page from the service and its encoded form (internal/rendered), or an error (errors.go)
//	conditional.go    Cache-Control; internal/rendered has ETags and compresses
//	responder.go      writes heads, errors, times and ids for all of them; head.go has their constant parts
//
// The dispatcher sends account operations to account.go and account_body.go. They are never charged, cached or
// compressed. Web pages of other sites can neither send them nor read the responses. Config.Site answers paths without
// an operation.
//
// # Promises
//
// All errors have the same JSON shape. The cause of an error is only logged. /livez, /healthz and /readyz are always
// answered, without keys or limits (health.go). Access records contain no path, query, key or address. No cache may use
// a response after a rate has expired or after midnight. An ETag is a digest of the body without generatedAt, so it is
// the same on every node and after a restart.
//
// The response for a history range that begins after today is an empty list, not an error. A key in a URL is always
// rejected, even with Config.AllowUnknownParameters. An Authorization header must be "Bearer", spaces and a key;
// anything else counts as a malformed key. A body that is not exactly one JSON object ends the connection.
//
// # Speed
//
// A page is immutable and shared by all requests for it. Its encoded forms are stored in engine.Page.Rendered. A body
// is thus encoded once, and copied with a new generatedAt at most once a second. A conversion inserts its amounts into
// a template. The express path skips the HTTP library: a request for an encoded page or a conversion costs one read,
// one write and no allocation.
//
// # Where to start
//
//	a parameter            its row and grammar in internal/params
//	an operation           a row in routes.go, a function in operations.go, its fields in answers.go
//	an account operation   a row in account.go, its fields in account_body.go, a method of accountAPI
//	an error code          its status in errors.go
//	a header               head.go; then run "go test -run Golden -update" and read the diff
//	a test                 Harness in server.go: Date from the clock, planted errors
//	the API specification  contract/openapi.yaml; document_test.go compares it with the node
package httpapi
