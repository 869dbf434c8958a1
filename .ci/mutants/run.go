package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A run may use so much more time of the processor than its tests did before, which is the same on a busy machine. By the
// clock it may take long: that finds only what waits for ever.
const (
	processorTimes = 3
	processorMore  = 5 * time.Second
	clockTimes     = 10
	clockMore      = time.Minute
)

// askMax is how long the tests take that are asked besides those of the file's own test files, but askMin of them in any case.
const (
	askMax = time.Minute
	askMin = 5
)

// batchMax is how long tests take that are asked together.
const batchMax = 500 * time.Millisecond

// test is one test of the package, run without mutants.
type test struct {
	name  string
	file  string // where it stands
	took  time.Duration
	seen  map[int]bool // the mutants that it passes
	whole bool         // it passed and is fast enough to be asked
}

type runner struct {
	pkg      *checked
	binaries *binaries
	options  options
	kept     *results
	work     string
	tests    []*test
	mu       sync.Mutex
	done     int
}

// command is a run of the test binary for some tests.
func (r *runner) command(ctx context.Context, binary string, names []string, processor time.Duration, environment ...string) *exec.Cmd {
	pattern := "^(" + strings.Join(names, "|") + ")$"
	c := exec.CommandContext(ctx, "bash", "-c", `ulimit -t "$1"; shift; exec "$@"`, "bash", strconv.Itoa(int(processor/time.Second)+1),
		binary, "-test.run", pattern, "-test.failfast", "-test.timeout=0")
	c.Dir = filepath.Dir(r.pkg.files[0].path)
	c.Env = append(append(os.Environ(), "RAPID_NOFAILFILE=true"), environment...) // what a mutant fails with is no case to be kept
	c.WaitDelay = time.Second
	return c
}

// watch runs each test alone and notes what it passes.
func (r *runner) watch(ctx context.Context) error {
	list := exec.CommandContext(ctx, r.binaries.all, "-test.list", "^(Test|Fuzz|Example)")
	list.Dir = filepath.Dir(r.pkg.files[0].path)
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("list the tests: %w", err)
	}
	places, err := testFiles(list.Dir)
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(string(out)) {
		if strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") || strings.HasPrefix(name, "Example") {
			r.tests = append(r.tests, &test{name: name, file: places[name]})
		}
	}
	if len(r.tests) == 0 {
		return errors.New("the package has no tests")
	}
	r.each(len(r.tests), func(i int) { r.look(ctx, r.tests[i]) })
	sort.Slice(r.tests, func(i, j int) bool { return r.tests[i].took < r.tests[j].took })
	asked := 0
	for _, t := range r.tests {
		if t.whole {
			asked++
			continue
		}
		fmt.Printf("not asked: %s (%s)\n", t.name, t.took.Round(time.Millisecond))
	}
	fmt.Printf("%s: %d of %d tests are asked\n", r.pkg.dir, asked, len(r.tests))
	return r.control(ctx)
}

// control is a mutant that is none: whoever finds it finds anything, and no verdict would mean something.
func (r *runner) control(ctx context.Context) error {
	nothing := &mutant{}
	for _, t := range r.tests {
		t.seen[nothing.id] = true
	}
	if v := r.try(ctx, nothing); ctx.Err() == nil && v.State != survived {
		return fmt.Errorf("the control failed: without a mutant %s is %q", v.By, v.State)
	}
	return ctx.Err()
}

// testFiles says for each test in which file it stands.
func testFiles(dir string) (map[string]string, error) {
	places := map[string]string{}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, fmt.Errorf("list the test files: %w", err)
	}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the tests: %w", err)
		}
		for _, found := range declared.FindAllSubmatch(text, -1) {
			places[string(found[1])] = filepath.Base(path)
		}
	}
	return places, nil
}

