// Package acme gets the certificate of one DNS name from an ACME authority
// (RFC 8555), such as Let's Encrypt, and renews it.
//
//	m, err := acme.Open(acme.Config{Name: "example.com", Dir: "data/https"})
//	go m.Run(ctx)
//
// The authority checks that the node owns the name: it asks for a token at
// http://NAME/.well-known/acme-challenge/ on port 80 (challenge http-01). Manager.ServeHTTP
// answers this request and redirects all others to HTTPS, so serve it on port 80.
//
// The files are in one directory for each authority, so that a test authority's certificate is never served as a real
// one:
//
//	DIR/HOST/account.key  the key of the account at the authority
//	DIR/HOST/NAME.pem     the private key of the certificate, and its chain
//
// Guarantees:
//
//   - A new certificate is stored, and read at the next start. The old one is in use
//     until the new one is complete.
//   - Renewal begins when a third of the lifetime is left, at most 30 days before
//     the end. After a failure the pause grows from one minute to one hour, or is what
//     the authority asks for, because authorities block clients that ask more often.
//   - Handshakes never wait for the authority. Without a certificate they fail.
//   - Run returns soon after its context ends. The package starts no other goroutine.
//
// golang.org/x/crypto/acme speaks the protocol. autocert, its package above it, is not
// used: its timers can't be stopped, and it does not say why a renewal has failed.
package acme
