//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
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

	"github.com/tasard/tasard/bench/load"
)

// costMixes returns the mixes of requests whose costs are checked: the usual request, a request with a large response,
// and a request whose response cannot be cached.
func costMixes() []string { return []string{mixBestRates, mixFull, mixConvert} }

const (
	costRounds      = 11
	costConnections = 8 // so few that even on a busy machine the node refuses no request
	costMeasure     = 300 * time.Millisecond
	// traceMeasure is long enough for some thousands of requests, although strace slows the node down.
	traceMeasure = 2 * time.Second
	traceAnswers = 1000
	// acceptTraces is how many times bench costs accept runs each mix (set of requests) under strace. One run is not
	// enough, because the number of system calls varies.
	acceptTraces = 4
)

// waitCalls returns the names of the system calls that do not count as a cost of a request. Threads use them to wait,
// to wake each other and to manage memory. Their number depends on the machine and its load.
func waitCalls() []string {
	return []string{
		"futex", "epoll_pwait", "epoll_wait", "nanosleep", "clock_nanosleep", "sched_yield", "tgkill", "rt_sigreturn", "getpid", "madvise", "munmap", "mmap",
		"restart_syscall", "rt_sigprocmask", "sigaltstack", "clone", "clone3", "gettid", "timer_settime", "timer_delete", "timer_create", "eventfd2",
	}
}

