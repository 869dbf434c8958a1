package account

import "slices"

// addressBook is what the log says of addresses, in leaves that a cut shares: handing all of them over is a matter of microseconds, and the
// first change of a leaf after a cut copies that leaf alone.
type addressBook struct {
	index  map[Digest]uint32 // where the row of an address is
	leaves []*addressLeaf
	owned  []uint64 // of each leaf: since which cut it belongs to the book alone
	used   uint32   // rows that were ever used, from the first leaf on
	free   []uint32 // of them, those that were forgotten
	epoch  uint64   // how many cuts there were
}

const addressLeafRows = 256

// addressLeaf holds rows; the zero one is not in use.
type addressLeaf [addressLeafRows]AddressState

// row is a copy of the row of an address, the zero one when there is none.
func (b *addressBook) row(email EmailID) AddressState {
	if at, known := b.index[email.digest]; known {
		return b.leaves[at/addressLeafRows][at%addressLeafRows]
	}
	return AddressState{}
}

// edit is the row of an address, made when it is new, to be changed before anything else is done with the book.
func (b *addressBook) edit(email EmailID) *AddressState {
	at, known := b.index[email.digest]
	if known {
		return b.own(at)
	}
	if n := len(b.free); n > 0 {
		at, b.free = b.free[n-1], b.free[:n-1]
	} else {
		at = b.used
		b.used++
		if int(at/addressLeafRows) == len(b.leaves) {
			b.leaves, b.owned = append(b.leaves, &addressLeaf{}), append(b.owned, b.epoch)
		}
	}
	b.index[email.digest] = at
	row := b.own(at)
	*row = AddressState{Email: email}
	return row
}

// own is a row that no cut sees.
func (b *addressBook) own(at uint32) *AddressState {
	leaf := at / addressLeafRows
	if b.owned[leaf] != b.epoch {
		copied := *b.leaves[leaf]
		b.leaves[leaf], b.owned[leaf] = &copied, b.epoch
	}
	return &b.leaves[leaf][at%addressLeafRows]
}

// forget lets go of the rows that gone names.
func (b *addressBook) forget(gone func(*AddressState) bool) {
	for at := range b.used {
		row := &b.leaves[at/addressLeafRows][at%addressLeafRows]
		if !row.Email.IsZero() && gone(row) {
			delete(b.index, row.Email.digest)
			*b.own(at) = AddressState{}
			b.free = append(b.free, at)
		}
	}
}

// cut is all rows as they are now, never changed again.
func (b *addressBook) cut() []*addressLeaf {
	b.epoch++
	return slices.Clone(b.leaves)
}
