package account

import "slices"

// addressTable contains the e-mail addresses in the log, in chunks. Snapshots share the chunks, so making a snapshot
// takes only microseconds. The first change of a chunk after a snapshot copies it.
type addressTable struct {
	index      map[Digest]uint32 // number of the row of an address, counted over all chunks
	chunks     []*addressChunk
	ownedSince []uint64 // for each chunk, the epoch when it was made; a snapshot shares chunks of earlier epochs
	used       uint32   // number of rows ever used
	free       []uint32 // numbers of unused rows below used
	epoch      uint64   // number of snapshots made so far
}

const addressChunkRows = 256

// addressChunk is a fixed number of rows. Unused rows are zero.
type addressChunk [addressChunkRows]AddressState

// row returns a copy of the row of an address, or the zero row.
func (t *addressTable) row(email EmailID) AddressState {
	if number, known := t.index[email.digest]; known {
		return t.chunks[number/addressChunkRows][number%addressChunkRows]
	}
	return AddressState{}
}

// edit returns the row of an address for changes, and creates it if necessary. The pointer is valid until the next
// call.
func (t *addressTable) edit(email EmailID) *AddressState {
	number, known := t.index[email.digest]
	if known {
		return t.mutable(number)
	}
	if n := len(t.free); n > 0 {
		number, t.free = t.free[n-1], t.free[:n-1]
	} else {
		number = t.used
		t.used++
		if int(number/addressChunkRows) == len(t.chunks) {
			t.chunks, t.ownedSince = append(t.chunks, &addressChunk{}), append(t.ownedSince, t.epoch)
		}
	}
	t.index[email.digest] = number
	row := t.mutable(number)
	*row = AddressState{Email: email}
	return row
}

// mutable returns a row for changes. If a snapshot shares the row, it copies the chunk first.
func (t *addressTable) mutable(number uint32) *AddressState {
	chunk := number / addressChunkRows
	if t.ownedSince[chunk] != t.epoch {
		copied := *t.chunks[chunk]
		t.chunks[chunk], t.ownedSince[chunk] = &copied, t.epoch
	}
	return &t.chunks[chunk][number%addressChunkRows]
}

// remove removes obsolete rows.
func (t *addressTable) remove(obsolete func(*AddressState) bool) {
	for number := range t.used {
		row := &t.chunks[number/addressChunkRows][number%addressChunkRows]
		if !row.Email.IsZero() && obsolete(row) {
			delete(t.index, row.Email.digest)
			*t.mutable(number) = AddressState{}
			t.free = append(t.free, number)
		}
	}
}

// snapshot returns the current rows. They must not be changed.
func (t *addressTable) snapshot() []*addressChunk {
	t.epoch++
	return slices.Clone(t.chunks)
}
