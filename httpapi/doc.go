// Package httpapi is how the service is asked: routes, parameters, JSON, errors, limits of a connection. It holds no rate and
// no rule about one; it asks an engine.Service and writes down what that says. It and package
// conn alone know fasthttp.
//
// # The way of a request
//
// Each step may end it; the order is decision L7.
//
//	conn/             the connection is accepted, under a cap, over TLS with Config.Certificate; under overload a request waits for its turn
//	(the library)     reads it; what it cannot read: refuseUnread, 400, 408, 413 or 431, and the connection ends
//	server.go         serve: a net under panics (500)
//	(conn)            what the library takes although it is no HTTP: 400, and the connection ends
//	shed.go           what has waited too long for its turn, or is one beyond the cap: 503
//	plan.go           a question that was asked before, byte for byte, has its route and its parameters already
//	routes.go         dispatch: the path, byte for byte, or 404; answer: the method, or 405; OPTIONS ends here, free
//	limits.go         with a gate: it authenticates (auth.go, address.go: in whose name; 401) and charges; then readiness: nothing
//	                  loaded: 503 before any word about limits (429) or parameters; at the end 5xx gets its charge back
//	internal/params   the parameters, all problems at once, or 400
//	operations.go     the service is asked; its errors: errors.go
//	rendering.go      the page's encoded form is taken, or made and kept with the page
//	conditional.go    ETag and Cache-Control; 304 when the caller has it
//	encoding.go       gzip when the caller takes it; both read by internal/fields
//	head.go           the head of a 200 or 304, request id and limits included; other answers begin with a template (headers.go)
//	(conn)            the body goes out from where it lies, with its head, in one system call
//
// Account operations part from it at the route: account.go (method, origin, credential), account_body.go (URL and body, all
// problems at once), account_answers.go (account.Service is asked). They are never charged and never kept.
//
// # Headers
//
//	every answer   X-Request-Id, X-Content-Type-Options, Content-Security-Policy, Referrer-Policy,
//	               Cross-Origin-Resource-Policy, Access-Control-Allow-Origin: *, -Expose-Headers, Vary, Date; never Server
//	200, 304       ETag, Cache-Control: private, max-age=0…60
//	a body         Content-Type, Content-Length; Content-Encoding when it is compressed
//	204            Allow, Access-Control-Allow-Methods, -Headers, Access-Control-Max-Age
//	errors         Cache-Control: no-store; 405 Allow; 429, 503 Retry-After; 401 WWW-Authenticate
//	with a gate    X-RateLimit-Limit, -Remaining, -Reset, RateLimit-Policy, RateLimit on data answers whose caller was identified;
//	               Deprecation, Sunset, Link on every answer while the end of anonymous access is announced
//	accounts       no-store, no CORS, Cross-Origin-Resource-Policy: same-origin; 201 Location
//
// # Health
//
// GET and HEAD /livez, and /healthz by another name, answer 200 while the process answers at all: restart it when they don't. GET and
// HEAD /readyz say how the node is, {"status", "conditions": [{"name", "state", "since", "detail"}]}: every condition, those that are not
// ok first. Neither asks an actor, the disk, the mail server or the gate; keys, quotas and --limits do not apply (health.go).
//
//	status        HTTP                    means
//	ready         200                     nothing is wrong
//	degraded      200                     data requests are answered, something else suffers: tell somebody, send no request elsewhere
//	unavailable   503, Retry-After: 2     data requests can't be answered: send them elsewhere
//
//	name         state          HTTP  means, and what to do
//	log          recovering     503   the log is being read after a start; wait
//	log          failed         503   a change could not be kept: the process leaves with 70; look at its log and the disk, start it again
//	log          stopping       503   the end of an orderly stop; nothing
//	data         empty          503   nothing was ever published; let it collect, or import observations
//	disk         read_only      200   less free than the reserve: nothing is changed, reads without a key go on; free some space
//	disk         slow           200   a change waits for the disk longer than a second; look for what else writes there, and at its health
//	snapshot     failing        200   the last one found no space; nothing is lost, it is tried again when there is space; free some
//	snapshot     late           200   records for four snapshots and none written; a start takes longer; look at the disk
//	clock        clock_suspect  200   the wall clock stepped by more than 5 s, or is behind the log; quotas' days wait at most a minute; look
//	                                  at the synchronisation of time. It ends when the clock is back, or has kept to its new time for a minute
//	rates        stale          200   all rates of a currency have expired and are served as stale; look at the sources, or type rates in
//	mail         failing        200   the newest try found no mail server that takes letters; codes wait; look at it and its settings
//	mail         full           200   as many letters wait as may: no code is taken; the same
//	sources      some_failing   200   a quarter of the sources asked, or more, gave nothing; tasard sources list says why
//	sources      all_failing    200   all of them; look at the way to the network
//	server       draining       503   the node was asked to stop and answers its last requests; nothing
//	load         overloaded     200   requests were refused as overloaded within the last 3 s; spread them, or add a node
//	connections  full           200   the cap is reached; look for clients that keep idle ones, or raise --connections
//	connections  short          200   no descriptor is left for a connection; raise the limit of open files
//
// A state shows within a second of its cause and goes within five of its end. What comes and goes stays for 3 s (engine.TroubleCalm), so
// that it does not flap. A mail server that is reached and refuses, and sources, are known to be well only after their next try.
// The management socket has /readyz too, with causes, and /metrics has tasard_condition{name, state}.
//
// # More than it can do
//
// conn/doc.go explains it. Here it is said which lane a request has (shed.go): health always answered, keys before no keys, history and
// conversions last. Whoever is refused gets 503 with Retry-After, uncharged. A client that is slow with its first request costs a few KiB;
// one that asks nothing for now what its connection holds: some 18 KiB, most of it two buffers of the library.
//
// # What is counted
//
// Every answer by route, method and status, and how long it took from the whole request to the ready answer (tally.go); errors by code, what
// the gate said, refusals for load by lane, connections. Stats (stats.go) adds it up, in plain numbers: whoever has a format for them turns
// them into that. All names come from closed lists, so that no caller can make new ones. An answer costs two additions, one more with a
// gate, and no look at the clock: the library reads it before and behind the handler anyway. Each connection counts in a shard of the
// tables. Config.Access is told of single answers (access.go), with the request id, and without path, query, key and address.
//
// # Why it is fast
//
// A page is immutable and shared by all who ask the same question, so what it becomes is kept with it (engine.Page.Memo). A
// body is encoded once; once a second it is copied and the 20 bytes of generatedAt are patched, in the gzip form together
// with the checksum, because that part of it is stored and not compressed. A warm page costs no allocation. Convert keeps a
// sheet with holes for the amounts, and fills the holes into the connection's own buffer. Nothing of a request's memory is
// kept: parameters become a query of strings that the catalogue or the program owns; only unknown ones are copied.
//
// Around the library some things are done another way, each measured (make bench-instructions, make bench): the lines of a good
// answer's head are set as one (head.go), a repeated question is not read again (plan.go), and in package conn the body is not copied behind
// its head, on one processor other connections go first before one reads again, and deadlines are armed only when they matter. All fall back
// to the library's way where theirs would not be right.
//
// # Where to change what
//
//	a parameter            its row and grammar in internal/params, its oracle in fuzz_test.go
//	an operation           a row in routes.go, a function in operations.go, its fields in answers.go
//	an account operation   a row in account.go, its fields in account_body.go, a function in account_answers.go
//	an error code          its status in errors.go
//	a header               headers.go; then "go test -run Golden -update", and read the diff
//	a limit of connections Limits in server.go
//	what is counted        tally.go, and its public form in stats.go
//	what a test needs      harness.go: Date by the clock, planted errors, one connection at a time (apitest)
//	what callers see       contract/openapi.yaml says it too; document_test.go tells where the two differ
//
// # Decisions
//
// The tests carry the ids of the decisions register. What that leaves open was decided here:
//
//   - H1: max-age is rounded down, to 0 in the last second, so that no cache shows a rate after its expiry (Q13).
//   - H2: a range that has only a beginning, after today, has no rows and is no error (T6, T7, T9).
//   - H3: empty parts of a query ("?", "&&") say nothing; a name without "=" has the empty value, which Q3 refuses.
//   - H4: the same unknown name is reported once, at most 64 characters of it; an answer has about 64 details at most.
//   - H5: a key in the URL is refused also when unknown parameters are allowed (Q1, Q4), in any spelling of small and capital letters.
//   - H6: CORS headers are on every answer but those under /v1/account/, also where no operation is: nothing there is private.
//   - H7: the 80 characters of a path id are counted as UTF-8 characters after decoding (Q9).
//   - H8: gzip is chosen when its quality is above 0 and not below that of identity where identity is named (Q11); errors
//     of 1 KiB and more are compressed too.
//   - H9: the ETag is SHA-256 of the body without generatedAt, 128 bits of it: the same on every node and after a restart (Q12).
//   - H10: a request without a method of the contract on an unknown path is 404: the route comes first (L7).
//   - H11: OPTIONS * is answered like OPTIONS of an operation.
//   - H12: the gate charges where it authenticates. A request that is not answered for want of data gets the charge back, and says
//     where its caller stands afterwards (L6, L7, L9).
//   - H13: with limits off the gate is asked only once keys are required, and only its refusals count (L10, K6).
//   - H14: whatever stands in Authorization and is not "Bearer", one blank and a well-formed key is a key that is refused, another
//     scheme too. A second Authorization header is no HTTP that we take: 400.
//   - H15: an entry of X-Forwarded-For that is no address ends the walk at the hop that wrote it; empty entries say nothing (L8).
//   - H16: with a gate answers vary by Authorization as well. Strict-Transport-Security is for the proxy that ends TLS.
//   - H17: a body that is not one JSON object is malformed_request, and the connection ends; everything else that is wrong with one is
//     invalid_parameters. A repeated field has the path [name, 1], as a parameter has (Q2).
//   - H18: an account operation that a page of another site asks for is invalid_parameters with the path Origin or Sec-Fetch-Site.
//   - H19: without a credential an account operation answers invalid_session, usage missing_key. Bad content is told only to those whose
//     credential is good.
//   - H20: usage is {"data":{"day":{"limit","remaining","resetAt"},"minute":{…}}}.
//   - H21: /livez, /healthz and /readyz are no part of /v1: GET and HEAD alone (405 to all others, OPTIONS too), any query is ignored, and
//     they are never charged or refused for a key or a quota. A node that is degraded is ready: its data are good.
//   - H22: a bare LF behind a request line or an empty line before it, which RFC 9112 section 2.2 leaves to the server, and blanks behind
//     a chunk size, for which section 7.1 has no room, are malformed_request: a proxy may take them for something else. A request that
//     breaks off is malformed_request too, and the answers before it are sent.
//   - H23: TLS is 1.2 or later, HTTP/1.1 alone, without a certificate of the client. Who speaks plain HTTP to it gets malformed_request in
//     plain HTTP. Strict-Transport-Security stays out all the same (H16): the node does not know what else its name serves.
//   - H24: once the server drains, every answer says Connection: close. At the end the listener is made deaf (Linux), those who have come are
//     accepted, and connections without a request are closed 250 ms later, so that a request on its way is still answered.
package httpapi
