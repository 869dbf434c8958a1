//go:build faults

package faults

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// failureCalls are the calls that write and sync.
func failureCalls() []string { return []string{"write", "pwrite64", "fsync"} }

// failuresWanted is up to which call of a name each is made to fail: W6.
const failuresWanted = 200

// exitFailStop is the program's exit code after a failed write.
const exitFailStop = 70

// failStopMax is how long the program may be there after its first failed write.
const failStopMax = time.Second

// failSweep lets a call of a life fail once, and looks at what the life does then.
type failSweep struct {
	*sweep
	errno string
}

// fail runs one life in which the n-th call of a name fails.
func (w *failSweep) fail(dir string, p point) error {
	if err := w.put(dir); err != nil {
		return err
	}
	trail := filepath.Dir(filepath.Dir(dir)) + ".trace" // beside what the life makes
	options := []string{
		"-o", trail, "-s", "0", "-e", "signal=none", "-e", "trace=" + writePath,
		"-e", fmt.Sprintf("inject=%s:error=%s:when=%d", p.call, w.errno, p.n),
	}
	for _, path := range w.calls.paths {
		options = append(options, "-P", dir+strings.TrimPrefix(path, w.dir))
	}
	out, err := trace(w.t, dir, w.scenario.kind, w.scenario.steps, options...)
	if err != nil {
		return err
	}
	hit, after, err := afterInjection(trail, dir)
	if err != nil {
		return err
	}
	out.fired = hit
	w.count(p, out)
	switch {
	case !hit && (out.code != 0 || out.acked != w.scenario.steps):
		return fmt.Errorf("it ended by itself: %+v", out)
	case hit && (out.code != 1 || out.acked == afterFailure):
		return fmt.Errorf("it went on after the failure: %+v", out)
	case len(after) > 0:
		return fmt.Errorf("after the failure it still calls %q", after)
	}
	return w.check(dir, out.acked)
}

// afterInjection reports whether a fault was injected, and which calls that change something came after it. That a new directory which
// could not be synced is removed again is right: it has nothing in it, or it stays.
func afterInjection(trail, dir string) (hit bool, after []string, err error) {
	file, err := os.Open(trail)
	if err != nil {
		return false, nil, err
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		name := callName.FindStringSubmatch(lines.Text())
		reads := name != nil && name[1] == "openat" && !strings.Contains(lines.Text(), "O_CREAT")
		undoes := name != nil && name[1] == "unlinkat" && strings.Contains(lines.Text(), fmt.Sprintf("(AT_FDCWD, %q, ", dir))
		if hit && name != nil && !reads && !undoes {
			after = append(after, lines.Text())
		}
		hit = hit || strings.Contains(lines.Text(), "(INJECTED)")
	}
	return hit, after, nil
}

// run lets each of the first calls of some names fail.
func (w *failSweep) run(names []string, upTo int) {
	points := make(chan point)
	var group sync.WaitGroup
	for worker := range sweepWorkers {
		dir := filepath.Join(w.root, fmt.Sprintf("w%d", worker), "deep", "data")
		group.Go(func() {
			for p := range points {
				if err := w.fail(dir, p); err != nil {
					w.complain(p, err)
				}
			}
		})
	}
	for _, call := range names {
		for n := 1; n <= upTo; n++ {
			points <- point{call, n}
		}
	}
	close(points)
	group.Wait()
}

// TestFaultsW6_EachWriteAndSyncFails lets the K-th write and the K-th sync fail, K = 1 to 200, at the first start, in
// appends, segment rolls, snapshots and compaction: nothing is written, synced or acknowledged after it, and what was
// acknowledged is there at the next start.
func TestFaultsW6_EachWriteAndSyncFails(t *testing.T) {
	t.Parallel()
	need(t, "strace", "strace")
	w := &failSweep{newSweep(t, scenario{name: "EIO", kind: lifeHonest, steps: 150}), "EIO"}
	w.run(failureCalls(), failuresWanted)
	for i, complaint := range w.bad {
		if i < 10 {
			t.Error(complaint)
		}
	}
	figure(t, "EIO injected at %d writes and syncs (%v), %d bad", w.fired, w.perCall, len(w.bad))
	for _, call := range failureCalls() {
		if w.perCall[call] < failuresWanted*9/10 {
			t.Errorf("%s failed %d times, want %d", call, w.perCall[call], failuresWanted)
		}
	}
}

