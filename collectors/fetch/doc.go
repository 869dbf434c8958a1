// Package fetch downloads the documents that source definitions ask for, over HTTP/1.1. It sends one request at a
// time to a host, obeys robots.txt, identifies itself, retries rarely and uses conditional requests. It does not
// parse documents and stores nothing on disk.
//
// # Data flow
//
//	Fetch                  a session: cookies, a transport, a timeout
//	  | each request of the page                    planned_request.go: address, headers, body
//	doWithRetries          up to three tries        retry.go: 2 s, 4 s, Retry-After
//	  |
//	doWithRedirects        up to five, same site    site.go: which addresses are allowed
//	  |
//	doConditional          robots.txt, validators   robots.go, robots_rules.go, cache.go
//	  |
//	roundTrip              host lock, pause         keyed_lock.go, transport.go
//	  |
//	check                  document or failure      response.go, fetch_error.go
//
// # Promises
//
//   - A request takes at most RequestTimeout, a Fetch at most FetchTimeout. A response of any size, compressed or
//     not, costs at most 16 MiB of memory.
//   - A document is complete: a body that is shorter than its header says is a failure.
//   - Certificates are always verified. Redirects to another site, or from https to http, are not followed.
//   - Bot walls and robots.txt are never circumvented; the failure is Blocked.
//   - Every error is a *source.Failure that names the address, what was found and what was wanted.
//   - Sources share no cookie, connection or certificate authority.
//
// # Results by response
//
//	200                               the document; empty if the last request of the page has no body
//	204, 205                          empty
//	304 to a conditional request      the cached document, with the time of this response
//	301 302 303 307 308               followed, or http_status
//	403; 401 with a body; a challenge page with any error status   blocked
//	429 500 502 503 504               http_status, after three tries
//	any other status                  http_status
//	too large, bad content encoding, a header above 64 KiB         wrong_content
//	no connection, a truncated body   network, after three tries
//	no response in time               timeout, after as many tries as fit
//	certificate or handshake refused  tls
//
// Challenge pages with status 200 are recognised by Definition.Parse.
//
// # robots.txt
//
// It is fetched once a day for each origin, before any other request, and read by RFC 9309 for the product token
// "tasard". A missing one (4xx, or a redirect that is not followed) allows everything. If it can't be fetched (5xx,
// no connection) the Fetch fails, unless an older copy is known. Crawl-delay, which is not in the RFC, lengthens the
// pause up to ten seconds. IgnoreRobots of a definition turns all of this off.
//
// # Limits
//
// No HTTP/2, no encoding but gzip, no proxy. Of Cache-Control only no-store has an effect: such a document is not
// cached. A cached document is used for one day, so that broken validators of a server can't freeze a rate.
package fetch
