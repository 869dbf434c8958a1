package keyindex

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine/account"
)

// Index maps fingerprints of digests to accounts and their actors. Lookup takes no lock and may be called concurrently
// with all other methods. It is a hash table with open addressing. The account of an entry is written before its
// fingerprint, so a reader never sees an incomplete entry. A full table is replaced by a larger one. A reader that
// still has the old table misses only actors that were set after the replacement.
type Index struct {
	current atomic.Pointer[table]
	mu      sync.Mutex
	used    int // used slots, including those of deleted entries
}

type table struct {
	mask  uint64
	slots []slot
}

type slot struct {
	fingerprint atomic.Uint64 // first bytes of the digest; 0 = free
	account     atomic.Uint64 // 0 = deleted
	actor       atomic.Pointer[mailbox.Ref]
}

const (
	slotsMin        = 1 << 10
	loadNumerator   = 3 // the table grows when this many
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

// fingerprintOf returns the fingerprint of a digest, which is never 0.
func fingerprintOf(digest account.Digest) uint64 {
	return max(1, binary.LittleEndian.Uint64(digest[:]))
}

// Lookup returns the account that may own the key with the digest (fingerprints can collide), or 0. actor is nil if the
// index has no actor of the account. An actor that has stopped rejects messages.
func (x *Index) Lookup(digest account.Digest) (account uint64, actor *mailbox.Ref) {
	table, fingerprint := x.current.Load(), fingerprintOf(digest)
	for i := fingerprint & table.mask; ; i = (i + 1) & table.mask {
		switch slot := &table.slots[i]; slot.fingerprint.Load() {
		case 0:
			return 0, nil
		case fingerprint:
			return slot.account.Load(), slot.actor.Load()
		}
	}
}

// SetActor sets the actor of an account for one of its keys, or removes it with nil. It may be called concurrently with
// all other methods, but not with SetActor for the same account. While the table grows it may have no effect.
func (x *Index) SetActor(digest account.Digest, account uint64, actor *mailbox.Ref) {
	fingerprint := fingerprintOf(digest)
	if slot := x.current.Load().find(fingerprint); slot.fingerprint.Load() == fingerprint && slot.account.Load() == account {
		slot.actor.Store(actor)
	}
}

// Claim assigns the fingerprint of a digest to an account. It returns false if another account has the fingerprint. The
// caller must then generate another key.
func (x *Index) Claim(digest account.Digest, account uint64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	table, fingerprint := x.current.Load(), fingerprintOf(digest)
	if (x.used+1)*loadDenominator > len(table.slots)*loadNumerator {
		table = x.grow(table)
	}
	slot := table.find(fingerprint)
	if slot.fingerprint.Load() == fingerprint {
		owner := slot.account.Load()
		if owner != 0 && owner != account {
			return false
		}
		slot.actor.Store(nil)
		slot.account.Store(account)
		return true
	}
	slot.account.Store(account)
	slot.fingerprint.Store(fingerprint)
	x.used++
	return true
}

// Claim is an entry for Fill: a fingerprint and its account.
type Claim struct{ fingerprint, account uint64 }

// NewClaim returns the entry of an account for a digest.
func NewClaim(digest account.Digest, account uint64) Claim {
	return Claim{fingerprintOf(digest), account}
}

// Fill adds the entries of a replay to an empty index that has no readers yet. If two accounts have the same
// fingerprint, it returns one of them and false.
func (x *Index) Fill(all [][]Claim) (account uint64, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
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

// tableSize returns the size of a table that is at most half full with count entries.
func tableSize(count int) int {
	size := slotsMin
	for size < 2*(count+1) {
		size *= 2
	}
	return size
}

// Release deletes the entry of a key, after its creation failed or its account deleted the key.
func (x *Index) Release(digest account.Digest, account uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	fingerprint := fingerprintOf(digest)
	if slot := x.current.Load().find(fingerprint); slot.fingerprint.Load() == fingerprint && slot.account.Load() == account {
		slot.account.Store(0)
		slot.actor.Store(nil)
	}
}

// find returns the slot of a fingerprint. If there is none, it returns the free slot where the fingerprint belongs.
func (t *table) find(fingerprint uint64) *slot {
	for i := fingerprint & t.mask; ; i = (i + 1) & t.mask {
		if f := t.slots[i].fingerprint.Load(); f == 0 || f == fingerprint {
			return &t.slots[i]
		}
	}
}

// grow replaces the table by one that is at most half full. The caller holds mu.
func (x *Index) grow(old *table) *table {
	count := 0
	for i := range old.slots {
		if old.slots[i].account.Load() != 0 {
			count++
		}
	}
	table := newTable(tableSize(count))
	for i := range old.slots {
		if account := old.slots[i].account.Load(); account != 0 {
			slot := table.find(old.slots[i].fingerprint.Load())
			slot.account.Store(account)
			slot.actor.Store(old.slots[i].actor.Load())
			slot.fingerprint.Store(old.slots[i].fingerprint.Load())
		}
	}
	x.used = count
	x.current.Store(table)
	return table
}
