package wal

import (
	"errors"
	"io"
	"math"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestSnapshotSequences(t *testing.T) {
	l := mustOpen(t, t.TempDir(), testOptions())
	defer mustClose(t, l)
	mustAppend(t, l, 5)
	mustSnapshot(t, l, 3)
	never := func(io.Writer) error { t.Error("written"); return nil }
	for name, seq := range map[string]uint64{"zero": 0, "not on disk": l.Last() + 1, "older": 2} {
		if err := l.WriteSnapshot(seq, never); err == nil || errors.Is(err, ErrPoisoned) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := l.WriteSnapshot(3, never); err != nil {
		t.Errorf("the same again: %v", err)
	}
	mustAppend(t, l, 1)
}

func TestSnapshotWriterFails(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, testOptions())
	defer mustClose(t, l)
	mustAppend(t, l, 5)
	before := hashDir(t, dir)
	cause := errors.New("state is odd")
	err := l.WriteSnapshot(2, func(w io.Writer) error {
		_, _ = w.Write(make([]byte, 200_000))
		return cause
	})
	if !errors.Is(err, cause) || errors.Is(err, ErrPoisoned) || hashDir(t, dir) != before {
		t.Errorf("got %v", err)
	}
	mustSnapshot(t, l, 2)
}

// compacted is a log with two snapshots whose oldest segments were dropped.
func compacted(t testing.TB, dir string) (older, newer uint64) {
	t.Helper()
	l := mustOpen(t, dir, testOptions())
	defer mustClose(t, l)
	mustAppend(t, l, 40)
	older = l.Last()
	mustSnapshot(t, l, older)
	must(t, l.DropBefore(older))
	if l.First() != 1 {
		t.Fatal("dropped what a damaged only snapshot would need")
	}
	mustAppend(t, l, 40)
	newer = l.Last()
	mustSnapshot(t, l, newer)
	must(t, l.DropBefore(newer))
	if l.First() == 1 || l.First() > older+1 {
		t.Fatalf("begins with %d, older snapshot %d", l.First(), older)
	}
	mustAppend(t, l, 3)
	return older, newer
}

// observedSyncs returns the number of syncs that Stats has counted, and the seconds that they took.
func observedSyncs(t *testing.T, l *Log) (uint64, float64) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(l.Stats().Syncs)
	families, err := registry.Gather()
	must(t, err)
	h := families[0].GetMetric()[0].GetHistogram()
	return h.GetSampleCount(), h.GetSampleSum()
}

func TestStats_WhatWasAppended(t *testing.T) {
	dir, o := t.TempDir(), testOptions()
	o.SegmentBytes = 0
	now, step := testClock(), 7*time.Millisecond
	o.Clock = func() time.Time { now = now.Add(step); return now }
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
	step = -time.Hour // a clock that is set back: no time
	mustAppend(t, l, 1)
	if count, sum := observedSyncs(t, l); count != 6 || math.Abs(sum-0.035) > 1e-9 {
		t.Errorf("%d syncs in %v s, want 6 in 0.035 s", count, sum)
	}
	got = l.Stats()
	mustClose(t, l)
	l = mustOpen(t, dir, testOptions())
	defer mustClose(t, l)
	if again := l.Stats(); again.Batches != 0 || again.Bytes != 0 || again.LogBytes != got.LogBytes || again.Last != 10 {
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
	count, _ := observedSyncs(t, l)
	if got := l.Stats(); got.Batches != 1 || got.Records != 1 || count != 2 {
		t.Errorf("%+v, %d syncs", got, count)
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
