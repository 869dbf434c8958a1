package keyindex

import (
	"crypto/sha256"
	"encoding/binary"
	"testing"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine/account"
)

func keyOf(id uint64) account.Digest { return sha256.Sum256(binary.BigEndian.AppendUint64(nil, id)) }

// A key has no actor until it is durable, and none after its release.
func TestActorsOfKeys(t *testing.T) {
	x, actor, other := New(), &mailbox.Ref{}, &mailbox.Ref{}
	if !x.Claim(keyOf(1), 1) || x.Lookup(keyOf(1)) != nil {
		t.Error("a reserved key has an actor")
	}
	if x.SetActor(keyOf(1), 2, other) || x.Lookup(keyOf(1)) != nil {
		t.Error("an actor under another account's key")
	}
	if !x.SetActor(keyOf(1), 1, actor) || x.Lookup(keyOf(1)) != actor {
		t.Error("the actor is lost")
	}
	if !x.SetActor(keyOf(2), 2, other) || x.Lookup(keyOf(2)) != other {
		t.Error("a key that was not reserved on this node has no actor")
	}
	if x.Release(keyOf(1), 2); x.Lookup(keyOf(1)) != actor {
		t.Error("released by another account")
	}
	if x.Release(keyOf(1), 1); x.Lookup(keyOf(1)) != nil || !x.Claim(keyOf(1), 3) {
		t.Error("a released fingerprint can't be reserved again")
	}
}

// Two accounts never share a fingerprint: the second has to draw another key.
func TestFingerprintsHaveOneOwner(t *testing.T) {
	x := New()
	var zero account.Digest
	for _, digest := range []account.Digest{keyOf(5), zero} {
		if !x.Claim(digest, 5) || x.Claim(digest, 6) || !x.Claim(digest, 5) {
			t.Error("a fingerprint has two owners, or none")
		}
	}
}
