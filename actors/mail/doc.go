// Package mail sends login codes as emails: Send puts them into a queue in memory, and a worker delivers them to one
// SMTP server, using github.com/wneessen/go-mail. No caller waits for that server or sees its answers.
//
//	Send ──► queue ──► worker ──► connection ──► sent
//	          ▲           │            │
//	          │           │            ├──► 5xx for this email: refused
//	          └── retry ──┼────────────┴──► 4xx, timeout, closed: again later, until attempts or code run out
//	                      └── breaker open: nothing is attempted, and no attempt is used up
//
// There is one worker goroutine. Emails that are due together share a connection, and an email that waits for its
// next attempt delays no other. Failures of the server in a row (connection, TLS, login, timeout) open the breaker;
// after its pause one email tests the server. Delays double and are shortened at random by up to a half.
//
// # Promises
//
//   - Send returns at once: either the email is in the queue, or the error says that the queue is full.
//   - An email has one recipient, and constant headers and text apart from From, To, Date, Message-ID and the code,
//     which is only in the text.
//   - With TLS there is no fallback: without a certificate valid for the server's name nothing is sent after the
//     greeting. A password is never sent without TLS.
//   - An email with an expired code is not sent. A newer email to the same address replaces a waiting one.
//   - Logs have no code, password or complete address, and nothing that the server sent after its certificate.
//   - Close ends the worker and every connection in bounded time.
//
// # Not promised
//
//   - Durability: the queue is lost with the process, and so are its codes, which are only in memory.
//   - Exactly one delivery: if a connection fails after the text and before the answer, the email is sent again, with
//     the same Message-ID.
//   - Notice of bounces.
//
// # Connections
//
// session.go opens and closes connections itself and uses the library for SMTP and for rendering. The library would
// leave a connection open after a failed TLS handshake or login without saying which failed, take a connection
// dialled by its caller for unencrypted, and send QUIT after a failure in the middle of a text, which completes the
// text, so that the server accepts a truncated email.
package mail
