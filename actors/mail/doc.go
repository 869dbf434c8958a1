// Package mail brings login codes to e-mail addresses: letters go into a queue in memory and from there, by
// github.com/wneessen/go-mail, to one SMTP server. No caller ever waits for that server, and nothing that it says reaches
// a caller.
//
// # Promises
//
//   - Send returns at once. The letter is in the queue, or the queue is full and the error says so.
//   - A letter has one recipient, and its header and text are constants apart from From, To, Date, Message-ID and the
//     code. The code is in the text alone, never in the subject.
//   - With TLS on there is no fallback: without a certificate that is valid for the server's name nothing is said but
//     the greeting. A password is never sent without TLS.
//   - A letter whose code has expired is not sent. A newer letter to the same address replaces one that waits.
//   - Logs carry no code, no password, no whole address and no text that the server said after the certificate.
//   - Close ends the worker and every connection, in bounded time.
//
// # The way of a letter
//
//	Send ──► queue ──► worker ──► connection ──► sent
//	          ▲           │            │
//	          │           │            ├──► 5xx for this letter: refused
//	          └── later ──┼────────────┴──► 4xx, silence, a cut: once more, later, until the tries or the code run out
//	                      └── breaker open: nothing is tried, no try is used up
//
// One goroutine works: letters that are due together share a connection, and a letter that waits for its next try keeps
// no other waiting. Failures of the server (no connection, TLS, login, silence) in a row open the breaker; after its
// pause one letter tries for all. The waits grow twofold and are shortened by chance, by up to a half.
//
// # Not promised
//
//   - Durability: the queue is lost with the process. So are the codes in it, which are kept in memory only.
//   - Exactly one delivery: a connection that is cut after the text and before the answer leaves unknown whether the
//     server took the letter. It is sent again, with the same Message-ID.
//   - That an address exists: nobody is told of bounces.
//
// # Why the dialog is led here
//
// The library's own way to connect and send leaves the connection open when TLS or the login fails, does not say which of them did, takes
// a connection that was dialled by the caller for unencrypted, and after a failure in the middle of the text says QUIT, which ends the
// text properly so that the server keeps half a letter. So session.go opens and closes connections in some thirty lines, and the library
// renders letters and speaks SMTP.
package mail
