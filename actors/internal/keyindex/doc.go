// Package keyindex maps an API key to the actor of its account. For every request with an API key, a node looks up the
// digest of the key.
//
// A result is only a hint, because the index compares only the first bytes of the digest. The account must compare the
// whole digest, and check that the key is not revoked.
package keyindex
