// Package source is what a source is, as data, and how its documents are read: bytes go in, observations or a typed Failure
// come out. It fetches nothing, starts nothing and reads no clock.
package source
