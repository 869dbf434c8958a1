//go:build faults

package faults

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// realSweep plants faults at the system calls of the program itself.
type realSweep struct {
	t       *testing.T
	dir     string
	from    map[string][]byte // the directory before each life: with an account that has a session, as a kill leaves it
	session string
	office  *postOffice
	calls   calls
}

// newRealSweep lives once, untouched, and counts.
func newRealSweep(t *testing.T) *realSweep {
	t.Helper()
	w := &realSweep{t: t, dir: filepath.Join(memoryDir(t), "data"), office: newPostOffice(t)}
	n, first := start(t, w.dir, w.office.args()...), newSmith(t, "")
	first.signIn(t, w.office, n)
	n.kill()
	w.from, w.session = readDir(t, w.dir), first.a.session
	trail := filepath.Join(filepath.Dir(w.dir), "trace")
	s, n := w.live("-y", "-s", "0", "-o", trail, "-e", "trace="+writePath, "-e", "signal=none")
	if n.cmd.ProcessState.ExitCode() != 0 || s.made() != realRounds {
		t.Fatalf("the untouched life: %d keys, %v", s.made(), n.cmd.ProcessState)
	}
	var err error
	if w.calls, err = readTrace(trail, w.dir); err != nil {
		t.Fatal(err)
	}
	return w
}

// live starts the program under strace and lets a smith work, to the end of the process.
func (w *realSweep) live(options ...string) (*smith, *node) {
	putDir(w.t, w.dir, w.from)
	n := launch(w.t, command{
		prefix: append([]string{"strace", "-D", "-f", "-qq"}, options...),
		args:   serveArgs(w.dir, w.office.args()...),
		env:    []string{"GOMAXPROCS=1"}, // the log changes its thread less often
	})
	s := newSmith(w.t, w.session)
	if n.answers() {
		s.work(n, realRounds)
	}
	n.end()
	return s, n
}

// each plants a fault at every call of some names on the files of the directory, one life each, and holds what is left against what
// was acknowledged. It returns how many fired, by name, of how many, and the longest time from a failure to the end of the process.
func (w *realSweep) each(names []string, fault string, fired func(n *node) bool) (kinds map[string]int, points int, slowest time.Duration) {
	w.t.Helper()
	kinds = map[string]int{}
	for _, call := range names {
		for k := 1; k <= w.calls.counts[call]; k++ {
			options := []string{"-o", "/dev/null", "-e", "trace=" + call, "-e", fmt.Sprintf("inject=%s:%s:when=%d", call, fault, k)}
			for _, path := range w.calls.paths {
				options = append(options, "-P", path)
			}
			s, n := w.live(options...)
			points++
			switch hit := fired(n); {
			case hit:
				kinds[call]++
			case n.cmd.ProcessState.ExitCode() != 0:
				w.t.Errorf("%s %d: %v: %s", call, k, n.cmd.ProcessState, n.tail(3))
			}
			if s.later > 0 {
				w.t.Errorf("%s %d: %d changes acknowledged after the failure", call, k, s.later)
			}
			slowest = max(slowest, s.lasted(n))
			after := start(w.t, w.dir, w.office.args()...)
			if err := s.check(after); err != nil {
				w.t.Errorf("%s %d: %v", call, k, err)
			}
			after.kill()
		}
	}
	return kinds, points, slowest
}

// sum is how many there are of all kinds.
func sum(kinds map[string]int) (all int) {
	for _, count := range kinds {
		all += count
	}
	return all
}

// TestFaultsW3_RealProgram crashes the program as users build it at the system calls of its write path, under callers over
// HTTP, up to its clean end. strace counts for each thread, and the log's goroutine changes its thread, so that a number
// is not the same moment in each run; every one that fires counts.
func TestFaultsW3_RealProgram(t *testing.T) {
	need(t, "strace", "strace")
	w := newRealSweep(t)
	kinds, points, _ := w.each(strings.Split(writePath, ","), "signal=KILL", func(n *node) bool {
		status, is := n.cmd.ProcessState.Sys().(syscall.WaitStatus)
		return is && status.Signaled() && status.Signal() == syscall.SIGKILL
	})
	figure(t, "the real program crashed at %d of %d system calls tried; %v of %v", sum(kinds), points, kinds, w.calls.counts)
	if sum(kinds) < 40 {
		t.Errorf("%d of %d crashes fired", sum(kinds), points)
	}
}

// TestFaultsW6_RealProgramStops lets writes and syncs of the program fail, under callers over HTTP: it leaves with code 70
// within a second, acknowledges nothing more, and what it acknowledged is there at the next start.
func TestFaultsW6_RealProgramStops(t *testing.T) {
	t.Parallel()
	need(t, "strace", "strace")
	kinds, _, slowest := newRealSweep(t).each(failureCalls(), "error=EIO", func(n *node) bool { return n.cmd.ProcessState.ExitCode() == exitFailStop })
	figure(t, "EIO injected into the real program: it stopped %d times with code 70 (%v), at most %s after the first failed answer",
		sum(kinds), kinds, slowest.Round(time.Millisecond))
	if sum(kinds) < 40 || slowest > failStopMax {
		t.Errorf("%d fired, the slowest stop took %s", sum(kinds), slowest)
	}
}
