package account

import (
	"iter"
	"slices"
	"time"
)

// addressBook is what the log says of addresses: rows without pointers, which cost the garbage collector nothing however many they
// are, in leaves that a cut shares: handing all of them over is a matter of microseconds, and the first change of a leaf after a
// cut copies that leaf alone.
type addressBook struct {
	index  map[Digest]uint32 // where the row of an address is
	leaves []*addressLeaf
	owned  []uint64 // of each leaf: since which cut it belongs to the book alone
	used   uint32   // rows that were ever used, from the first leaf on
	free   []uint32 // of them, those that were forgotten
	epoch  uint64   // how many cuts there were
	masks  masks
}

const (
	addressLeafRows = 256
	// masksMax is how many masks may be kept before those of forgotten addresses are looked for.
	masksMax = 4096
)

type addressLeaf [addressLeafRows]addressRow

// addressRow is an address and its counters; the zero one is of an address that the log does not know.
type addressRow struct {
	digest  Digest
	account uint64        // 0 before the first login
	again   time.Duration // from when another code may be asked for, steady
	touched time.Duration // the newest fact of it, steady
	mails   tally
	wrong   tally
	mask    uint32
	kept    bool // the row is in use
}

func newAddressBook(size int) addressBook {
	return addressBook{index: make(map[Digest]uint32, size), masks: masks{numbers: map[string]uint32{}}}
}

// row is a copy of the row of an address, the zero one when there is none.
func (b *addressBook) row(email EmailID) addressRow {
	if at, known := b.index[email.digest]; known {
		return b.leaves[at/addressLeafRows][at%addressLeafRows]
	}
	return addressRow{}
}

// edit is the row of an address, made when it is new, to be changed before anything else is done with the book.
func (b *addressBook) edit(email EmailID) *addressRow {
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
	*row = addressRow{digest: email.digest, mask: b.masks.number(email.mask), kept: true}
	return row
}

// own is a row that no cut sees.
func (b *addressBook) own(at uint32) *addressRow {
	leaf := at / addressLeafRows
	if b.owned[leaf] != b.epoch {
		copied := *b.leaves[leaf]
		b.leaves[leaf], b.owned[leaf] = &copied, b.epoch
	}
	return &b.leaves[leaf][at%addressLeafRows]
}

// forget lets go of the rows that gone names.
func (b *addressBook) forget(gone func(*addressRow) bool) {
	for at := range b.used {
		row := &b.leaves[at/addressLeafRows][at%addressLeafRows]
		if row.kept && gone(row) {
			delete(b.index, row.digest)
			*b.own(at) = addressRow{}
			b.free = append(b.free, at)
		}
	}
	if len(b.masks.texts) > masksMax {
		b.remask()
	}
}

// remask forgets masks that no address has.
func (b *addressBook) remask() {
	old := b.masks
	b.masks = masks{numbers: map[string]uint32{}}
	for _, at := range b.index {
		row := b.own(at)
		row.mask = b.masks.number(old.texts[row.mask])
	}
}

// cut is all rows as they are now.
func (b *addressBook) cut() addressCut {
	b.epoch++
	return addressCut{leaves: slices.Clone(b.leaves), used: b.used, masks: slices.Clip(b.masks.texts)}
}

// addressCut is an addressBook at one moment; it never changes, and anybody may read it.
type addressCut struct {
	leaves []*addressLeaf
	used   uint32
	masks  []string
}

// all visits the addresses in no order that means anything.
func (c *addressCut) all() iter.Seq[AddressState] {
	return func(yield func(AddressState) bool) {
		for at := range c.used {
			row := &c.leaves[at/addressLeafRows][at%addressLeafRows]
			if row.kept && !yield(row.state(c.masks[row.mask])) {
				return
			}
		}
	}
}

func (a *addressRow) state(mask string) AddressState {
	return AddressState{
		Email: EmailID{a.digest, mask}, Account: a.account, Again: a.again, Touched: a.touched,
		MailsDay: a.mails.day, MailsOfTheDay: a.mails.count, WrongDay: a.wrong.day, WrongOfTheDay: a.wrong.count,
	}
}

// masks are the masks of addresses, of which there are few. One that has its number keeps it.
type masks struct {
	texts   []string
	numbers map[string]uint32
}

func (m *masks) number(mask string) uint32 {
	number, known := m.numbers[mask]
	if !known {
		number = uint32(len(m.texts))
		m.texts = append(m.texts, mask)
		m.numbers[mask] = number
	}
	return number
}
