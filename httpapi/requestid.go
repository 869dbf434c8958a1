package httpapi

import (
	"encoding/binary"
	"encoding/hex"
	"sync/atomic"
)

const (
	requestIDBytes = 16
	// requestIDsBlock is how many ids are made at once, so that an id costs no allocation of its own.
	requestIDsBlock = 256
)

// RequestIDs gives ids of 16 hexadecimal digits that do not repeat within 2^64 calls and look like chance. The seed should
// be random, so that two processes do not share ids. The function is safe for concurrent use.
func RequestIDs(seed uint64) func() string {
	ids := &requestIDs{seed: mix(seed)}
	return ids.next
}

type requestIDs struct {
	seed  uint64
	count atomic.Uint64
	block atomic.Pointer[idBlock]
}

// idBlock is a run of ids, one after the other in one text.
type idBlock struct {
	number uint64
	text   string
}

// nextConn takes the next number. Whoever is first in a block makes its text; two that do it at once make the same.
func (r *requestIDs) next() string {
	n := r.count.Add(1) - 1
	block := r.block.Load()
	if block == nil || block.number != n/requestIDsBlock {
		block = r.newBlock(n / requestIDsBlock)
		r.block.Store(block)
	}
	at := n % requestIDsBlock * requestIDBytes
	return block.text[at : at+requestIDBytes]
}

func (r *requestIDs) newBlock(number uint64) *idBlock {
	var id [requestIDBytes / 2]byte
	text := make([]byte, 0, requestIDsBlock*requestIDBytes)
	for i := range uint64(requestIDsBlock) {
		binary.BigEndian.PutUint64(id[:], mix(r.seed+number*requestIDsBlock+i))
		text = hex.AppendEncode(text, id[:])
	}
	return &idBlock{number: number, text: string(text)}
}

// mix is the finisher of splitmix64: a bijection, so different numbers stay different.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
