// Package acme gets the certificate of one DNS name from an ACME authority
// (RFC 8555), such as Let's Encrypt, and renews it.
//
// The authority checks that the node owns the name: it asks for a token at
// http://NAME/.well-known/acme-challenge/ on port 80 (challenge http-01). Manager.ServeHTTP
// answers this request and redirects all others to HTTPS.
//
// The files are in one directory for each authority, so that a test authority's certificate is never served as a real
// one: DIR/HOST/account.key has the key of the account, DIR/HOST/NAME.pem the certificate's key and chain.
//
// Guarantees:
//
//   - The old certificate is in use until the new one is complete.
//   - Renewal begins when a third of the lifetime is left, at most 30 days before
//     the end. After a failure the pause grows from one minute to one hour, or is what
//     the authority asks for, because authorities block clients that ask more often.
//   - Handshakes never wait for the authority. Without a certificate they fail.
//   - Run returns soon after its context ends. The package starts no other goroutine.
//
// The Manager of golang.org/x/crypto/acme/autocert is not used, only its files: it drops the reason of a failure, its
// attempts and renewals end with no context, each attempt may cost two failed checks of the few that authorities
// allow, and what keeps these promises around it is as long as this package.
package acme
