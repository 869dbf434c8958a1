//go:build faults

package cmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// writePath are the system calls that change a directory of the log, or open a file in it.
const writePath = "openat,write,pwrite64,writev,pwritev,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat,ftruncate,mkdir,mkdirat"

// memoryFiles is where Linux mounts a file system in memory. A killed process leaves the same there as on a disk.
const memoryFiles = "/dev/shm"

// memoryDir makes a directory in memory, removed at the end of the test.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(memoryFiles, "tasard-faults-")
	if err != nil {
		t.Skip("NEEDS " + memoryFiles + ": mount a tmpfs there")
	}
	t.Cleanup(func() {
		noError(t, os.RemoveAll(dir))
	})
	return dir
}

// calls counts the system calls of one run on the files of a directory, with their paths.
type calls struct {
	counts map[string]int
	paths  []string
}

// callName and callPath find the call and the file in the output of strace -y: by descriptor or by name.
var (
	callName = regexp.MustCompile(`^(?:\d+ +)?(\w+)\(`)
	callPath = regexp.MustCompile(`[<"](/[^>"]*)[>"]`)
)

// readTrace counts the calls on files of dir in an output of strace.
func readTrace(trace, dir string) (calls, error) {
	file, err := os.Open(trace)
	if err != nil {
		return calls{}, err
	}
	defer file.Close()
	seen, found := map[string]bool{}, calls{counts: map[string]int{}}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		name := callName.FindStringSubmatch(lines.Text())
		if name == nil || strings.Contains(lines.Text(), "resumed>") {
			continue
		}
		counted := false
		for _, path := range callPath.FindAllStringSubmatch(lines.Text(), -1) {
			if path[1] != dir && !strings.HasPrefix(path[1], dir+"/") {
				continue
			}
			counted = true
			if !seen[path[1]] {
				seen[path[1]] = true
				found.paths = append(found.paths, path[1])
			}
		}
		if counted {
			found.counts[name[1]]++
		}
	}
	slices.Sort(found.paths)
	return found, nil
}

// traceResult is the end of a traced child.
type traceResult struct {
	killed bool // by strace
	code   int  // otherwise its exit code
	acked  int  // last acknowledged step
	output string
}

// pointMax is the timeout of one run under strace.
const pointMax = time.Minute

// trace runs a workload under strace with options.
func trace(t *testing.T, dir string, s scenario, options ...string) (traceResult, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		return traceResult{}, err
	}
	limit, cancel := context.WithTimeout(t.Context(), pointMax)
	defer cancel()
	cmd := exec.CommandContext(limit, "strace", append(append([]string{"-f", "-qq"}, options...), self, dir, s.kind, strconv.Itoa(s.stepsBefore), strconv.Itoa(s.steps))...)
	cmd.Env = append(os.Environ(), childEnv+"="+workloadChild, "GOTRACEBACK=none")
	read, write, err := os.Pipe()
	if err != nil {
		return traceResult{}, err
	}
	defer read.Close()
	cmd.ExtraFiles = []*os.File{write}
	cmd.WaitDelay = time.Second
	if err := errors.Join(cmd.Start(), write.Close()); err != nil {
		return traceResult{}, err
	}
	var out traceResult
	for lines := bufio.NewScanner(read); lines.Scan(); {
		if n, err := strconv.Atoi(lines.Text()); err == nil {
			out.acked = n
			continue
		}
		out.output += lines.Text()
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled():
		out.killed = exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL && limit.Err() == nil
	case errors.As(err, &exit):
		out.code, out.killed = exit.ExitCode(), exit.ExitCode() == 128+int(syscall.SIGKILL)
	default:
		return out, err
	}
	if limit.Err() != nil {
		return out, fmt.Errorf("a run took more than %s", pointMax)
	}
	return out, nil
}

// scenario is a workload in which a fault is planted at each of its system calls.
type scenario struct {
	name        string
	kind        string
	initialDir  map[string][]byte // nil = none
	stepsBefore int               // step whose state initialDir has
	steps       int
	errno       string // error of the call; "" = the process is killed there
}

// syscallPoint is the n-th call of a name.
type syscallPoint struct {
	call string
	n    int
}

// faultSweep plants faults in a scenario.
type faultSweep struct {
	t        *testing.T
	root     string // contains a directory for each run
	scenario scenario
	calls    calls
	dir      string         // of the counted run, to which strace's paths refer
	views    map[string]int // see untouched

	mu         sync.Mutex
	untouched  int
	failures   []string
	torn       int
	fired      map[string]int
	undershoot int
}

