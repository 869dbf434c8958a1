// Package keyindex finds the account of an API key, and the account's actor, by the key's digest. Every request with
// a key uses it.
//
// Reads take no lock and allocate nothing; one writer at a time may run beside them. A result is a hint: the account
// compares the whole digest and knows whether the key is revoked. An entry takes 24 bytes in a table that is at most
// three quarters full: a million keys take 50 MB.
package keyindex
