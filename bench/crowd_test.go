//go:build faults && linux

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func (g *group) served() uint64  { return g.statuses[200] }
func (g *group) refused() uint64 { return g.statuses[503] }

// share is how many of the requests that were to be sent were served.
func (g *group) share() float64 { return float64(g.served()) / float64(max(1, g.intended)) }

func (g *group) quantile(q float64) time.Duration {
	return time.Duration(g.latency.ValueAtQuantile(q)).Round(10 * time.Microsecond)
}

func (g *group) String() string {
	return fmt.Sprintf("%d intended, %d sent, %d not read, %d served, %d refused, %d strange, %d lost, p50 %v, p99 %v",
		g.intended, g.sent, g.dropped, g.served(), g.refused(), g.odd, g.lost, g.quantile(50), g.quantile(99))
}

// merge counts what another group met.
func (g *group) merge(other *group) {
	g.intended, g.sent, g.dropped = g.intended+other.intended, g.sent+other.sent, g.dropped+other.dropped
	g.odd, g.lost, g.first = g.odd+other.odd, g.lost+other.lost, cmp.Or(g.first, other.first)
	for status, count := range other.statuses {
		g.statuses[status] += count
	}
	g.latency.Merge(other.latency)
}

// runCrowd puts clients on a server for a while, then waits for what is owed, at most as long as patience. A request whose moment comes
// while all clients of a group wait for an answer is not sent: to the server it is one that it did not read.
func runCrowd(t *testing.T, address string, span, patience time.Duration, groups ...*group) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer preferred()()
	for _, g := range groups {
		g.drops, g.strange = true, isStrange
	}
	if err := (&load{address: address, groups: groups, seed: 1, measure: span, patience: patience}).run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// preferred puts the thread on its core and into a control group that comes before whatever else the machine does, so that moments are
// kept, and returns what undoes it. What can't be done is left: the figures are worse for it, never better.
func preferred() (undo func()) {
	thread, all := []byte(strconv.Itoa(unix.Gettid())), filepath.Join(cgroupRoot, "cpu")
	var cores, mine unix.CPUSet
	if unix.SchedGetaffinity(0, &cores) == nil && cores.Count() > 1 {
		mine.Set(loadCore)
		_ = unix.SchedSetaffinity(0, &mine)
	}
	first := filepath.Join(all, "tasard-crowd-"+string(thread))
	if os.Mkdir(first, 0o755) == nil {
		_ = os.WriteFile(filepath.Join(first, "cpu.shares"), []byte(strconv.Itoa(cpuShares)), 0o600)
		_ = os.WriteFile(filepath.Join(first, "tasks"), thread, 0o600)
	}
	return func() {
		_ = unix.SchedSetaffinity(0, &cores)
		_ = os.WriteFile(filepath.Join(all, "tasks"), thread, 0o600)
		_ = os.Remove(first)
	}
}

// refusalPattern is what a refusal must have in its head.
var refusalPattern = regexp.MustCompile(`^HTTP/1\.1 503 [^\r\n]*\r\n(?s:.*)\r\nRetry-After: [1-9][0-9]*\r\n`)

// isStrange tells an answer that is neither 200 nor the refusal that is promised.
func isStrange(status int, answer []byte) bool {
	head, body, _ := bytes.Cut(answer, []byte("\r\n\r\n"))
	var said struct {
		Error struct{ Code, Message, RequestID string }
	}
	return status != 200 && !(status == 503 && refusalPattern.Match(append(head[:len(head):len(head)], "\r\n"...)) &&
		json.Unmarshal(body, &said) == nil && said.Error.Code == "overloaded" && said.Error.RequestID != "" &&
		bytes.Contains(head, []byte("application/json")))
}