// newSweep runs the scenario once without a fault, and counts.
func newSweep(t *testing.T, s scenario) *faultSweep {
	t.Helper()
	need(t, "strace", "strace")
	w := &faultSweep{t: t, root: memoryDir(t), scenario: s, fired: map[string]int{}}
	w.views, _ = untouched(t, s.steps)
	w.dir = w.place(0)
	trail := filepath.Join(w.root, "trace")
	w.put(w.dir)
	out, err := trace(t, w.dir, s, "-y", "-s", "0", "-o", trail, "-e", "trace="+writePath, "-e", "signal=none")
	if err != nil || out.killed || out.code != 0 || out.acked != s.steps {
		t.Fatalf("%s: the untouched run: %+v, %v", s.name, out, err)
	}
	w.calls, err = readTrace(trail, w.dir)
	noError(t, err)
	return w
}

// place returns the directory of a worker.
func (w *faultSweep) place(worker int) string {
	return filepath.Join(w.root, fmt.Sprintf("w%d", worker), "deep", "data")
}

// put makes a directory what the scenario begins with.
func (w *faultSweep) put(dir string) {
	top := filepath.Dir(filepath.Dir(dir))
	err := errors.Join(os.RemoveAll(top), os.MkdirAll(filepath.Dir(top), 0o700))
	if w.scenario.initialDir != nil {
		err = errors.Join(err, writeDir(dir, w.scenario.initialDir))
	}
	if err != nil {
		w.t.Error(err)
	}
}

// sweepWorkers run at once; each run mostly waits for strace.
const sweepWorkers = 2

// run plants the fault at every-th call of some names up to a number; 0 is one beyond the last, which must end
// without a fault.
func (w *faultSweep) run(names []string, upTo, every int) {
	w.t.Helper()
	var points []syscallPoint
	for _, call := range names {
		last := upTo
		if upTo == 0 {
			last = w.calls.counts[call] + 1
		}
		for n := 1; n <= last; n += every {
			points = append(points, syscallPoint{call, n})
		}
	}
	inParallel(sweepWorkers, points, func(worker int, p syscallPoint) {
		if err := w.at(w.place(worker), p); err != nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.failures = append(w.failures, fmt.Sprintf("%s, %s %d: %v", w.scenario.name, p.call, p.n, err))
		}
	})
}

// report fails the test for failures, at most ten times.
func (w *faultSweep) report() {
	w.t.Helper()
	for _, words := range w.failures[:min(10, len(w.failures))] {
		w.t.Error(words)
	}
}

// at runs the scenario with the fault at a point and checks what is left.
func (w *faultSweep) at(dir string, p syscallPoint) error {
	w.put(dir)
	fails := w.scenario.errno != ""
	trail, traced, fault := "/dev/null", p.call, "signal=KILL"
	if fails { // calls after the failure count too
		trail, traced, fault = filepath.Dir(filepath.Dir(dir))+".trace", writePath, "error="+w.scenario.errno
	}
	options := []string{"-o", trail, "-s", "0", "-e", "trace=" + traced, "-e", fmt.Sprintf("inject=%s:%s:when=%d", p.call, fault, p.n)}
	if fails {
		options = append(options, "-e", "signal=none")
	}
	for _, path := range w.calls.paths {
		options = append(options, "-P", dir+strings.TrimPrefix(path, w.dir))
	}
	out, err := trace(w.t, dir, w.scenario, options...)
	var after []string
	if err == nil && fails {
		out.killed, after, err = afterInjection(trail, dir)
	}
	if err != nil {
		return err
	}
	w.count(p, out)
	switch {
	case !out.killed && (out.code != 0 || out.acked != w.scenario.steps):
		return fmt.Errorf("it ended by itself: %+v", out)
	case fails && out.killed && (out.code != 1 || out.acked == afterFailure):
		return fmt.Errorf("it went on after the failure: %+v", out)
	case len(after) > 0:
		return fmt.Errorf("after the failure it still calls %q", after)
	}
	return w.check(dir, max(out.acked, w.scenario.stepsBefore))
}

// afterInjection reports whether a fault was injected, and which changing calls followed it. It is right to remove a
// new directory that could not be synced: it is empty, or stays.
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

func (w *faultSweep) count(p syscallPoint, out traceResult) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if out.killed {
		w.fired[p.call]++
		return
	}
	w.untouched++
	if p.n <= w.calls.counts[p.call] {
		w.undershoot++ // this run made fewer calls than the counted one
	}
}

// check opens what a crash left, twice: everything acknowledged is there, and at most the step in progress besides.
func (w *faultSweep) check(dir string, acked int) error {
	for range 2 {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && acked == 0 {
			return nil // the crash came before the first file
		}
		l, err := openWorkload(dir, nil)
		if err != nil {
			return fmt.Errorf("open after the crash: %w", err)
		}
		view, err := l.view()
		if l.system.Recovery().TornBytes > 0 {
			w.mu.Lock()
			w.torn++
			w.mu.Unlock()
		}
		if err := errors.Join(err, l.system.Close()); err != nil {
			return err
		}
		if at, is := w.views[view]; !is || at < 2*acked || at > 2*acked+2 {
			return fmt.Errorf("%d acknowledged, found step %.1f: %s", acked, float64(at)/2, view)
		}
		if err := checkDiskUse(dir); err != nil {
			return err
		}
	}
	return nil
}
