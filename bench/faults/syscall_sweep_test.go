//go:build faults

package faults

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

	"github.com/tasard/tasard/wal"
)

// writePath are the system calls that change a directory of the log, or open something in it.
const writePath = "openat,write,pwrite64,writev,pwritev,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat,ftruncate,mkdir,mkdirat"

// memoryFiles is where Linux mounts a file system in memory. A process that is killed leaves the same there as on a disk.
const memoryFiles = "/dev/shm"

// memoryDir is a directory in memory that ends with the test.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(memoryFiles, "tasard-faults-")
	if err != nil {
		t.Skip("NEEDS " + memoryFiles + ": mount a tmpfs there")
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// calls are the system calls of one run on the files of a directory: how many of each, and which paths there were.
type calls struct {
	counts map[string]int
	paths  []string
}

// inFile and inPath find the file of a call as strace -y prints it: by its descriptor, or by its name.
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

// outcome is how a traced child ended.
type outcome struct {
	fired bool // killed by what strace planted
	code  int  // else its exit code
	acked int  // the last step that it acknowledged
	said  string
}

// pointMax is how long one run under strace may take.
const pointMax = time.Minute

// trace runs a life under strace with the given options.
func trace(t *testing.T, dir, kind string, steps int, options ...string) (outcome, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		return outcome{}, err
	}
	limit, cancel := context.WithTimeout(t.Context(), pointMax)
	defer cancel()
	cmd := exec.CommandContext(limit, "strace", append(append([]string{"-f", "-qq"}, options...), self, "-test.run=^TestDiskChild$")...)
	cmd.Env = append(os.Environ(), lifeDir+"="+dir, lifeKind+"="+kind, lifeSteps+"="+strconv.Itoa(steps), "GOTRACEBACK=none")
	read, write, err := os.Pipe()
	if err != nil {
		return outcome{}, err
	}
	defer read.Close()
	cmd.ExtraFiles = []*os.File{write}
	cmd.WaitDelay = time.Second
	if err := errors.Join(cmd.Start(), write.Close()); err != nil {
		return outcome{}, err
	}
	var out outcome
	for lines := bufio.NewScanner(read); lines.Scan(); {
		if n, err := strconv.Atoi(lines.Text()); err == nil {
			out.acked = n
			continue
		}
		out.said += lines.Text()
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled():
		out.fired = exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL && limit.Err() == nil
	case errors.As(err, &exit):
		out.code, out.fired = exit.ExitCode(), exit.ExitCode() == 128+int(syscall.SIGKILL)
	default:
		return out, err
	}
	if limit.Err() != nil {
		return out, fmt.Errorf("a run took more than %s", pointMax)
	}
	return out, nil
}

// scenario is a life that is crashed at each of its system calls.
type scenario struct {
	name string
	kind string
	from map[string][]byte // the directory before, nil = none
	// backup is what a life restores.
	backup []byte
	had    int // the step whose state the directory, or the backup, holds
	steps  int
}

// point is a crash: at the n-th call of a name.
type point struct {
	call string
	n    int
}

// sweep crashes a scenario at every call of its write path.
type sweep struct {
	t        *testing.T
	root     string // below it each run has a directory
	scenario scenario
	calls    calls
	dir      string // of the run that was counted: the paths of strace are of this one

	mu         sync.Mutex
	fired      int
	untouched  int
	bad        []string
	torn       int
	diskWorst  float64 // most bytes of a directory for each byte of the log and snapshots in it
	perCall    map[string]int
	undershoot int
}

// newSweep runs the scenario once, untouched, and counts.
func newSweep(t *testing.T, s scenario) *sweep {
	t.Helper()
	w := &sweep{t: t, root: memoryDir(t), scenario: s, perCall: map[string]int{}}
	w.dir = filepath.Join(w.root, "w0", "deep", "data")
	trail := filepath.Join(w.root, "trace")
	if err := w.put(w.dir); err != nil {
		t.Fatal(err)
	}
	out, err := trace(t, w.dir, s.kind, s.steps, "-y", "-s", "0", "-o", trail, "-e", "trace="+writePath, "-e", "signal=none")
	if err != nil || out.fired || out.code != 0 || out.acked != s.steps {
		t.Fatalf("%s: the untouched run: %+v, %v", s.name, out, err)
	}
	if w.calls, err = readTrace(trail, w.dir); err != nil {
		t.Fatal(err)
	}
	return w
}

