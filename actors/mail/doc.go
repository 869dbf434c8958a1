// Package mail sends login codes as emails through one SMTP server. Send puts an email into a queue in memory and
// returns. A worker goroutine sends the queued emails.
//
//	Send ──► queue ──► worker ──► SMTP connection ──► sent
//	          ▲                      │
//	          │                      ├──► status 5xx for this email: dropped
//	          └──────────────────────┴──► status 4xx, connection, TLS, login, timeout: retried until the code expires
//
// Each email uses its own connection. The delay before a retry doubles with each failure, up to two minutes. The health
// condition of the mailer ends with the next email that the server answers.
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
// Package mail uses github.com/wneessen/go-mail to compose emails and for the SMTP dialog. smtp.go opens and closes the
// connection itself, because the library leaves it open after a failed TLS handshake or login.
package mail
