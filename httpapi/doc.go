// Package httpapi answers requests: routes, parameters, JSON, errors and limits of /v1. It holds no rate and no
// rule about rates; it asks an engine.Service and an account.Service. Only this package and package conn know
// fasthttp.
//
// # The path of a request
//
// Each step may end it:
//
//	conn/             the connection is accepted under a cap, over TLS with Config.Certificate
//	express.go        a head that was answered 200 before, byte for byte but for the key, is answered here
//	                  everything else goes on
//	(fasthttp)        reads the request; what it can't read is answered by refuseUnreadable
//	server.go         serve: panics become 500; what the library accepts although it is malformed, 400
//	shed.go           load shedding: 503
//	routes.go         dispatch: the path, byte for byte, or 404; answer: the method, or 405
//	limits.go         authentication (auth.go; 401), charging, readiness (503), limits (429); a 5xx is refunded
//	internal/params   the parameters, all problems at once, or 400
//	operations.go     the service's page in its encoded form (renderedpage.go), or an error (errors.go)
//	conditional.go    ETag, Cache-Control, 304; gzip.go
//	head.go           the head of a 200 or 304 in one piece; other answers begin with prepared headers (headers.go)
//
// Account operations branch off at the route: account.go, account_body.go, account_answers.go. They are never
// charged, cached or compressed, and pages of other sites can neither send nor read them. Paths without an
// operation go to Config.Site: pages and documents.
//
// # Promises
//
// All errors have one shape; their causes are logged only. /livez, /healthz and /readyz are always answered,
// without keys or limits (health.go). Counted names come from closed lists (counters.go, stats.go), and access
// records hold no path, query, key or address. A cached answer never outlives the expiry of a rate or midnight. An
// ETag is a digest of the body without generatedAt, the same on every node and after a restart. No memory of a
// request is kept, except for heads without their keys.
//
// A range of dates that begins after today is empty, not an error. A key in a URL is refused even where unknown
// parameters are allowed. An Authorization header other than "Bearer", one space and a well-formed key is a refused
// key. A malformed entry of X-Forwarded-For ends the walk at the hop that wrote it. A body other than one
// JSON object ends the connection.
//
// # Speed
//
// A page is immutable and shared by all requests for it, so its encoded forms are kept with it
// (engine.Page.Rendered): a body is encoded once, and once a second copied with a new generatedAt. A conversion has
// a template with gaps for the amounts. The express path leaves out the library, routing and parsing, but asks the
// load shedder, the admitter and the service as the ordinary path does. A warm page costs no allocation, one read
// and one write.
//
// # Where to start
//
//	a parameter            its row and grammar in internal/params
//	an operation           a row in routes.go, a function in operations.go, its fields in answers.go
//	an account operation   a row in account.go, its fields in account_body.go, a function in account_answers.go
//	an error code          its status in errors.go
//	a header               headers.go; then "go test -run Golden -update", and read the diff
//	a test's needs         harness.go: Date by the clock, planted errors
//	the document           contract/openapi.yaml describes the same; document_test.go compares the two
package httpapi