// put makes the directory what the scenario begins with.
func (w *sweep) put(dir string) error {
	top := filepath.Dir(filepath.Dir(dir))
	if err := os.RemoveAll(top); err != nil {
		return err
	}
	if w.scenario.kind == lifeRestored {
		return errors.Join(os.MkdirAll(filepath.Dir(dir), 0o700), os.WriteFile(backupOf(dir), w.scenario.backup, 0o600))
	}
	if w.scenario.from == nil {
		return os.MkdirAll(filepath.Dir(top), 0o700)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, data := range w.scenario.from {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// sweepWorkers run at once; each run waits for strace more than it computes.
const sweepWorkers = 2

// run crashes at each call, every-th of them only.
func (w *sweep) run(every int) {
	w.t.Helper()
	points := make(chan point)
	var group sync.WaitGroup
	for worker := range sweepWorkers {
		dir := filepath.Join(w.root, fmt.Sprintf("w%d", worker), "deep", "data")
		group.Go(func() {
			for p := range points {
				if err := w.crash(dir, p); err != nil {
					w.complain(p, err)
				}
			}
		})
	}
	for _, call := range strings.Split(writePath, ",") {
		count := w.calls.counts[call]
		for n := 1; n <= count+1; n += every { // one beyond the last: that run must end untouched
			points <- point{call, n}
		}
	}
	close(points)
	group.Wait()
}

func (w *sweep) complain(p point, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bad = append(w.bad, fmt.Sprintf("%s, %s %d: %v", w.scenario.name, p.call, p.n, err))
}

// crash runs the scenario up to a point and looks at what is left.
func (w *sweep) crash(dir string, p point) error {
	if err := w.put(dir); err != nil {
		return err
	}
	options := []string{"-o", "/dev/null", "-e", "trace=" + p.call, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", p.call, p.n)}
	for _, path := range w.calls.paths {
		options = append(options, "-P", dir+strings.TrimPrefix(path, w.dir))
	}
	out, err := trace(w.t, dir, w.scenario.kind, w.scenario.steps, options...)
	if err != nil {
		return err
	}
	w.count(p, out)
	if !out.fired && (out.code != 0 || out.acked != w.scenario.steps) {
		return fmt.Errorf("it ended by itself: %+v", out)
	}
	return w.check(dir, max(out.acked, w.scenario.had))
}

func (w *sweep) count(p point, out outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if out.fired {
		w.fired++
		w.perCall[p.call]++
		return
	}
	w.untouched++
	if p.n <= w.calls.counts[p.call] {
		w.undershoot++ // this run took fewer calls than the one that was counted
	}
}

// check opens what a crash left, as the program would, twice: what was acknowledged is there, and at most the step that was
// under way besides.
func (w *sweep) check(dir string, acked int) error {
	if w.scenario.kind == lifeRepaired && acked == w.scenario.had {
		if _, err := wal.Repair(dir, lifeLog(dir)); err != nil { // the crash may have come before its end
			return err
		}
	}
	if w.scenario.kind == lifeRestored && acked == w.scenario.had {
		if unserved, err := unfinished(dir); unserved || err != nil {
			return err
		}
	}
	for range 2 {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && acked == 0 {
			return nil // the crash came before anything was there
		}
		l, err := openLife(dir, nil)
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
		if found := stepOf(view); found != acked && found != acked+1 {
			return fmt.Errorf("%d acknowledged, found %d: %s", acked, found, view)
		}
		if err := w.weigh(dir); err != nil {
			return err
		}
	}
	return nil
}

// unfinished reports whether a crash left a directory that is not restored, and that nobody can take for one that is: it is
// absent, has nothing in it yet, or is refused as damaged.
func unfinished(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	bytes := int64(0)
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return false, err
		}
		bytes += info.Size()
	}
	if bytes == 0 {
		return true, nil
	}
	var damage *wal.DamageError
	if _, err = wal.Verify(dir); errors.As(err, &damage) {
		return true, nil
	}
	return false, err
}
