package httpapi

import (
	"encoding/binary"
	"encoding/hex"
	"sync/atomic"
)

// RequestID is the text that names a request, in X-Request-Id and in the log.
type RequestID [16]byte

// RequestIDs gives a Config.RequestID of hexadecimal digits that look random and do not repeat within 2^64 numbers.
// The seed should be random, so that two processes do not share ids.
func RequestIDs(seed uint64) func(number uint64) RequestID {
	seed = mix(seed)
	return func(number uint64) (id RequestID) {
		var b [len(id) / 2]byte
		binary.BigEndian.PutUint64(b[:], mix(seed+number))
		hex.Encode(id[:], b[:])
		return id
	}
}

// mix is the finisher of splitmix64: a bijection, so different numbers stay different.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// requestNumbers hands out the numbers of request ids. Requests of connections take them in blocks, so that not
// every request of every processor writes the counter.
type requestNumbers struct{ next atomic.Uint64 }

// numberBlock are numbers that were taken and not used yet.
type numberBlock struct{ next, end uint64 }

const numberBlockLength = 256

func (n *requestNumbers) take(b *numberBlock) uint64 {
	if b.next == b.end {
		b.end = n.next.Add(numberBlockLength)
		b.next = b.end - numberBlockLength
	}
	b.next++
	return b.next - 1
}

func (n *requestNumbers) takeOne() uint64 { return n.next.Add(1) - 1 }

// newID names a request.
func (s *Server) newID(a *requestState) RequestID {
	if a.conn == nil { // of a test: its ids follow each other
		return s.config.RequestID(s.numbers.takeOne())
	}
	return s.config.RequestID(s.numbers.take(&a.numbers))
}

// newIDText is newID for an answer that is not written in one piece.
func (s *Server) newIDText() string {
	id := s.config.RequestID(s.numbers.takeOne())
	return string(id[:])
}
