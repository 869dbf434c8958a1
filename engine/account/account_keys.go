package account

import (
	"slices"
	"time"
)

// accountKey is a KeyRecord in half of its memory.
type accountKey struct {
	id, name, hint       string
	digest               Digest
	createdAt, revokedAt instant
	lastUsed             instant // as in the log
	used                 instant // newest use; copied to lastUsed with the next lease
}

func keyOf(k *KeyRecord) accountKey {
	return accountKey{k.ID, k.Name, k.Hint, k.Digest, instantOf(k.CreatedAt), instantOf(k.RevokedAt), instantOf(k.LastUsed), 0}
}

func (k *accountKey) record() KeyRecord {
	return KeyRecord{k.id, k.name, k.hint, k.createdAt.time(), k.revokedAt.time(), k.lastUsed.time(), k.digest}
}

func (k *accountKey) active() bool { return k.revokedAt == 0 }

// instant is a time in nanoseconds since 1970, or 0 for the zero time.
type instant int64

func instantOf(t time.Time) instant {
	if t.IsZero() {
		return 0
	}
	return instant(t.UnixNano())
}

func (i instant) time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(i)).UTC()
}

// accountKeys are the keys of an account, oldest first.
type accountKeys []accountKey

// add adds a key. Beyond keysMax it drops the oldest revoked key, which is then denied as unknown.
func (k *accountKeys) add(key KeyRecord) {
	*k = append(*k, keyOf(&key))
	for len(*k) > keysMax {
		i := slices.IndexFunc(*k, func(key accountKey) bool { return !key.active() })
		if i < 0 {
			return
		}
		*k = slices.Delete(*k, i, i+1)
	}
}

// byID returns the key with an id, or nil.
func (k accountKeys) byID(id string) *accountKey {
	for i := range k {
		if k[i].id == id {
			return &k[i]
		}
	}
	return nil
}

// byDigest returns the key with a digest, or nil. It searches newest keys first, because they are in use.
func (k accountKeys) byDigest(digest Digest) *accountKey {
	for i := len(k) - 1; i >= 0; i-- {
		if k[i].digest.equal(&digest) {
			return &k[i]
		}
	}
	return nil
}

// setUses sets uses from the log.
func (k accountKeys) setUses(uses ...KeyUse) {
	for _, use := range uses {
		if key := k.byID(use.KeyID); key != nil {
			key.lastUsed = max(key.lastUsed, instantOf(use.At))
		}
	}
}

// newUses returns the uses missing in the log.
func (k accountKeys) newUses() (uses []KeyUse) {
	for i := range k {
		if key := &k[i]; key.used > key.lastUsed {
			uses = append(uses, KeyUse{key.id, key.used.time()})
		}
	}
	return uses
}
