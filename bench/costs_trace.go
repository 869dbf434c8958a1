//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// costMixes are the usual request, a large response, and one that cannot be cached.
func costMixes() []string { return []string{mixBest, mixFull, mixConvert} }

const (
	costRounds      = 11
	costConnections = 8 // few enough that a busy machine does not shed load
	costMeasure     = 300 * time.Millisecond
	// traceMeasure is long enough for some thousands of requests.
	traceMeasure = 2 * time.Second
	traceAnswers = 1000
	// acceptTraces is how many traces are made before costs are accepted, because they vary with the state of the
	// overload watch.
	acceptTraces = 4
)

// waitCalls are system calls by which threads wait, wake each other and manage memory; their number depends on the
// machine and its load.
func waitCalls() []string {
	return []string{
		"futex", "epoll_pwait", "epoll_wait", "nanosleep", "clock_nanosleep", "sched_yield", "tgkill", "rt_sigreturn", "getpid", "madvise", "munmap", "mmap",
		"restart_syscall", "rt_sigprocmask", "sigaltstack", "clone", "clone3", "gettid", "timer_settime", "timer_delete", "timer_create", "eventfd2",
	}
}

// runCosts is the subcommand bench costs check|accept|show: it compares the cost of requests with the accepted one.
func runCosts(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	flags := flag.NewFlagSet("bench costs", flag.ContinueOnError)
	flags.SetOutput(progress)
	tasard := flags.String("tasard", "./tasard", "`path` of the node's program")
	file := flags.String("accepted", ".ci/costs.json", "`file` of accepted costs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	order := flags.Arg(0)
	if flags.NArg() != 1 || !slices.Contains([]string{"check", "accept", "show"}, order) {
		return fmt.Errorf("bench costs: want check, accept or show, found %q", flags.Args())
	}
	accepted, err := readCosts(*file)
	if err != nil && !(order == "accept" && errors.Is(err, os.ErrNotExist)) {
		return err
	}
	traces := 1
	if order == "accept" {
		traces = acceptTraces
	}
	found, err := measureCosts(ctx, *tasard, progress, costMixes(), traces)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, accepted.table(found)); err != nil {
		return err
	}
	switch order {
	case "accept":
		return found.write(*file)
	case "check":
		if problems := accepted.problems(found); len(problems) > 0 {
			return fmt.Errorf("requests cost more than %s accepts:\n  %s\nmend it, or accept it with make bench-accept and say in the commit why", *file, strings.Join(problems, "\n  "))
		}
	}
	return nil
}

// measureCosts measures the requests of each mix; of several traces the most expensive counts.
func measureCosts(ctx context.Context, tasard string, progress io.Writer, mixes []string, traces int) (found costList, err error) {
	options := runOptions{Rounds: costRounds, Measure: costMeasure, Warmup: costMeasure / 4, Connections: costConnections, Accounts: 128}
	l, err := newRunner(options, tasard, progress)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	tracing := canTrace(ctx)
	if tracing != nil {
		_, _ = fmt.Fprintf(progress, "system calls are not counted here: %v\n", tracing)
	}
	found = costList{}
	for _, mix := range mixes {
		_, _ = fmt.Fprintf(progress, "%s: CPU time against the bare server, allocations, bytes\n", mix)
		one, err := l.costOf(ctx, mix)
		if err != nil {
			return nil, err
		}
		found[mix] = one
	}
	if tracing != nil {
		return found, nil
	}
	// The traced node uses the same data.
	return found, errors.Join(l.stopStarted(), l.stopNode(), l.countCalls(ctx, found, traces))
}

// countCalls counts the system calls of requests.
func (l *runner) countCalls(ctx context.Context, found costList, traces int) error {
	idle, err := l.trace(ctx, "")
	if err != nil {
		return err
	}
	for _, mix := range slices.Sorted(maps.Keys(found)) {
		_, _ = fmt.Fprintf(l.progress, "%s: system calls\n", mix)
		one := found[mix]
		one.Calls = map[string]float64{}
		for range traces {
			var traced *syscallTrace
			err := retry(ctx, func() (err error) {
				traced, err = l.trace(ctx, mix)
				return err
			})
			if err != nil {
				return err
			}
			calls, failed := traced.perRequest(idle)
			for name, count := range calls {
				one.Calls[name] = max(one.Calls[name], count)
			}
			one.Failed = max(one.Failed, failed)
		}
		found[mix] = one
	}
	return nil
}

