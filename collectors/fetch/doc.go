// Package fetch downloads the documents of source definitions over HTTP/1.1. It sends one request at a time to a host,
// obeys robots.txt, identifies itself and retries at most twice. It does not parse documents and writes nothing to
// disk. Start at Client.Fetch.
//
// # Data flow
//
//	Fetch                  a session: cookies, a transport, a timeout
//	  | each request of the page                    session.go: address, headers, body
//	send                   key or token             secret.go
//	  |
//	doWithRetries          up to three tries        session.go: 2 s, 4 s, Retry-After
//	  |
//	doWithRedirects        up to five, same site    session.go: which addresses are allowed; robots.go: robots.txt
//	  |
//	roundTrip              host lock, pause             session.go, client.go
//	  |
//	check                  document or failure      session.go, client.go
//
// # Promises
//
//   - A request takes at most RequestTimeout, a Fetch at most FetchTimeout.
//   - A response costs at most 16 MiB of memory, whatever its size and compression.
//   - A document is complete. A body shorter than its Content-Length is a failure.
//   - Certificates are always verified. Redirects to another site, or from https to http, are not followed.
//   - Bot protections and robots.txt are respected; the failure is Blocked.
//   - Every error is a *source.Failure. It names the address, what was found and what was wanted.
//   - A secret is sent only with TLS or to this machine, never after a redirect, and is in no document and no error.
//   - Sources share no cookies, connections or certificate authorities.
//
// # Results by response
//
//	200 with a body                   the document
//	204, 205, 200 without a body      empty, if it is the last request of the page
//	301 302 303 307 308               followed, or http_status
//	403; 401 with a body, or for a request with a secret; a challenge page with any error status   blocked
//	429 500 502 503 504               http_status, after three tries
//	any other status                  http_status
//	too large, another content encoding                            wrong_content
//	no connection, a truncated or damaged response, a header above 64 KiB   network, after three tries
//	no response in time               timeout, after as many tries as fit
//	invalid certificate, or TLS failed otherwise                   tls
//
// A challenge page is the page of a bot protection in place of the document. With status 200, Definition.Parse
// recognises it.
//
// # robots.txt
//
// The robots.txt of each origin (scheme, host and port) is fetched once a day, before any other request. The rules for
// the product token "tasard" apply, as in RFC 9309. A missing robots.txt (4xx, or a redirect that is not followed)
// allows everything. If robots.txt can't be fetched (5xx, no connection), the client uses its older copy; without one,
// the Fetch fails. Crawl-delay, which is not in the RFC, is ignored. A definition with IgnoreRobots, or with a secret,
// skips all of this.
//
// # Limits
//
// No HTTP/2, no encoding but gzip, no proxy unless a definition names one, no cache: each fetch gets the whole
// document.
package fetch
