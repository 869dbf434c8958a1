package httpapi

import (
	"encoding/binary"
	"encoding/hex"
	"sync/atomic"
)

// RequestID identifies a request in X-Request-Id and in the log.
type RequestID [16]byte

// RequestIDs returns a function for Config.RequestID. Its ids are pseudorandom hexadecimal digits and do not repeat.
// The seed should be random, so that two processes do not have the same ids.
func RequestIDs(seed uint64) func() RequestID {
	var number atomic.Uint64
	number.Store(mix(seed))
	return func() (id RequestID) {
		var b [len(id) / 2]byte
		binary.BigEndian.PutUint64(b[:], mix(number.Add(1)-1))
		hex.Encode(id[:], b[:])
		return id
	}
}

// mix is the last step of splitmix64. It is a bijection, so different numbers have different results.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