// costOf measures everything except system calls.
func (l *runner) costOf(ctx context.Context, mix string) (cost, error) {
	pairs, err := l.compareBaseline(ctx, mix, bareName)
	if err != nil {
		return cost{}, err
	}
	scrape, err := l.scrapeAllocations(ctx)
	if err != nil {
		return cost{}, err
	}
	var cpu, allocations, sizes []float64
	for i := range pairs {
		node, bare := &pairs[i].a, &pairs[i].b
		cpu = append(cpu, cpuPerRequest(node)/cpuPerRequest(bare))
		allocations = append(allocations, max(0, node.mallocs-scrape)/float64(node.answers))
		sizes = append(sizes, float64(node.bytes)/float64(node.answers))
	}
	return cost{Bytes: hundredths(median(sizes)), Allocations: hundredths(slices.Min(allocations)), CPU: spreadOf(cpu)}, nil
}

// callCount counts the calls of one name.
type callCount struct{ made, failed int }

// syscallTrace has the system calls of a whole run, and how many requests it answered.
type syscallTrace struct {
	calls    map[string]callCount
	requests uint64
}

// perRequest returns the calls of one request: those of the run without those of a run without requests.
func (t *syscallTrace) perRequest(idle *syscallTrace) (calls map[string]float64, failed float64) {
	calls = map[string]float64{}
	for name, count := range t.calls {
		if slices.Contains(waitCalls(), name) {
			continue
		}
		done := count.made - count.failed - idle.calls[name].made + idle.calls[name].failed
		if each := float64(done) / float64(t.requests); each >= callsRiseMax/2 {
			calls[name] = hundredths(each)
		}
		failed += float64(count.failed-idle.calls[name].failed) / float64(t.requests)
	}
	return calls, max(0, hundredths(failed))
}

// trace runs a node under strace from start to end, with a mix as load, or without load if mix is "".
func (l *runner) trace(ctx context.Context, mix string) (*syscallTrace, error) {
	file := filepath.Join(l.dir, "calls.txt")
	node, err := startNode(ctx, []string{"strace", "-f", "-qq", "-c", "-o", file, l.tasard}, l.fixture, serverCore)
	if err != nil {
		return nil, err
	}
	result := &syscallTrace{}
	if mix != "" {
		result.requests, err = l.loadTraced(ctx, node, mix)
	}
	if err := errors.Join(err, stopTraced(node)); err != nil {
		return nil, fmt.Errorf("trace %q: %w", mix, err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	result.calls, err = parseCalls(text)
	return result, err
}

// loadTraced puts a load on a traced node and returns the number of answers. It reads neither CPU time, which would
// be strace's, nor allocations, which would take a request.
func (l *runner) loadTraced(ctx context.Context, node *server, mix string) (uint64, error) {
	g := &clients{requests: newMix(benchHost, l.fixture.keys, mixes()[mix]), connections: l.options.Connections}
	s, err := l.sample(ctx, &server{name: "the traced node", address: node.address}, &load{groups: []*clients{g}, measure: traceMeasure})
	if err == nil && s.answers < traceAnswers {
		err = fmt.Errorf("%d answers in %v, want %d to count anything", s.answers, traceMeasure, traceAnswers)
	}
	return s.answers, err
}

// stopTraced stops the node under strace, which ignores signals itself: it exits with the node and writes its counts.
func stopTraced(node *server) error {
	strace := node.processes[0]
	if err := syscall.Kill(-strace.cmd.Process.Pid, syscall.SIGTERM); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return strace.awaitExit(ctx)
}

// parseCalls parses the table of strace -c: share of time, seconds, time per call, calls, errors if any, name.
func parseCalls(text []byte) (map[string]callCount, error) {
	calls := map[string]callCount{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		columns := strings.Fields(lines.Text())
		if len(columns) < 5 || columns[len(columns)-1] == "total" {
			continue
		}
		var count callCount
		var err error
		if count.made, err = strconv.Atoi(columns[3]); err != nil {
			continue // the heading
		}
		if len(columns) > 5 {
			if count.failed, err = strconv.Atoi(columns[4]); err != nil {
				return nil, fmt.Errorf("strace says %q: %w", lines.Text(), err)
			}
		}
		calls[columns[len(columns)-1]] = count
	}
	if calls["read"].made == 0 {
		return nil, fmt.Errorf("strace counted no read in\n%s", text)
	}
	return calls, nil
}

// canTrace returns why system calls cannot be counted here.
func canTrace(ctx context.Context) error {
	if output, err := exec.CommandContext(ctx, "strace", "-f", "-c", "-o", "/dev/null", "true").CombinedOutput(); err != nil {
		return fmt.Errorf("strace: %w %s", err, bytes.TrimSpace(output))
	}
	return nil
}
