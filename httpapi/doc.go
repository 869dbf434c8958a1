// Package httpapi is how the service is asked: routes, parameters, JSON, errors, limits. It holds no rate and no rule about one; it asks an
// engine.Service and an account.Service, and writes down what they say. It and package conn are the only ones that know fasthttp.
//
// # The way of a request
//
// Each step may end it, in this order:
//
//	conn/             the connection is accepted, under a cap, over TLS with Config.Certificate; a request that can't be read: refuseUnreadable
//	server.go         serve: a net under panics (500); what the library takes although it is no HTTP (400)
//	shed.go           what has waited too long for its turn under overload, or is one beyond the cap: 503
//	plan.go           a question that was asked before, byte for byte, has its route and its parameters already
//	routes.go         dispatch: the path, byte for byte, or 404; answer: the method, or 405; OPTIONS ends here, free
//	limits.go         authentication (auth.go; 401), charging, readiness (503), limits (429); 5xx gets its charge back
//	internal/params   the parameters, all problems at once, or 400
//	operations.go     the service is asked; its errors: errors.go
//	rendering.go      the page's encoded form is taken, or made and kept with the page
//	conditional.go    ETag and Cache-Control; 304; encoding.go: gzip
//	head.go           the head of a good answer, in one piece; other answers begin with a template (headers.go)
//
// Account operations part from it at the route: account.go, account_body.go, account_answers.go. They are never charged, never kept, never
// compressed, and no page of another site may send or read them. What no operation answers goes to Config.Site: pages and documents.
//
// # What it promises
//
// Errors have one shape, and their causes go to the log only. /livez, /healthz and /readyz are always answered, without keys, limits or a
// question to an actor (health.go; docs/recovery.md tells what each condition means). Names of all that is counted come from closed lists
// (tally.go, stats.go). A log of accesses has no path, query, key or address. An answer that was cached never outlives a rate's expiry or
// midnight: max-age is rounded down. The ETag is a digest of the body without generatedAt: the same on every node and after a restart.
//
// Strictness: a range that begins after today has no rows and is no error. Empty parts of a query say nothing; a name without "=" has the
// empty value. A key in the URL is refused even where unknown parameters are allowed. Whatever stands in Authorization and is not "Bearer",
// one blank and a well-formed key is a key that is refused; a second line is no HTTP that we take. An entry of X-Forwarded-For that is no
// address ends the walk at the hop that wrote it. A body that is not one JSON object is malformed, and the connection ends. Bare LF, empty
// lines before a request and blanks behind a chunk size are refused: a proxy may take them for something else. TLS is 1.2 or later.
// Strict-Transport-Security is left to the proxy: the node does not know what else its name serves.
//
// # Why it is fast
//
// A page is immutable and shared by all who ask the same question, so what it becomes is kept with it (engine.Page.Memo). A body is encoded
// once; once a second it is copied and the 20 bytes of generatedAt are patched, in the gzip form together with the checksum, because that
// part of it is stored and not compressed. Convert keeps a template with gaps for the amounts. A warm page costs no allocation. Nothing of a
// request's memory is kept. Lines of a head are set as one, and a body is sent from where it lies. The tests named Alloc hold it.
//
// # Where to start
//
//	a parameter            its row and grammar in internal/params, its oracle in fuzz_test.go
//	an operation           a row in routes.go, a function in operations.go, its fields in answers.go (internal/encode)
//	an account operation   a row in account.go, its fields in account_body.go, a function in account_answers.go
//	an error code          its status in errors.go
//	a header               headers.go; then "go test -run Golden -update", and read the diff
//	what a test needs      harness.go: Date by the clock, planted errors, one connection at a time (apitest)
//	what callers see       contract/openapi.yaml says it too; document_test.go tells where the two differ
package httpapi
