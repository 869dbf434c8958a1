// Package mail sends login codes as emails through one SMTP server. Send puts an email into a queue in memory. A worker
// goroutine sends the queued emails. Callers of Send do not wait for the server.
//
//	Send ──► queue ──► worker ──► SMTP connection ──► sent
//	          ▲           │            │
//	          │           │            ├──► status 5xx for this email: dropped
//	          └── retry ──┼────────────┴──► status 4xx, timeout, closed: retried, 10 attempts in all
//	                      └── circuit breaker open: no attempt
//
// Emails that can be sent at the same time share a connection. The delay before a retry doubles with each attempt and
// is shortened at random by up to a half. Other emails do not wait for a retry. Several consecutive failures of the
// server (connection, TLS, login, timeout) open the circuit breaker. While it is open, no email is attempted. After its
// cooldown the worker attempts one email.
//
// # Promises
//
//   - Send returns at once. If it returns nil, the email is in the queue.
//   - An email has one recipient. Only From, To, Date, Message-ID and the code differ between emails.
//   - If the server's certificate is not valid for the host, no email and no password is sent. Without TLS no password
//     is sent.
//   - An email with an expired code is not sent. A newer email replaces an email to the same address in the queue.
//   - Logs contain no code, no password, no complete address, and no text from the server's SMTP replies.
//   - Close ends the worker and closes every connection within a limited time.
//
// # Not promised
//
//   - Durability: when the process exits, the queue is lost.
//   - Exactly one delivery: if the connection fails after the text and before the server's reply, the email is sent
//     again with the same Message-ID.
//   - Reports about bounced emails.
//
// # Library
//
// Package mail uses github.com/wneessen/go-mail only for the SMTP dialog and to compose emails. session.go opens and
// closes connections itself, because the library has these faults:
//
//   - After a failed TLS handshake or login it leaves the connection open, and does not report which of them failed.
//   - It regards every connection that its caller has opened as unencrypted.
//   - After a failure within DATA it sends QUIT, so that the server accepts a truncated email.
//
// Start with mailer.go and worker.go.
package mail
