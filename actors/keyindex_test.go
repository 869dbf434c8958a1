package actors

import (
	"encoding/binary"
	"sync"
	"testing"

	"github.com/tasard/tasard/engine/account"
)

func TestKeyIndex(t *testing.T) {
	x := newKeyIndex()
	if x.account(keyOf(1)) != 0 {
		t.Error("an empty index knows a key")
	}
	for id := uint64(1); id <= 10_000; id++ {
		if !x.claim(keyOf(id), id) {
			t.Fatalf("key %d is taken", id)
		}
	}
	if x.claim(keyOf(5), 6) || !x.claim(keyOf(5), 5) {
		t.Error("a print has two owners, or none")
	}
	x.release(keyOf(5), 6)
	if x.account(keyOf(5)) != 5 {
		t.Error("released by another one")
	}
	x.release(keyOf(5), 5)
	if x.account(keyOf(5)) != 0 || !x.claim(keyOf(5), 6) || x.account(keyOf(5)) != 6 {
		t.Error("a released print can't be claimed again")
	}
	for id := uint64(6); id <= 10_000; id++ {
		if got := x.account(keyOf(id)); got != id {
			t.Fatalf("key %d leads to account %d", id, got)
		}
	}
	var zero account.Digest
	if !x.claim(zero, 3) || x.account(zero) != 3 {
		t.Error("a digest of zeros is lost")
	}
}

// Prints that begin alike stand behind each other.
func TestKeyIndexCollisions(t *testing.T) {
	x := newKeyIndex()
	near := func(n int) (d account.Digest) {
		binary.LittleEndian.PutUint64(d[:], uint64(n)<<32|42)
		return d
	}
	for n := range 2000 {
		x.claim(near(n), uint64(n+1))
	}
	for n := range 2000 {
		if got := x.account(near(n)); got != uint64(n+1) {
			t.Fatalf("%d leads to %d", n, got)
		}
	}
}

// While keys are made, others are found.
func TestKeyIndexIsReadWhileItGrows(t *testing.T) {
	x := newKeyIndex()
	x.claim(keyOf(1), 1)
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
				if x.account(keyOf(1)) != 1 {
					t.Error("a key is not found while others are made")
					return
				}
			}
		})
	}
	for id := uint64(2); id < 20_000; id++ {
		x.claim(keyOf(id), id)
		if id%3 == 0 {
			x.release(keyOf(id), id)
		}
	}
	close(stop)
	readers.Wait()
}
