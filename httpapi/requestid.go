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
func RequestIDs(seed uint64) func(number uint64) RequestID {
	seed = mix(seed)
	return func(number uint64) (id RequestID) {
		var b [len(id) / 2]byte
		binary.BigEndian.PutUint64(b[:], mix(seed+number))
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

// requestNumbers generates the numbers for Config.RequestID. Usually it reserves a block of numbers at a time, so that
// processors rarely write the shared counter.
type requestNumbers struct{ next atomic.Uint64 }

// numberBlock is a range of reserved numbers that are not used yet.
type numberBlock struct{ next, end uint64 }

const numberBlockLength = 256

// take returns a number from b. If b is empty, it reserves a new block first.
func (n *requestNumbers) take(b *numberBlock) uint64 {
	if b.next == b.end {
		b.end = n.next.Add(numberBlockLength)
		b.next = b.end - numberBlockLength
	}
	b.next++
	return b.next - 1
}

// takeOne returns a number without reserving a block.
func (n *requestNumbers) takeOne() uint64 { return n.next.Add(1) - 1 }
