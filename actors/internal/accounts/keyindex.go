package accounts

import (
	"encoding/binary"
	"sync"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine/account"
)

// keyIndex maps the fingerprint of an API key (first bytes of its digest) to an account and its actor. A result is only
// a hint: the account must compare the whole digest, and check that the key is not revoked. All methods may be called
// concurrently.
type keyIndex struct {
	mu      sync.RWMutex
	entries map[uint64]keyEntry
}

type keyEntry struct {
	account uint64
	actor   *mailbox.Ref // nil until the key is durable
}

func newKeyIndex() *keyIndex { return &keyIndex{entries: map[uint64]keyEntry{}} }

func fingerprintOf(digest account.Digest) uint64 { return binary.LittleEndian.Uint64(digest[:]) }

// lookup returns the actor of the account that may own the key, or nil.
func (x *keyIndex) lookup(digest account.Digest) *mailbox.Ref {
	x.mu.RLock()
	actor := x.entries[fingerprintOf(digest)].actor
	x.mu.RUnlock()
	return actor
}

// set reserves a key's fingerprint for an account and, if actor is not nil, makes lookup return the actor. It returns
// false if another account has the same fingerprint; the caller must then generate another key.
func (x *keyIndex) set(digest account.Digest, account uint64, actor *mailbox.Ref) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	fingerprint := fingerprintOf(digest)
	owner, taken := x.entries[fingerprint]
	if taken && owner.account != account {
		return false
	}
	if !taken || actor != nil {
		x.entries[fingerprint] = keyEntry{account, actor}
	}
	return true
}

// release deletes a key's entry if the entry belongs to the account.
func (x *keyIndex) release(digest account.Digest, account uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if fingerprint := fingerprintOf(digest); x.entries[fingerprint].account == account {
		delete(x.entries, fingerprint)
	}
}