// runCosts is the subcommand bench costs check|accept. It measures the costs of requests and compares them with
// the accepted costs, which are stored in a file.
func runCosts(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	flags := flag.NewFlagSet("bench costs", flag.ContinueOnError)
	flags.SetOutput(progress)
	tasard := flags.String("tasard", "./tasard", "`path` of the node's program")
	file := flags.String("accepted", ".ci/costs.json", "`file` of accepted costs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	action := flags.Arg(0)
	if flags.NArg() != 1 || !slices.Contains([]string{"check", "accept"}, action) {
		return fmt.Errorf("bench costs: want check or accept, found %q", flags.Args())
	}
	if action == "accept" {
		measured, err := measureCosts(ctx, *tasard, progress, costMixes(), acceptTraces)
		if err != nil {
			return err
		}
		return writeJSON(*file, measured)
	}
	var accepted costList
	if err := readJSON(*file, &accepted); err != nil {
		return err
	}
	measured, err := measureCosts(ctx, *tasard, progress, costMixes(), 1)
	if err != nil {
		return err
	}
	if text, err := json.Marshal(measured); err == nil {
		_, _ = fmt.Fprintf(out, "measured: %s\n", text)
	}
	if problems := accepted.exceeded(measured); len(problems) > 0 {
		return fmt.Errorf("requests cost more than %s accepts:\n  %s\nmend it, or accept it with make bench-accept and say in the commit why", *file, strings.Join(problems, "\n  "))
	}
	return nil
}

// measureCosts measures the cost of one request of each mix. It runs each mix under strace as many times as traces
// says, and uses the highest count of each system call.
func measureCosts(ctx context.Context, tasard string, progress io.Writer, mixes []string, traces int) (measured costList, err error) {
	options := runOptions{Rounds: costRounds, Measure: costMeasure, Warmup: costMeasure / 4, Connections: costConnections, Accounts: 128}
	r, err := newRunner(options, tasard, progress)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	straceErr := checkStrace(ctx)
	if straceErr != nil {
		_, _ = fmt.Fprintf(progress, "system calls are not counted here: %v\n", straceErr)
	}
	measured = costList{}
	for _, mix := range mixes {
		_, _ = fmt.Fprintf(progress, "%s: CPU time against the bare server, allocations, bytes\n", mix)
		c, err := r.costOf(ctx, mix)
		if err != nil {
			return nil, err
		}
		measured[mix] = c
	}
	if straceErr != nil {
		return measured, nil
	}
	// Stop the node first, because the traced node needs its data directory.
	return measured, errors.Join(r.stopStarted(), r.stopNode(), r.countCalls(ctx, measured, traces))
}

// countCalls counts the system calls of one request of each mix in costs, and stores the counts there.
func (r *runner) countCalls(ctx context.Context, costs costList, traces int) error {
	idle, err := r.trace(ctx, "")
	if err != nil {
		return err
	}
	for _, mix := range slices.Sorted(maps.Keys(costs)) {
		_, _ = fmt.Fprintf(r.progress, "%s: system calls\n", mix)
		c := costs[mix]
		c.Calls = map[string]float64{}
		for range traces {
			var t *syscallTrace
			err := r.retry(ctx, func() (err error) {
				t, err = r.trace(ctx, mix)
				return err
			})
			if err != nil {
				return err
			}
			calls, failed := t.perRequest(idle)
			for name, count := range calls {
				c.Calls[name] = max(c.Calls[name], count)
			}
			c.Failed = max(c.Failed, failed)
		}
		costs[mix] = c
	}
	return nil
}

// costOf measures the cost of one request of a mix. It leaves the system calls out: countCalls counts them later.
func (r *runner) costOf(ctx context.Context, mix string) (cost, error) {
	pairs, err := r.compareBaseline(ctx, mix, bareName)
	if err != nil {
		return cost{}, err
	}
	scrape, err := r.scrapeAllocations(ctx)
	if err != nil {
		return cost{}, err
	}
	var cpu, allocations, sizes []float64
	for i := range pairs {
		node, bare := &pairs[i].a, &pairs[i].b
		cpu = append(cpu, cpuPerRequest(node)/cpuPerRequest(bare))
		allocations = append(allocations, max(0, node.mallocs-scrape)/float64(node.Responses))
		sizes = append(sizes, float64(node.Bytes)/float64(node.Responses))
	}
	return cost{Bytes: hundredths(median(sizes)), Allocations: hundredths(slices.Min(allocations)), CPU: spreadOf(cpu)}, nil
}

// callCount is how often one system call was called, and how often it failed.
type callCount struct{ calls, failed int }

// syscallTrace counts the system calls of a node from its start to its exit, and the requests that it served.
type syscallTrace struct {
	calls    map[string]callCount
	requests uint64
}

// perRequest returns the system calls per request. idle is the trace of a node without requests; its calls are
// subtracted.
func (t *syscallTrace) perRequest(idle *syscallTrace) (calls map[string]float64, failed float64) {
	calls = map[string]float64{}
	for name, count := range t.calls {
		if slices.Contains(waitCalls(), name) {
			continue
		}
		n := count.calls - count.failed - idle.calls[name].calls + idle.calls[name].failed
		if average := float64(n) / float64(t.requests); average >= callsRiseMax/2 {
			calls[name] = hundredths(average)
		}
		failed += float64(count.failed-idle.calls[name].failed) / float64(t.requests)
	}
	return calls, max(0, hundredths(failed))
}

// trace runs a node under strace and sends it requests of a mix, or none if mix is "".
func (r *runner) trace(ctx context.Context, mix string) (*syscallTrace, error) {
	file := filepath.Join(r.dir, "calls.txt")
	node, err := startNode(ctx, []string{"strace", "-f", "-qq", "-c", "-o", file, r.tasard}, r.fixture, serverCore)
	if err != nil {
		return nil, err
	}
	result := &syscallTrace{}
	if mix != "" {
		result.requests, err = r.loadTraced(ctx, node, mix)
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

// loadTraced generates a load on a node under strace and returns the number of responses. It does not measure CPU time,
// which would include that of strace, nor allocations, because reading their number would be one more request. To
// prevent both, it passes the function sample a server without processes and without a data directory.
func (r *runner) loadTraced(ctx context.Context, node *server, mix string) (uint64, error) {
	group := &load.Clients{Requests: newMix(benchHost, r.fixture.keys, mixes()[mix]), Connections: r.options.Connections}
	s, err := r.sample(ctx, &server{name: "the traced node", address: node.address}, &load.Generator{Groups: []*load.Clients{group}, Measure: traceMeasure})
	if err == nil && s.Responses < traceAnswers {
		err = fmt.Errorf("%d answers in %v, want %d to count anything", s.Responses, traceMeasure, traceAnswers)
	}
	return s.Responses, err
}

// stopTraced sends SIGTERM to the process group of strace and the node. The node stops. strace ignores the signal; when
// the node has exited, strace writes its counts and exits too.
func stopTraced(node *server) error {
	strace := node.processes[0]
	if err := syscall.Kill(-strace.cmd.Process.Pid, syscall.SIGTERM); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return strace.awaitExit(ctx)
}

// parseCalls parses the table of strace -c. Its columns are: share of time, seconds, time per call, calls, errors
// (may be missing), name.
func parseCalls(text []byte) (map[string]callCount, error) {
	calls := map[string]callCount{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		columns := strings.Fields(lines.Text())
		if len(columns) < 5 || columns[len(columns)-1] == "total" {
			continue
		}
		var count callCount
		var err error
		if count.calls, err = strconv.Atoi(columns[3]); err != nil {
			continue // the heading, or the line of dashes below it
		}
		if len(columns) > 5 {
			if count.failed, err = strconv.Atoi(columns[4]); err != nil {
				return nil, fmt.Errorf("strace says %q: %w", lines.Text(), err)
			}
		}
		calls[columns[len(columns)-1]] = count
	}
	if calls["read"].calls == 0 {
		return nil, fmt.Errorf("strace counted no read in\n%s", text)
	}
	return calls, nil
}

// checkStrace returns an error if strace cannot count system calls on this machine.
func checkStrace(ctx context.Context) error {
	if output, err := exec.CommandContext(ctx, "strace", "-f", "-c", "-o", "/dev/null", "true").CombinedOutput(); err != nil {
		return fmt.Errorf("strace: %w %s", err, bytes.TrimSpace(output))
	}
	return nil
}
