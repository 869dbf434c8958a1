//go:build faults

package faults

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

// realFailure is one run on a disk whose writes fail for a while.
type realFailure struct {
	name    string
	journal bool
	left    int64 // bytes below the image when it gets tight
	// again has the node started before the kernel's memory of the disk is dropped, as a service manager does.
	again bool
}

// run returns what a caller saw and how long the node was there after the first failure, and an error when something acknowledged is
// not on the disk afterwards. A program with a bug may go on instead of stopping.
func (f realFailure) run(t *testing.T, program string) (s *smith, lasted time.Duration, err error) {
	t.Helper()
	disk, office, s := newTightDisk(t, f.journal), newPostOffice(t), newSmith(t, "")
	dir := filepath.Join(disk.place, "data")
	begin := func() *node {
		return launch(t, command{program: program, args: serveArgs(dir, office.args()...)})
	}
	n := begin().ready()
	s.signIn(t, office, n)
	fill(t, disk.backing, f.left)
	if retries := program != "" && !f.again; retries {
		err = disk.retried(s, n)
	} else {
		s.work(n, endless)
		disk.relax()
		if code := n.end(); code != exitFailStop {
			return s, s.lasted(n), fmt.Errorf("it ended with %d: %s", code, n.tail(3))
		}
	}
	if f.again && err == nil {
		err = f.goOn(begin(), s)
	}
	if err != nil {
		return s, s.lasted(n), err
	}
	disk.again()
	after := begin()
	if !after.answers() {
		return s, s.lasted(n), fmt.Errorf("it does not start after the failure: code %d: %s", after.end(), after.tail(2))
	}
	err = s.check(after)
	after.kill()
	return s, s.lasted(n), err
}

// retried lets a node that tries a failed sync again go on until it has, gives it space, and kills it some changes later.
func (d *tightDisk) retried(s *smith, n *node) error {
	s.l.end()
	for range endless {
		if _, found := n.seen("sync failed, tried again"); found {
			break
		}
		if got := s.turn(); !got.good() {
			break
		}
	}
	d.relax()
	for range realRounds {
		s.turn()
	}
	n.kill()
	return nil
}

// goOn is the life of a node that was started on what a failure left, with the kernel's memory of it.
func (f realFailure) goOn(n *node, s *smith) error {
	if !n.answers() {
		return fmt.Errorf("it does not start again: code %d: %s", n.end(), n.tail(2))
	}
	if err := s.check(n); err != nil {
		return fmt.Errorf("started again: %w", err)
	}
	for round := range realRounds {
		if got := s.turn(); !got.good() {
			return fmt.Errorf("started again it acknowledged %d of %d: %s", round, realRounds, n.tail(3))
		}
	}
	n.kill()
	return nil
}

// TestFaultsW6_RealDiskError runs the program on disks whose writes fail with a real EIO: it leaves with code 70 within a
// second, and everything that it acknowledged is on the disk, also what a node acknowledged that was started at once, while
// the kernel still shows what it could not write.
func TestFaultsW6_RealDiskError(t *testing.T) {
	need(t, "e2fsprogs", "mkfs.ext4")
	if !apart(t) {
		return
	}
	const each = 5
	var slowest time.Duration
	runs, acknowledged := 0, 0
	for _, f := range []realFailure{
		{name: "ext4 with a journal", journal: true, left: 512 << 10},
		{name: "ext4 without a journal", left: 96 << 10},
		{name: "ext4 without a journal, started again at once", left: 96 << 10, again: true},
	} {
		for k := range each {
			f.left += int64(k) << 12
			s, lasted, err := f.run(t, "")
			if err != nil {
				t.Errorf("%s, run %d: %v", f.name, k, err)
			}
			if s.later > 0 || lasted > failStopMax {
				t.Errorf("%s, run %d: %d acknowledged after the failure, ended after %s", f.name, k, s.later, lasted)
			}
			if !s.failed.IsZero() {
				runs++
			}
			acknowledged += s.made()
			slowest = max(slowest, lasted)
		}
		progress(t, "%s: done", f.name)
	}
	figure(t, "real EIO: the node stopped %d times with code 70, at most %s after the first failed answer; %d keys acknowledged",
		runs, slowest.Round(time.Millisecond), acknowledged)
	if runs == 0 {
		t.Error("no write failed")
	}
}

// TestFaultsW6_Control plants the bugs that the fail-stop is there for: a failed sync is tried again and then believed, and a start reads
// what the kernel remembers: what a node acknowledges that is started at once is then built upon bytes that are not on the disk.
func TestFaultsW6_Control(t *testing.T) {
	need(t, "e2fsprogs", "mkfs.ext4")
	if !apart(t) {
		return
	}
	retries := mutant(t, "retries", "wal/log.go", "err := l.store.Sync()",
		"err := l.store.Sync()\n\tfor ; err != nil; err = l.store.Sync() {\n\t\tl.o.Logger.Warn(\"sync failed, tried again\")\n\t}")
	remembers := mutant(t, "remembers", "wal/open.go", "if err := o.disk.settle(dir); err != nil {", "if err := error(nil); err != nil {")
	for program, f := range map[string]realFailure{
		retries:   {name: "a failed sync is tried again", left: 96 << 10},
		remembers: {name: "a start believes the kernel's memory", left: 96 << 10, again: true},
	} {
		s, _, err := f.run(t, program)
		figure(t, "control, %s: %d keys acknowledged, then: %.300s", f.name, s.made(), fmt.Sprint(err))
		if err == nil {
			t.Errorf("%s: nothing is lost: the disk of this test does not fail as it should", f.name)
		}
	}
}
