//go:build faults

package faults

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tasard/tasard/wal"
)

// W10: a directory holds at most twice what lives in it and this much: the 64 MiB of the goal, for segments of 2 KiB in
// place of 4 MiB.
const diskSlackBytes = 64 << 20 / (4 << 20 / segmentBytes)

// weigh holds the size of a directory against what lives in it.
func (w *sweep) weigh(dir string) error {
	report, err := wal.Verify(dir)
	if err != nil {
		return err
	}
	live := report.LogBytes
	for _, snapshot := range report.Snapshots {
		live += snapshot.Bytes
	}
	total, err := sizeOf(dir)
	if err != nil {
		return err
	}
	if total > 2*live+diskSlackBytes {
		return fmt.Errorf("the directory has %d bytes, %d of them live", total, live)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if live > 0 {
		w.diskWorst = max(w.diskWorst, float64(total)/float64(live))
	}
	return nil
}

// sizeOf is how many bytes a directory has.
func sizeOf(dir string) (total int64, err error) {
	return total, filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
}

// killed is a directory whose node was killed right after a step: its records are in the log, behind a snapshot.
func killed(t *testing.T, steps int) map[string][]byte {
	t.Helper()
	dir := filepath.Join(memoryDir(t), "data")
	l, err := openLife(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for step := 1; step <= steps; step++ {
		l.at.Store(instantOf(step).UnixNano())
		if err := l.take(step); err != nil {
			t.Fatal(err)
		}
	}
	left := readDir(t, dir)
	if err := l.system.Close(); err != nil {
		t.Fatal(err)
	}
	return left
}

// readDir is the content of a directory, but for its lock.
func readDir(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() || entry.Name() == "LOCK" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // an unfinished snapshot that is finished by now
		}
		if err != nil {
			t.Fatal(err)
		}
		all[entry.Name()] = data
	}
	return all
}

// segments are the names of the log's segments, oldest first.
func segments(all map[string][]byte) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(name string) bool {
		return len(name) != 20 || strings.Trim(name, "0123456789") != ""
	})
}

// torn adds what a power cut leaves: half a frame, half a mark, half a snapshot.
func torn(all map[string][]byte) map[string][]byte {
	names := segments(all)
	first, last := all[names[0]], names[len(names)-1]
	all = flipped(all, "mark", 700)
	all[last] = append(slices.Clone(all[last]), first[:20]...)
	all["snapshot-00000000000000009999.tmp"] = first[:100]
	return all
}

// flipped has another bit in one byte of a file.
func flipped(all map[string][]byte, name string, at int) map[string][]byte {
	all = maps.Clone(all)
	all[name] = slices.Clone(all[name])
	all[name][at] ^= 1
	return all
}

// TestFaultsW3_EverySystemCall kills a node before each system call that touches its directory: from its first start to a clean end,
// after a kill, and with a torn tail. The log is the program's, driven by the program's actors; only the thread on which it works is
// pinned. W10: snapshots and compaction are among the calls. Repairs and restores are stopped at each step by the tests of package wal.
func TestFaultsW3_EverySystemCall(t *testing.T) {
	left := killed(t, 31)
	scenarios := []scenario{
		{name: "first life", kind: lifeHonest, steps: 140},
		{name: "after a kill", kind: lifeHonest, from: left, had: 31, steps: 155},
		{name: "torn tail", kind: lifeHonest, from: torn(left), had: 31, steps: 140},
	}
	bad, kinds := 0, map[string]int{}
	for _, s := range scenarios {
		w := newSweep(t, s)
		w.run(strings.Split(writePath, ","), 0, 1)
		w.complain()
		bad += len(w.bad)
		for call, n := range w.fired {
			kinds[call] += n
		}
		progress(t, "%s: %d crashes fired, %d runs ended untouched, %d bad, %d torn tails, worst directory %.1f times what lives in it; calls %v",
			s.name, sum(w.fired), w.untouched, len(w.bad), w.torn, w.diskWorst, w.calls.counts)
		if sum(w.fired) == 0 || w.undershoot > sum(w.fired)/10 {
			t.Errorf("%s: %d crashes fired, %d that should have did not", s.name, sum(w.fired), w.undershoot)
		}
	}
	figure(t, "crashed at %d system calls of the write path, %d bad; %v", sum(kinds), bad, kinds)
	if sum(kinds) < 2000 {
		t.Errorf("%d crashes fired, want 2000", sum(kinds))
	}
	for _, call := range []string{"openat", "write", "pwrite64", "fsync", "renameat", "unlinkat", "ftruncate", "mkdirat"} {
		if kinds[call] == 0 {
			t.Errorf("no crash at %s", call)
		}
	}
}

// TestFaultsW3_ControlEarly plants a log that acknowledges a batch before it writes it: the same sweep must object.
func TestFaultsW3_ControlEarly(t *testing.T) {
	w := newSweep(t, scenario{name: "acknowledged early", kind: lifeEarly, steps: 30})
	w.run(strings.Split(writePath, ","), 0, 7)
	fired := sum(w.fired)
	figure(t, "control, acknowledged before it is written: %d crashes fired, %d noticed", fired, len(w.bad))
	if fired == 0 || len(w.bad) < fired/4 {
		t.Errorf("%d of %d crashes noticed", len(w.bad), fired)
	}
}

// failureCalls are the calls that write and sync.
func failureCalls() []string { return []string{"write", "pwrite64", "fsync"} }

// TestFaultsW6_EachWriteAndSyncFails lets the K-th write and the K-th sync fail, K = 1 to 200, at the first start, in
// appends, segment rolls, snapshots and compaction: nothing is written, synced or acknowledged after it, and what was
// acknowledged is there at the next start.
func TestFaultsW6_EachWriteAndSyncFails(t *testing.T) {
	t.Parallel()
	const each = 200
	w := newSweep(t, scenario{name: "EIO", kind: lifeHonest, steps: 150, errno: "EIO"})
	w.run(failureCalls(), each, 1)
	w.complain()
	figure(t, "EIO injected at %d writes and syncs (%v), %d bad", sum(w.fired), w.fired, len(w.bad))
	for _, call := range failureCalls() {
		if w.fired[call] < each*9/10 {
			t.Errorf("%s failed %d times, want %d", call, w.fired[call], each)
		}
	}
}

// TestFaultsW7_EachWriteFindsNoSpace has the K-th write find no space, K = 1 to 60, although there had been some when the log
// looked: that is a failed write like any other, and what was acknowledged is there at the next start.
func TestFaultsW7_EachWriteFindsNoSpace(t *testing.T) {
	w := newSweep(t, scenario{name: "ENOSPC", kind: lifeHonest, steps: 60, errno: "ENOSPC"})
	w.run([]string{"write", "pwrite64"}, 60, 1)
	w.complain()
	figure(t, "ENOSPC injected at %d writes (%v), %d bad", sum(w.fired), w.fired, len(w.bad))
	if sum(w.fired) < 110 {
		t.Errorf("%d writes failed", sum(w.fired))
	}
}

// sum is how many there are of all kinds.
func sum(kinds map[string]int) (all int) {
	for _, count := range kinds {
		all += count
	}
	return all
}
