package keyindex

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine/account"
)

// Index leads from the digest of a key to its account, and to the account's actor while it has one. It is read by every request,
// without a lock; it is written when keys are made and when accounts are loaded or evicted. An entry is only a hint where to ask:
// the account itself compares the whole digest and knows whether the key is revoked, and an actor that was retired refuses messages.
//
// It is a hash table with open addressing. An entry's account is written before its fingerprint and neither is changed while it is
// in the table, so a reader sees all of it or nothing. A table that becomes full is replaced by a larger one; readers of the old
// one lose nothing but actors that are set meanwhile.
type Index struct {
	current atomic.Pointer[table]
	writing sync.Mutex
	used    int // slots of the table, given up ones included
}

type table struct {
	mask  uint64
	slots []slot
}

type slot struct {
	fingerprint atomic.Uint64 // first bytes of the digest, which is as good as random; 0 = free
	account     atomic.Uint64 // 0 = given up
	actor       atomic.Pointer[mailbox.Ref]
}

const (
	slotsMin        = 1 << 10
	loadNumerator   = 3 // the table is larger when this many
	loadDenominator = 4 // of this many slots are used
)

// New makes an empty index.
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

// Lookup is the account to ask about a digest, 0 when there is none, and its actor, nil when none is known.
func (x *Index) Lookup(digest account.Digest) (account uint64, actor *mailbox.Ref) {
	table, mark := x.current.Load(), fingerprintOf(digest)
	for at := mark & table.mask; ; at = (at + 1) & table.mask {
		switch slot := &table.slots[at]; slot.fingerprint.Load() {
		case 0:
			return 0, nil
		case mark:
			return slot.account.Load(), slot.actor.Load()
		}
	}
}

// SetActor notes the actor of an account under one of its keys; nil when it has none any more. It may run beside everything else, one
// call at a time for each account. While the table grows it may have no effect.
func (x *Index) SetActor(digest account.Digest, account uint64, actor *mailbox.Ref) {
	mark := fingerprintOf(digest)
	if slot := x.current.Load().find(mark); slot.fingerprint.Load() == mark && slot.account.Load() == account {
		slot.actor.Store(actor)
	}
}

// Claim takes a digest's fingerprint for an account. False: another account has it, so that the key must be
// drawn again, which has never happened.
func (x *Index) Claim(digest account.Digest, account uint64) bool {
	x.writing.Lock()
	defer x.writing.Unlock()
	table, mark := x.current.Load(), fingerprintOf(digest)
	if (x.used+1)*loadDenominator > len(table.slots)*loadNumerator {
		table = x.grow(table)
	}
	slot := table.find(mark)
	if slot.fingerprint.Load() == mark {
		owner := slot.account.Load()
		if owner != 0 && owner != account {
			return false
		}
		slot.actor.Store(nil)
		slot.account.Store(account)
		return true
	}
	slot.account.Store(account)
	slot.fingerprint.Store(mark)
	x.used++
	return true
}

// Claim is the claim of an account to a fingerprint.
type Claim struct{ fingerprint, account uint64 }

// NewClaim is the claim of an account to the fingerprint of a digest.
func NewClaim(digest account.Digest, account uint64) Claim {
	return Claim{fingerprintOf(digest), account}
}

// Fill takes the claims of a replay, before anybody reads: one table, made large enough at once. False and the account when
// another one has a fingerprint already.
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

// tableSize is that of a table in which so many fill at most a half.
func tableSize(count int) int {
	size := slotsMin
	for size < 2*(count+1) {
		size *= 2
	}
	return size
}

// Release gives a fingerprint up, of a key that was never made or that its account has forgotten.
func (x *Index) Release(digest account.Digest, account uint64) {
	x.writing.Lock()
	defer x.writing.Unlock()
	mark := fingerprintOf(digest)
	if slot := x.current.Load().find(mark); slot.fingerprint.Load() == mark && slot.account.Load() == account {
		slot.account.Store(0)
		slot.actor.Store(nil)
	}
}

// find is the slot of a mark, or the free one where it belongs.
func (t *table) find(mark uint64) *slot {
	for at := mark & t.mask; ; at = (at + 1) & t.mask {
		if p := t.slots[at].fingerprint.Load(); p == 0 || p == mark {
			return &t.slots[at]
		}
	}
}

// grow replaces the table by one in which what is in use fills at most a half. The caller writes.
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
