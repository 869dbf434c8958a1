// Package keyindex leads from the digest of an API key to the account that may have it, and to its actor. Every request with a key asks it.
//
// Reads take no lock, wait for nothing and allocate nothing; they may run beside one writer at a time. An answer is a hint:
// the account compares the whole digest, and knows whether the key is revoked. An entry takes 24 bytes in a table that is at
// most three quarters full: a million keys take 50 MB.
package keyindex
