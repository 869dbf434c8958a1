package keyindex

import (
	"encoding/binary"
	"sync"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine/account"
)

// Index maps the fingerprint of an API key (first bytes of its digest) to an account and its actor. All methods may be
// called concurrently.
type Index struct {
	mu      sync.RWMutex
	entries map[uint64]entry
}

type entry struct {
	account uint64
	actor   *mailbox.Ref // nil until the key is durable
}

// New returns an empty index.
func New() *Index { return &Index{entries: map[uint64]entry{}} }

func fingerprintOf(digest account.Digest) uint64 { return binary.LittleEndian.Uint64(digest[:]) }

// Lookup returns the actor of the account that may own the key, or nil if there is none. The account must compare the
// whole digest.
func (x *Index) Lookup(digest account.Digest) *mailbox.Ref {
	x.mu.RLock()
	actor := x.entries[fingerprintOf(digest)].actor
	x.mu.RUnlock()
	return actor
}

// Claim reserves a key's fingerprint for an account, without its actor. It returns false if another account has the
// same fingerprint; the caller must then generate another key.
func (x *Index) Claim(digest account.Digest, account uint64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	fingerprint := fingerprintOf(digest)
	if owner, taken := x.entries[fingerprint]; taken {
		return owner.account == account
	}
	x.entries[fingerprint] = entry{account: account}
	return true
}

// SetActor sets the actor that Lookup returns for a key of an account. It returns false if another account has the same
// fingerprint.
func (x *Index) SetActor(digest account.Digest, account uint64, actor *mailbox.Ref) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	fingerprint := fingerprintOf(digest)
	if owner, taken := x.entries[fingerprint]; taken && owner.account != account {
		return false
	}
	x.entries[fingerprint] = entry{account, actor}
	return true
}

// Release deletes a key's entry if the entry belongs to the account.
func (x *Index) Release(digest account.Digest, account uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if fingerprint := fingerprintOf(digest); x.entries[fingerprint].account == account {
		delete(x.entries, fingerprint)
	}
}
