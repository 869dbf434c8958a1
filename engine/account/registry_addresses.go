package account

import "slices"

// addressTable has the addresses of the log, in chunks that snapshots share. A snapshot takes microseconds; the first
// change of a chunk after it copies only that chunk.
type addressTable struct {
	index      map[Digest]uint32 // position of an address's row in all chunks
	chunks     []*addressChunk
	ownedSince []uint64 // of each chunk: the epoch since which no snapshot shares it
	used       uint32   // rows that were ever used
	free       []uint32 // of them, those that were removed
	epoch      uint64   // number of snapshots
}

const addressChunkRows = 256

// addressChunk has rows; an unused one is zero.
type addressChunk [addressChunkRows]AddressState

// row returns a copy of the row of an address, the zero row when there is none.
func (t *addressTable) row(email EmailID) AddressState {
	if at, known := t.index[email.digest]; known {
		return t.chunks[at/addressChunkRows][at%addressChunkRows]
	}
	return AddressState{}
}

// edit returns the row of an address for a change, a new one when there is none. It is valid until the next call.
func (t *addressTable) edit(email EmailID) *AddressState {
	at, known := t.index[email.digest]
	if known {
		return t.mutable(at)
	}
	if n := len(t.free); n > 0 {
		at, t.free = t.free[n-1], t.free[:n-1]
	} else {
		at = t.used
		t.used++
		if int(at/addressChunkRows) == len(t.chunks) {
			t.chunks, t.ownedSince = append(t.chunks, &addressChunk{}), append(t.ownedSince, t.epoch)
		}
	}
	t.index[email.digest] = at
	row := t.mutable(at)
	*row = AddressState{Email: email}
	return row
}

// mutable returns a row that no snapshot shares.
func (t *addressTable) mutable(at uint32) *AddressState {
	chunk := at / addressChunkRows
	if t.ownedSince[chunk] != t.epoch {
		copied := *t.chunks[chunk]
		t.chunks[chunk], t.ownedSince[chunk] = &copied, t.epoch
	}
	return &t.chunks[chunk][at%addressChunkRows]
}

// remove removes the rows for which obsolete reports true.
func (t *addressTable) remove(obsolete func(*AddressState) bool) {
	for at := range t.used {
		row := &t.chunks[at/addressChunkRows][at%addressChunkRows]
		if !row.Email.IsZero() && obsolete(row) {
			delete(t.index, row.Email.digest)
			*t.mutable(at) = AddressState{}
			t.free = append(t.free, at)
		}
	}
}

// snapshot returns all rows as they are now.
func (t *addressTable) snapshot() []*addressChunk {
	t.epoch++
	return slices.Clone(t.chunks)
}
