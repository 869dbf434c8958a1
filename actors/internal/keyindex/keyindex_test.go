package keyindex

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"testing"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine/account"
)

func keyOf(id uint64) account.Digest { return sha256.Sum256(binary.BigEndian.AppendUint64(nil, id)) }

func accountOf(x *Index, digest account.Digest) uint64 {
	id, _ := x.Lookup(digest)
	return id
}

// TestActors looks up actors, also after the table has grown and after a key was released.
func TestActors(t *testing.T) {
	x, actor := New(), &mailbox.Ref{}
	x.Claim(keyOf(1), 1)
	x.SetActor(keyOf(1), 2, actor)
	x.SetActor(keyOf(2), 2, actor)
	if _, got := x.Lookup(keyOf(1)); got != nil {
		t.Error("an actor under another account's key")
	}
	x.SetActor(keyOf(1), 1, actor)
	for id := uint64(2); id <= slotsMin; id++ {
		x.Claim(keyOf(id), id)
	}
	if id, got := x.Lookup(keyOf(1)); id != 1 || got != actor {
		t.Error("the actor is lost", id, got)
	}
	x.Release(keyOf(1), 1)
	x.Claim(keyOf(1), 3)
	if id, got := x.Lookup(keyOf(1)); id != 3 || got != nil {
		t.Error("the actor of the account that had the key before", id, got)
	}
}

func TestIndex(t *testing.T) {
	x := New()
	if accountOf(x, keyOf(1)) != 0 {
		t.Error("an empty index knows a key")
	}
	for id := uint64(1); id <= 10_000; id++ {
		if !x.Claim(keyOf(id), id) {
			t.Fatalf("key %d is taken", id)
		}
	}
	if x.Claim(keyOf(5), 6) || !x.Claim(keyOf(5), 5) {
		t.Error("a fingerprint has two owners, or none")
	}
	x.Release(keyOf(5), 6)
	if accountOf(x, keyOf(5)) != 5 {
		t.Error("released by another account")
	}
	x.Release(keyOf(5), 5)
	if accountOf(x, keyOf(5)) != 0 || !x.Claim(keyOf(5), 6) || accountOf(x, keyOf(5)) != 6 {
		t.Error("a released fingerprint can't be claimed again")
	}
	for id := uint64(6); id <= 10_000; id++ {
		if got := accountOf(x, keyOf(id)); got != id {
			t.Fatalf("key %d leads to account %d", id, got)
		}
	}
	var zero account.Digest
	if !x.Claim(zero, 3) || accountOf(x, zero) != 3 {
		t.Error("a digest of zeros is lost")
	}
}

func TestCollisions(t *testing.T) {
	x := New()
	near := func(n int) (d account.Digest) {
		binary.LittleEndian.PutUint64(d[:], uint64(n)<<32|42)
		return d
	}
	for n := range 2000 {
		x.Claim(near(n), uint64(n+1))
	}
	for n := range 2000 {
		if got := accountOf(x, near(n)); got != uint64(n+1) {
			t.Fatalf("%d leads to %d", n, got)
		}
	}
}

func TestIndexIsReadWhileItGrows(t *testing.T) {
	x := New()
	x.Claim(keyOf(1), 1)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if accountOf(x, keyOf(1)) != 1 {
					t.Error("a key is not found while others are made")
					return
				}
			}
		})
	}
	for id := uint64(2); id < 20_000; id++ {
		x.Claim(keyOf(id), id)
		if id%3 == 0 {
			x.Release(keyOf(id), id)
		}
	}
	close(stop)
	readers.Wait()
}

func TestIndexIsFilled(t *testing.T) {
	one, all := New(), New()
	var entries [][]Entry
	for id := uint64(1); id <= 3*slotsMin; id++ {
		if !one.Claim(keyOf(id), id) {
			t.Fatal(id)
		}
		entries = append(entries, []Entry{NewEntry(keyOf(id), id), NewEntry(keyOf(id), id)}) // a loaded account claims again
	}
	if _, whole := all.Fill(entries); !whole || all.used != one.used {
		t.Fatalf("%d keys, want %d", all.used, one.used)
	}
	for id := uint64(1); id <= 3*slotsMin+10; id++ {
		if got, want := accountOf(all, keyOf(id)), accountOf(one, keyOf(id)); got != want {
			t.Fatalf("key %d is of account %d, want %d", id, got, want)
		}
	}
	if id, whole := New().Fill([][]Entry{{NewEntry(keyOf(1), 1)}, {NewEntry(keyOf(1), 2)}}); whole || id != 2 {
		t.Errorf("two accounts with one key: %d", id)
	}
}