// stopped is what a caller saw of a node that stopped.
type stopped struct {
	keys  []realKey
	maybe bool
	code  int           // exit code
	after time.Duration // from the first failed answer to the end of the process
	later int           // good answers to changes after the first failed one
}

// untilStopped lets a caller make and revoke keys until one of it fails, and then try again until the process is gone or
// the rounds are over.
func untilStopped(n *node, c *caller, session string, rounds int) stopped {
	var s stopped
	var failed time.Time
	for round := 0; round < rounds && !n.over(); round++ {
		made, got, err := createKey(c, n.url, session, fmt.Sprintf("round %d", round))
		switch {
		case !failed.IsZero():
			if err == nil && got.good() {
				s.later++
			}
			continue
		case err != nil || !got.good():
			s.maybe, failed = true, time.Now()
			continue
		}
		s.keys = append(s.keys, realKey{id: made.ID, asked: true})
		if got, err = revokeKey(c, n.url, session, made.ID); err != nil || !got.good() {
			failed = time.Now()
			continue
		}
		s.keys[len(s.keys)-1].revoked = true
	}
	if failed.IsZero() {
		n.send(syscall.SIGTERM)
	}
	s.code = n.end()
	if !failed.IsZero() { // the caller may have asked for a connection that nobody answered, and have waited longer than the process
		s.after = n.ended.Sub(failed)
	}
	return s
}

// TestFaultsW6_RealProgramStops lets writes and syncs of the program fail, under callers over HTTP: it leaves with code 70
// within a second, acknowledges nothing more, and what it acknowledged is there at the next start.
func TestFaultsW6_RealProgramStops(t *testing.T) {
	t.Parallel()
	need(t, "strace", "strace")
	w := newRealSweep(t)
	fired, slowest, kinds := 0, time.Duration(0), map[string]int{}
	for _, call := range failureCalls() {
		for k := 1; k <= w.calls.counts[call]; k++ {
			s, err := w.failReal(call, k)
			if err != nil {
				t.Errorf("%s %d: %v", call, k, err)
			}
			if s.code == exitFailStop {
				fired++
				kinds[call]++
			}
			slowest = max(slowest, s.after)
		}
	}
	figure(t, "EIO injected into the real program: it stopped %d times with code 70 (%v), at most %s after the first failed answer; nothing lost",
		fired, kinds, slowest.Round(time.Millisecond))
	if fired < 40 || slowest > failStopMax {
		t.Errorf("%d fired, the slowest stop took %s", fired, slowest)
	}
}

// failReal is one life of the program in which a call fails.
func (w *realSweep) failReal(call string, k int) (stopped, error) {
	if err := w.put(); err != nil {
		return stopped{}, err
	}
	n := launch(w.t, command{
		prefix: append([]string{"strace", "-D", "-f", "-qq"}, w.at(call, k, "error=EIO")...),
		args:   serveArgs(w.dir, w.office.args()...),
		env:    []string{"GOMAXPROCS=1"}, // the log changes its thread less often
	})
	c := newCaller("")
	defer c.close()
	s := stopped{}
	if n.answers() {
		s = untilStopped(n, c, w.session, realRounds)
	} else {
		s.code = n.end()
	}
	var err error
	switch {
	case s.code != 0 && s.code != exitFailStop:
		err = fmt.Errorf("exit code %d: %s", s.code, n.tail(3))
	case s.later > 0:
		err = fmt.Errorf("%d changes acknowledged after the failure", s.later)
	}
	again := start(w.t, w.dir, w.office.args()...)
	err = errors.Join(err, compareKeys(c, again.url, w.session, s.keys, s.maybe))
	again.kill()
	return s, err
}
