//go:build faults

package faults

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
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

// endless is more rounds than a node on a full disk lives.
const endless = 100_000

// run returns what a caller saw, an error when something acknowledged is not on the disk afterwards.
func (f realFailure) run(t *testing.T, program string) (s stopped, err error) {
	t.Helper()
	disk, office, c := newTightDisk(t, f.journal), newPostOffice(t), newCaller("")
	defer c.close()
	dir := filepath.Join(disk.at, "data")
	begin := func() *node {
		return launch(t, command{program: program, args: serveArgs(dir, office.args()...)})
	}
	n := begin().ready()
	session, err := office.session(c, n.url, "ana@example.com")
	if err != nil {
		return s, err
	}
	disk.tighten(f.left)
	s = untilStopped(n, c, session, endless)
	disk.relax()
	if s.code != exitFailStop {
		return s, fmt.Errorf("it ended with %d: %s", s.code, n.tail(3))
	}
	if f.again {
		if err := f.goOn(begin(), c, session, &s); err != nil {
			return s, err
		}
	}
	disk.forget()
	n = begin()
	if !n.answers() {
		return s, fmt.Errorf("it does not start after the failure: code %d: %s", n.end(), n.tail(2))
	}
	err = compareKeys(c, n.url, session, s.keys, s.maybe)
	n.kill()
	return s, err
}

// goOn is the life of a node that was started on what a failure left, with the kernel's memory of it.
func (f realFailure) goOn(n *node, c *caller, session string, s *stopped) error {
	if !n.answers() {
		return fmt.Errorf("it does not start again: code %d: %s", n.end(), n.tail(2))
	}
	if err := compareKeys(c, n.url, session, s.keys, s.maybe); err != nil {
		return fmt.Errorf("started again: %w", err)
	}
	keys, maybe := realLife(c, n.url, session)
	n.kill()
	if len(keys) != realRounds {
		return fmt.Errorf("started again it acknowledged %d of %d: %s", len(keys), realRounds, n.tail(3))
	}
	s.keys = append(s.keys, keys...)
	s.maybe = s.maybe || maybe
	return nil
}

// TestFaultsW6_RealDiskError runs the program on disks whose writes fail with a real EIO: it leaves with code 70 within a
// second, and everything that it acknowledged is on the disk, also what a node acknowledged that was started at once, while
// the kernel still shows what it could not write.
func TestFaultsW6_RealDiskError(t *testing.T) {
	privateMounts(t)
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
			s, err := f.run(t, "")
			if err != nil {
				t.Errorf("%s, run %d: %v", f.name, k, err)
			}
			if s.later > 0 || s.after > failStopMax {
				t.Errorf("%s, run %d: %d acknowledged after the failure, ended after %s", f.name, k, s.later, s.after)
			}
			if s.code == exitFailStop {
				runs++
			}
			acknowledged += len(s.keys)
			slowest = max(slowest, s.after)
		}
		progress(t, "%s: done", f.name)
	}
	figure(t, "real EIO: the node stopped %d times with code 70, at most %s after the first failed answer; %d keys acknowledged",
		runs, slowest.Round(time.Millisecond), acknowledged)
	if runs == 0 {
		t.Error("no write failed")
	}
}

// TestFaultsW6_ControlRetry plants the bug that the fail-stop is there for: a failed sync is tried again and then believed.
func TestFaultsW6_ControlRetry(t *testing.T) {
	retries := mutant(t, "retries", "wal/log.go",
		"err := l.store.Sync()",
		"err := l.store.Sync()\n\tfor ; err != nil; err = l.store.Sync() {\n\t\tl.o.Logger.Warn(\"sync failed, tried again\")\n\t}")
	privateMounts(t)
	disk, office, c := newTightDisk(t, false), newPostOffice(t), newCaller("")
	defer c.close()
	dir := filepath.Join(disk.at, "data")
	n := launch(t, command{program: retries, args: serveArgs(dir, office.args()...)}).ready()
	session, err := office.session(c, n.url, "ana@example.com")
	if err != nil {
		t.Fatal(err)
	}
	disk.tighten(96 << 10)
	var keys []realKey
	for range endless {
		more, _ := realLife(c, n.url, session)
		keys = append(keys, more...)
		if strings.Contains(n.output(), "sync failed, tried again") || len(more) != realRounds {
			break
		}
	}
	disk.relax()
	more, _ := realLife(c, n.url, session)
	keys = append(keys, more...)
	n.kill()
	disk.forget()
	after := launch(t, command{args: serveArgs(dir, office.args()...)})
	noticed := errors.New("it does not start")
	if after.answers() {
		noticed = compareKeys(c, after.url, session, keys, true)
		after.kill()
	}
	figure(t, "control, a failed sync is tried again: of %d keys acknowledged some are lost: %v", len(keys), noticed)
	if noticed == nil {
		t.Error("a log that tries a failed sync again loses nothing: the disk of this test does not fail as it should")
	}
}

// TestFaultsW6_ControlRemembered plants the bug that a start reads what the kernel remembers: what a node acknowledges that is
// started at once after a failed sync is then built upon bytes that are not on the disk.
func TestFaultsW6_ControlRemembered(t *testing.T) {
	remembers := mutant(t, "remembers", "wal/open.go", "if err := o.disk.settle(dir); err != nil {", "if err := error(nil); err != nil {")
	privateMounts(t)
	f := realFailure{name: "control", left: 96 << 10, again: true}
	s, err := f.run(t, remembers)
	figure(t, "control, a start that believes the kernel's memory: %d keys acknowledged, then: %v", len(s.keys), err)
	if err == nil {
		t.Error("nothing is lost: the disk of this test does not fail as it should")
	}
}
