package wal

import (
	"errors"
	"io"
	"os"
	"slices"
	"testing"
	"time"
)

// tickingClock advances by the next step at each call, and then stops.
func tickingClock(steps ...time.Duration) func() time.Time {
	now := testClock()
	return func() time.Time {
		if len(steps) > 0 {
			now, steps = now.Add(steps[0]), steps[1:]
		}
		return now
	}
}

func TestStats_WhatWasAppended(t *testing.T) {
	dir, o := t.TempDir(), testOptions()
	o.SegmentBytes = 0
	o.Clock = tickingClock(0, 50*time.Microsecond, 0, 50*time.Microsecond+1, 0, 7*time.Millisecond, 0, time.Minute, 0, -time.Hour)
	l := mustOpen(t, dir, o)
	mustAppend(t, l, 5)
	got := l.Stats()
	if got.Batches != 5 || got.Records != 1+2+3+1+2 || got.First != 1 || got.Last != 9 || got.Segments != 1 || got.Snapshots != 0 {
		t.Errorf("%+v", got)
	}
	info, err := os.Stat(segmentPath(dir, 1))
	if err != nil || got.Bytes != info.Size() || got.LogBytes != info.Size() {
		t.Errorf("%d bytes appended, %d in the log, the file has %v, %v", got.Bytes, got.LogBytes, info.Size(), err)
	}
	want := SyncTimes{Sum: 100*time.Microsecond + 1 + 7*time.Millisecond + time.Minute}
	want.Counts[0], want.Counts[1], want.Counts[7], want.Counts[syncBounds] = 2, 1, 1, 1 // a clock set back: no time
	if bounds := SyncBounds(); got.Syncs != want || !slices.IsSorted(bounds[:]) {
		t.Errorf("syncs %+v, want %+v", got.Syncs, want)
	}
	mustClose(t, l)
	l = mustOpen(t, dir, testOptions())
	defer mustClose(t, l)
	if again := l.Stats(); again.Batches != 0 || again.Bytes != 0 || again.LogBytes != got.LogBytes || again.Last != 9 {
		t.Errorf("opened again: %+v", again)
	}
}

// TestStats_ASyncThatFails counts the sync and not the batch.
func TestStats_ASyncThatFails(t *testing.T) {
	l := mustOpen(t, t.TempDir(), testOptions())
	mustAppend(t, l, 1)
	real := l.store
	l.store = &failingStore{store: real, failSync: true}
	if _, err := l.Append(batchFrom(2, 1)); !errors.Is(err, ErrPoisoned) {
		t.Fatal(err)
	}
	if got := l.Stats(); got.Batches != 1 || got.Records != 1 || got.Syncs.Counts[0] != 2 {
		t.Errorf("%+v", got)
	}
	l.store = real
	mustClose(t, l)
}

func TestStats_Snapshots(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, testOptions())
	mustAppend(t, l, 4)
	mustSnapshot(t, l, 3)
	mustSnapshot(t, l, 6)
	got := l.Stats()
	if got.Snapshots != 2 || got.SnapshotSequence != 6 || !got.SnapshotAt.Equal(testClock()) {
		t.Errorf("%+v", got)
	}
	if want := int64(2*(snapshotHeaderBytes+snapshotTrailerBytes) + len("state 3") + len("state 6")); got.SnapshotBytes != want {
		t.Errorf("%d bytes of snapshots, want %d", got.SnapshotBytes, want)
	}
	failed := errors.New("planted")
	if err := l.WriteSnapshot(7, func(io.Writer) error { return failed }); !errors.Is(err, failed) || l.Stats().SnapshotSequence != 6 {
		t.Errorf("a snapshot that failed: %v, %+v", err, l.Stats())
	}
	mustClose(t, l)
	at := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	must(t, os.Chtimes(snapshotPath(dir, 6), at, at))
	l = mustOpen(t, dir, testOptions())
	defer mustClose(t, l)
	if again := l.Stats(); again.SnapshotSequence != 6 || !again.SnapshotAt.Equal(at) {
		t.Errorf("opened again: %+v", again)
	}
}

// blockingStore is a store whose sync blocks until released.
type blockingStore struct {
	store
	entered, end chan struct{}
}

func (s blockingStore) Sync() error {
	close(s.entered)
	<-s.end
	return s.store.Sync()
}

// TestStats_DoesNotWaitForDisk calls Stats while a sync hangs.
func TestStats_DoesNotWaitForDisk(t *testing.T) {
	l := mustOpen(t, t.TempDir(), testOptions())
	mustAppend(t, l, 1)
	real := l.store
	hung := blockingStore{real, make(chan struct{}), make(chan struct{})}
	l.store = hung
	ended := make(chan error, 1)
	go func() {
		_, err := l.Append(batchFrom(2, 1))
		ended <- err
	}()
	<-hung.entered
	if got := l.Stats(); got.Batches != 1 || got.Last != 1 {
		t.Errorf("while a sync hangs: %+v", got)
	}
	close(hung.end)
	if err := <-ended; err != nil || l.Stats().Batches != 2 {
		t.Errorf("afterwards: %v, %+v", err, l.Stats())
	}
	l.store = real
	mustClose(t, l)
}
