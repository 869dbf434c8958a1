// Package keyindex maps an API key to the actor of its account. The node looks up the digest of the key for every
// request.
//
// The index compares only the first bytes of the digest, so a result is only a hint. The account must compare the whole
// digest, and check that the key is not revoked.
package keyindex
