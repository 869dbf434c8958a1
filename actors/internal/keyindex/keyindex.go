package keyindex

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine/account"
)

// Index maps fingerprints of digests to accounts and their actors. Readers take no lock; Claim, Fill, Release and
// SetActor may run beside them. It is a hash table with open addressing. An entry's account is written before its
// fingerprint, so a reader sees all of an entry or none. A full table is replaced by a larger one; readers of the old
// one miss only actors that are set meanwhile.
type Index struct {
	current atomic.Pointer[table]
	writing sync.Mutex
	used    int // slots, including released ones
}

type table struct {
	mask  uint64
	slots []slot
}

type slot struct {
	fingerprint atomic.Uint64 // first bytes of the digest; 0 = free
	account     atomic.Uint64 // 0 = released
	actor       atomic.Pointer[mailbox.Ref]
}

const (
	slotsMin        = 1 << 10
	loadNumerator   = 3 // the table is larger when this many
	loadDenominator = 4 // of this many slots are used
)

// New returns an empty index.
func New() *Index {
	x := &Index{}
	x.current.Store(newTable(slotsMin))
	return x
}

func newTable(size int) *table {
	return &table{mask: uint64(size - 1), slots: make([]slot, size)}
}

// fingerprintOf is never 0.
func fingerprintOf(digest account.Digest) uint64 {
	return max(1, binary.LittleEndian.Uint64(digest[:]))
}

// Lookup returns the account that may have the key with the digest, 0 if there is none, and its actor, nil if none is
// known. An actor that was retired refuses messages.
func (x *Index) Lookup(digest account.Digest) (account uint64, actor *mailbox.Ref) {
	table, want := x.current.Load(), fingerprintOf(digest)
	for at := want & table.mask; ; at = (at + 1) & table.mask {
		switch slot := &table.slots[at]; slot.fingerprint.Load() {
		case 0:
			return 0, nil
		case want:
			return slot.account.Load(), slot.actor.Load()
		}
	}
}

// SetActor sets the actor of an account under one of its keys; nil means none. It may run beside everything else, one
// call at a time for each account. While the table grows it may have no effect.
func (x *Index) SetActor(digest account.Digest, account uint64, actor *mailbox.Ref) {
	want := fingerprintOf(digest)
	if slot := x.current.Load().find(want); slot.fingerprint.Load() == want && slot.account.Load() == account {
		slot.actor.Store(actor)
	}
}

// Claim assigns a digest's fingerprint to an account. It returns false if another account has it: then draw another
// key.
func (x *Index) Claim(digest account.Digest, account uint64) bool {
	x.writing.Lock()
	defer x.writing.Unlock()
	table, want := x.current.Load(), fingerprintOf(digest)
	if (x.used+1)*loadDenominator > len(table.slots)*loadNumerator {
		table = x.grow(table)
	}
	slot := table.find(want)
	if slot.fingerprint.Load() == want {
		owner := slot.account.Load()
		if owner != 0 && owner != account {
			return false
		}
		slot.actor.Store(nil)
		slot.account.Store(account)
		return true
	}
	slot.account.Store(account)
	slot.fingerprint.Store(want)
	x.used++
	return true
}

// Claim is a fingerprint and its account.
type Claim struct{ fingerprint, account uint64 }

// NewClaim is the claim of an account to the fingerprint of a digest.
func NewClaim(digest account.Digest, account uint64) Claim {
	return Claim{fingerprintOf(digest), account}
}

// Fill adds the claims of a replay to an empty index, before it has readers, in a table of the final size. If two
// accounts claim the same fingerprint it returns one of them, and false.
func (x *Index) Fill(all [][]Claim) (account uint64, whole bool) {
	x.writing.Lock()
	defer x.writing.Unlock()
	count := 0
	for _, claims := range all {
		count += len(claims)
	}
	table := newTable(tableSize(count))
	for _, claims := range all {
		for _, claim := range claims {
			slot := table.find(claim.fingerprint)
			if owner := slot.account.Load(); owner == claim.account {
				continue
			} else if owner != 0 {
				return claim.account, false
			}
			slot.account.Store(claim.account)
			slot.fingerprint.Store(claim.fingerprint)
			x.used++
		}
	}
	x.current.Store(table)
	return 0, true
}

// tableSize is the size of a table that count entries fill at most half.
func tableSize(count int) int {
	size := slotsMin
	for size < 2*(count+1) {
		size *= 2
	}
	return size
}

// Release gives up the fingerprint of a key that was never created or that its account has forgotten.
func (x *Index) Release(digest account.Digest, account uint64) {
	x.writing.Lock()
	defer x.writing.Unlock()
	want := fingerprintOf(digest)
	if slot := x.current.Load().find(want); slot.fingerprint.Load() == want && slot.account.Load() == account {
		slot.account.Store(0)
		slot.actor.Store(nil)
	}
}

// find is the slot of a fingerprint, or the free slot where it belongs.
func (t *table) find(fingerprint uint64) *slot {
	for at := fingerprint & t.mask; ; at = (at + 1) & t.mask {
		if p := t.slots[at].fingerprint.Load(); p == 0 || p == fingerprint {
			return &t.slots[at]
		}
	}
}

// grow replaces the table by one that entries in use fill at most half. The caller holds the lock.
func (x *Index) grow(old *table) *table {
	live := 0
	for i := range old.slots {
		if old.slots[i].account.Load() != 0 {
			live++
		}
	}
	table := newTable(tableSize(live))
	for i := range old.slots {
		if account := old.slots[i].account.Load(); account != 0 {
			slot := table.find(old.slots[i].fingerprint.Load())
			slot.account.Store(account)
			slot.actor.Store(old.slots[i].actor.Load())
			slot.fingerprint.Store(old.slots[i].fingerprint.Load())
		}
	}
	x.used = live
	x.current.Store(table)
	return table
}
