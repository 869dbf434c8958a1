// Package keyindex maps an API key to its account and to the actor of the account. For every request with an API key, a
// node looks up the digest of the key.
//
// Reads take no lock and do not allocate. A result is only a hint, because the index compares only the first bytes of
// the digest. The account must compare the whole digest, and check that the key is not revoked.
//
// An entry takes 24 bytes, and the table is at most three quarters full. A million keys take 50 MB.
package keyindex
