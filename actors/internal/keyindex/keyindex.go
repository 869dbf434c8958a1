package keyindex

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine/account"
)

// Index is a hash table with open addressing. It maps the fingerprint (first bytes) of the digest of an API key to an
// account and its actor. All methods may be called concurrently. Only Fill must not run concurrently with another
// method.
//
// Lookup takes no lock. Claim writes the account of an entry before the fingerprint, so Lookup never finds an
// incomplete entry. When the table is full, Claim replaces it with a larger one. A Lookup that still reads the old
// table may miss an actor that was set after the replacement.
type Index struct {
	current atomic.Pointer[table]
	mu      sync.Mutex // held by all methods that change the table; SetActor works without it
	used    int        // slots with a fingerprint, including deleted entries
}

type table struct {
	mask  uint64
	slots []slot
}

type slot struct {
	fingerprint atomic.Uint64 // first bytes of the digest; 0 = free slot
	account     atomic.Uint64 // 0 = deleted entry
	actor       atomic.Pointer[mailbox.Ref]
}

const (
	slotsMin = 1 << 7
	// A table grows before more than 3/4 of its slots are used.
	loadNumerator   = 3
	loadDenominator = 4
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

// fingerprintOf returns the first bytes of a digest as a number, at least 1.
func fingerprintOf(digest account.Digest) uint64 {
	return max(1, binary.LittleEndian.Uint64(digest[:]))
}

// Lookup returns the account that may own the key with the digest, or 0 if no account owns it. The caller must compare
// the whole digest. actor is nil if the index has no actor for the account. The actor may have stopped; it then rejects
// messages.
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

// SetActor sets the actor of an account in the entry of one of its keys. nil removes the actor. SetActor must not run
// concurrently with SetActor for the same account. If Claim replaces the table meanwhile, SetActor may have no effect.
func (x *Index) SetActor(digest account.Digest, account uint64, actor *mailbox.Ref) {
	fingerprint := fingerprintOf(digest)
	if slot := x.current.Load().find(fingerprint); slot.fingerprint.Load() == fingerprint && slot.account.Load() == account {
		slot.actor.Store(actor)
	}
}

// Claim adds the entry of a key, with the account but without its actor. It returns false if another account has the
// same fingerprint. The caller must then generate another key.
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

// Entry maps a fingerprint to an account.
type Entry struct{ fingerprint, account uint64 }

// NewEntry returns the entry for a key with the digest.
func NewEntry(digest account.Digest, account uint64) Entry {
	return Entry{fingerprintOf(digest), account}
}

// Fill adds all entries to an empty index. It must not run concurrently with other methods. If two accounts have the
// same fingerprint, Fill returns one of them and false.
func (x *Index) Fill(all [][]Entry) (account uint64, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	count := 0
	for _, entries := range all {
		count += len(entries)
	}
	table := newTable(tableSize(count))
	for _, entries := range all {
		for _, entry := range entries {
			slot := table.find(entry.fingerprint)
			if owner := slot.account.Load(); owner == entry.account {
				continue
			} else if owner != 0 {
				return entry.account, false
			}
			slot.account.Store(entry.account)
			slot.fingerprint.Store(entry.fingerprint)
			x.used++
		}
	}
	x.current.Store(table)
	return 0, true
}

// tableSize returns the number of slots of a table that count entries fill at most half.
func tableSize(count int) int {
	size := slotsMin
	for size < 2*(count+1) {
		size *= 2
	}
	return size
}

// Release deletes the entry of a key, if the entry belongs to the account.
func (x *Index) Release(digest account.Digest, account uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	fingerprint := fingerprintOf(digest)
	if slot := x.current.Load().find(fingerprint); slot.fingerprint.Load() == fingerprint && slot.account.Load() == account {
		slot.account.Store(0)
		slot.actor.Store(nil)
	}
}

// find returns the slot with the fingerprint. If no slot has it, find returns the free slot in which it belongs.
func (t *table) find(fingerprint uint64) *slot {
	for i := fingerprint & t.mask; ; i = (i + 1) & t.mask {
		if f := t.slots[i].fingerprint.Load(); f == 0 || f == fingerprint {
			return &t.slots[i]
		}
	}
}

// grow replaces the table with one that is at most half full and has no deleted entries. The caller must hold mu.
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
