package account

import "slices"

// addressTable is what the log says of addresses, in leaves that a cut shares: handing all of them over is a matter of microseconds, and the
// first change of a leaf after a cut copies that leaf alone.
type addressTable struct {
	index      map[Digest]uint32 // where the row of an address is
	chunks     []*addressChunk
	ownedSince []uint64 // of each leaf: since which cut it belongs to the book alone
	used       uint32   // rows that were ever used, from the first leaf on
	free       []uint32 // of them, those that were forgotten
	epoch      uint64   // how many cuts there were
}

const addressChunkRows = 256

// addressChunk holds rows; the zero one is not in use.
type addressChunk [addressChunkRows]AddressState

// row is a copy of the row of an address, the zero one when there is none.
func (b *addressTable) row(email EmailID) AddressState {
	if at, known := b.index[email.digest]; known {
		return b.chunks[at/addressChunkRows][at%addressChunkRows]
	}
	return AddressState{}
}

// edit is the row of an address, made when it is new, to be changed before anything else is done with the book.
func (b *addressTable) edit(email EmailID) *AddressState {
	at, known := b.index[email.digest]
	if known {
		return b.mutable(at)
	}
	if n := len(b.free); n > 0 {
		at, b.free = b.free[n-1], b.free[:n-1]
	} else {
		at = b.used
		b.used++
		if int(at/addressChunkRows) == len(b.chunks) {
			b.chunks, b.ownedSince = append(b.chunks, &addressChunk{}), append(b.ownedSince, b.epoch)
		}
	}
	b.index[email.digest] = at
	row := b.mutable(at)
	*row = AddressState{Email: email}
	return row
}

// mutable is a row that no cut sees.
func (b *addressTable) mutable(at uint32) *AddressState {
	leaf := at / addressChunkRows
	if b.ownedSince[leaf] != b.epoch {
		copied := *b.chunks[leaf]
		b.chunks[leaf], b.ownedSince[leaf] = &copied, b.epoch
	}
	return &b.chunks[leaf][at%addressChunkRows]
}

// remove lets go of the rows that gone names.
func (b *addressTable) remove(gone func(*AddressState) bool) {
	for at := range b.used {
		row := &b.chunks[at/addressChunkRows][at%addressChunkRows]
		if !row.Email.IsZero() && gone(row) {
			delete(b.index, row.Email.digest)
			*b.mutable(at) = AddressState{}
			b.free = append(b.free, at)
		}
	}
}

// snapshot is all rows as they are now, never changed again.
func (b *addressTable) snapshot() []*addressChunk {
	b.epoch++
	return slices.Clone(b.chunks)
}