func (r *runner) look(ctx context.Context, t *test) {
	file := filepath.Join(r.work, "seen-"+t.name)
	ctx, cancel := context.WithTimeout(ctx, r.options.slow)
	defer cancel()
	began := time.Now()
	err := r.command(ctx, r.binaries.all, []string{t.name}, r.options.slow, "MUTANT_WATCH="+file).Run()
	t.took = time.Since(began)
	t.whole = err == nil && t.took <= r.options.slow
	t.seen = map[int]bool{}
	text, _ := os.ReadFile(file)
	for _, number := range bytes.Fields(text) {
		if id, err := strconv.Atoi(string(number)); err == nil {
			t.seen[id] = true
		}
	}
}

// each does n things, some at once.
func (r *runner) each(n int, do func(i int)) {
	places := make(chan struct{}, max(r.options.workers, 1))
	var group sync.WaitGroup
	for i := range n {
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			do(i)
		})
	}
	group.Wait()
}

// all runs what is not known yet, and keeps what it finds.
func (r *runner) all(ctx context.Context, mutants []*mutant) error {
	var open []*mutant
	for _, m := range mutants {
		if !m.broken && !r.kept.found(m.key) {
			open = append(open, m)
		}
	}
	fmt.Printf("%s: %d mutants, %d to try\n", r.pkg.dir, len(mutants), len(open))
	r.each(len(open), func(i int) {
		m := open[i]
		verdict := r.try(ctx, m)
		if ctx.Err() != nil {
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.kept.Verdicts[m.key] = verdict
		if r.done++; r.done%100 == 0 {
			fmt.Printf("%s: %d of %d\n", r.pkg.dir, r.done, len(open))
		}
	})
	if err := r.kept.save(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("stopped after %d of %d mutants; call again to go on", r.done, len(open))
	}
	return nil
}

// try asks the tests that pass the mutant, the fast ones first and together.
func (r *runner) try(ctx context.Context, m *mutant) verdict {
	binary, environment := r.binaries.all, "MUTANT="+strconv.Itoa(m.id)
	if m.constant {
		path, err := r.binaries.constant(ctx, m)
		if err != nil {
			m.broken = true
			return verdict{State: notBuilt}
		}
		defer os.Remove(path)
		binary, environment = path, "MUTANT=0"
	}
	asked := false
	for rest := r.witnesses(m); len(rest) > 0; {
		var names []string
		var expected time.Duration
		for len(rest) > 0 && (len(names) == 0 || expected+rest[0].took <= batchMax) {
			names, expected, rest = append(names, rest[0].name), expected+rest[0].took, rest[1:]
		}
		asked = true
		limited, cancel := context.WithTimeout(ctx, clockTimes*expected+clockMore)
		out, err := r.command(limited, binary, names, processorTimes*expected+processorMore, environment).CombinedOutput()
		late := limited.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return verdict{}
		case late || overrun(err):
			return verdict{State: timedOut, By: names[0]}
		case err != nil:
			return verdict{State: killed, By: firstFailure(out, names)}
		}
	}
	if !asked {
		return verdict{State: unseen}
	}
	return verdict{State: survived}
}

// witnesses are the tests that can find a mutant: first those in the file's own test files, then the others, the fast ones first,
// within askMax. What passes a constant is not known: all.
func (r *runner) witnesses(m *mutant) []*test {
	var own, others []*test
	stem := ""
	if m.file != nil {
		stem = strings.TrimSuffix(filepath.Base(m.file.path), ".go")
	}
	for _, t := range r.tests {
		switch {
		case !t.whole || !m.constant && !t.seen[m.id]:
		case stem != "" && strings.HasPrefix(t.file, stem):
			own = append(own, t)
		default:
			others = append(others, t)
		}
	}
	left := askMax
	for i, t := range others {
		if left -= t.took; left < 0 && i >= askMin {
			return append(own, others[:i]...)
		}
	}
	return append(own, others...)
}

// overrun says that the kernel ended a process that had used up its time.
func overrun(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

func firstFailure(out []byte, names []string) string {
	if found := regexp.MustCompile(`--- FAIL: (\w+)`).FindSubmatch(out); found != nil {
		return string(found[1])
	}
	return names[0]
}
