// Package mail sends login codes as emails: Send puts them into a queue in memory, and a worker delivers them to one
// SMTP server, using github.com/wneessen/go-mail. Callers do not wait for the server and do not see its replies.
//
//	Send ──► queue ──► worker ──► connection ──► sent
//	          ▲           │            │
//	          │           │            ├──► 5xx for this email: refused
//	          └── retry ──┼────────────┴──► 4xx, timeout, closed: retried until no attempt is left or the code expires
//	                      └── breaker open: nothing is attempted, and no attempt is used up
//
// There is one worker goroutine. Emails that are due together share a connection. An email that waits for its next
// attempt does not delay others. Consecutive failures of the server (connection, TLS, login, timeout) open the breaker;
// after the cooldown one email is attempted. Delays double and are shortened at random by up to a half.
//
// # Promises
//
//   - Send returns at once: either the email is in the queue, or the error says that the queue is full.
//   - An email has one recipient, and constant headers and text apart from From, To, Date, Message-ID and the code,
//     which is only in the text.
//   - TLS has no fallback: if the certificate is not valid for the host, the mailer sends no email and no password. A
//     password is never sent without TLS.
//   - An email with an expired code is not sent. A newer email to the same address replaces a waiting one.
//   - Logs contain no code, no password, no complete address, and no text that the server sent after its certificate.
//   - Close ends the worker and every connection in bounded time.
//
// # Not promised
//
//   - Durability: the queue is only in memory and is lost when the process exits.
//   - Exactly one delivery: if a connection fails after the text and before the answer, the email is sent again, with
//     the same Message-ID.
//   - Notice of bounces.
//
// # Connections
//
// session.go opens and closes connections itself, and uses the library only for SMTP and for composing. The library
// would leave a connection open after a failed TLS handshake or login, and not report which of them failed. It would
// regard a connection of its caller as unencrypted. And it would send QUIT after a failure within DATA, so that the
// server accepts a truncated email.
package mail
