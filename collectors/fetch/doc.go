// Package fetch gets the documents that definitions ask for, over net/http, with manners: one request a host at a time, robots.txt,
// an honest name, few and patient tries, conditional requests. It reads nothing out of a document, stores nothing on disk and starts
// no goroutine.
//
// # Promises
//
//   - Bounded: a request takes at most RequestTimeout, a Fetch with everything in it at most FetchTimeout. An answer of any size, packed
//     or not, costs at most 16 MiB of memory.
//   - A document is whole: a body that breaks off, or is shorter than its header says, is a failure and no document.
//   - Certificates are always verified. What leads to another site, or from https to http, is not followed.
//   - Nobody goes around a bot wall or robots.txt: Blocked is a result.
//   - Every error is a *source.Failure, and names the address, what was found and what was wanted.
//   - When Fetch returns, its connections are closed. Sources share no cookie, no connection and no authority.
//
// # The way of a document
//
//	Fetch ─► session: a jar for cookies, a transport, the budget
//	           │ for each request of the page, in order         step.go: address, headers, body
//	           ▼
//	         request: up to three tries                         retry.go: 2 s, 4 s, Retry-After
//	           ▼
//	         follow: up to five redirects within the site       site.go: where a page may send us
//	           ▼
//	         ask: robots.txt, then validators of last time      robots.go, rules.go; remembered.go
//	           ▼
//	         exchange: the host's turn, the pause, the request  lines.go, transport.go
//	           ▼
//	         judge: a document, or which failure                answer.go, fault.go
//
// # What becomes of an answer
//
//	200                              the document; empty, if it has no body and is the last of its page
//	204, 205                         empty
//	304 to a conditional request     the remembered document, with the time of this answer
//	301 302 303 307 308              followed, or http_status
//	403; 401 with a body; a challenge page with any error   blocked
//	429 500 502 503 504              http_status, after three tries
//	any other status                 http_status
//	too large, unknown or damaged packing, a header above 64 KiB   wrong_content
//	no connection, a cut, a body shorter than said          network, after three tries
//	silence, or slower than the limits                      timeout, after as many tries as fit
//	a certificate or a handshake that is refused            tls
//
// Challenges that answer 200 are Parse's to recognise; when a source is left in peace for a while is the collector's to say.
//
// # robots.txt
//
// Asked before anything else of its origin, once a day, and read as RFC 9309 says for the product token "tasard". One that is not
// there (4xx, or behind a redirect that is not followed) allows everything. One that can't be had (5xx, no connection) forbids
// everything, so that the Fetch fails as the robots.txt did; but what was once known is believed on until it can be had again.
// Crawl-delay, which is no part of the RFC, lengthens the pause, up to ten seconds. IgnoreRobots of a definition is the operator's
// word against all of it.
//
// # Not promised
//
//   - HTTP/2, compression other than gzip, a proxy from the environment.
//   - That a body that is longer than its header says is noticed: what is beyond is not read.
//   - That Vary or Cache-Control have any effect, but for no-store: such a document is not remembered.
//   - That "not modified" is believed for ever: after a day the whole document is asked for, so that broken validators of a server
//     can't freeze a rate.
package fetch
