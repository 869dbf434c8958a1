// Package keyindex finds the account of an API key and the account's actor by the digest of the key, for every request
// with a key.
//
// Reads take no lock and do not allocate. They may run concurrently with one writer. A result is only a hint: the
// account compares the whole digest and checks whether the key is revoked. An entry takes 24 bytes, and the table is
// at most three quarters full. A million keys take 50 MB.
package keyindex
