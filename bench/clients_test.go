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

func (g *clients) answeredOK() uint64 { return g.statuses[200] }
func (g *clients) shedCount() uint64  { return g.statuses[503] }

// servedShare returns the served part of the intended requests.
func (g *clients) servedShare() float64 { return float64(g.answeredOK()) / float64(max(1, g.intended)) }

func (g *clients) quantile(q float64) time.Duration {
	return time.Duration(g.latency.ValueAtQuantile(q)).Round(10 * time.Microsecond)
}

func (g *clients) String() string {
	return fmt.Sprintf("%d intended, %d sent, %d not read, %d served, %d refused, %d strange, %d lost, p50 %v, p99 %v",
		g.intended, g.sent, g.dropped, g.answeredOK(), g.shedCount(), g.unexpectedCount, g.lost, g.quantile(50), g.quantile(99))
}

// merge adds the results of other clients.
func (g *clients) merge(other *clients) {
	g.intended, g.sent, g.dropped = g.intended+other.intended, g.sent+other.sent, g.dropped+other.dropped
	g.unexpectedCount, g.lost, g.firstUnexpected = g.unexpectedCount+other.unexpectedCount, g.lost+other.lost, cmp.Or(g.firstUnexpected, other.firstUnexpected)
	for status, count := range other.statuses {
		g.statuses[status] += count
	}
	g.latency.Merge(other.latency)
}

// runClients puts clients on a server for a while, then waits for outstanding answers, at most patience. A request
// that is due while all clients of a group wait for an answer is not sent: the server would not have read it either.
func runClients(t *testing.T, address string, span, patience time.Duration, groups ...*clients) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer raisePriority()()
	for _, g := range groups {
		g.dropLate, g.isUnexpected = true, isUnexpected
	}
	if err := (&load{address: address, groups: groups, seed: 1, measure: span, drain: patience}).run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// raisePriority pins the thread to its core and puts it into a control group with priority over other processes, so
// that due times are kept; undo restores it. Failures are ignored: they make the figures worse, never better.
func raisePriority() (undo func()) {
	thread, all := []byte(strconv.Itoa(unix.Gettid())), filepath.Join(cgroupRoot, "cpu")
	var cores, mine unix.CPUSet
	if unix.SchedGetaffinity(0, &cores) == nil && cores.Count() > 1 {
		mine.Set(loadCore)
		_ = unix.SchedSetaffinity(0, &mine)
	}
	first := filepath.Join(all, "tasard-clients-"+string(thread))
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

// refusalPattern matches the head of an overload response.
var refusalPattern = regexp.MustCompile(`^HTTP/1\.1 503 [^\r\n]*\r\n(?s:.*)\r\nRetry-After: [1-9][0-9]*\r\n`)

// isUnexpected reports a response that is neither 200 nor the documented overload response.
func isUnexpected(status int, answer []byte) bool {
	head, body, _ := bytes.Cut(answer, []byte("\r\n\r\n"))
	var said struct {
		Error struct{ Code, Message, RequestID string }
	}
	return status != 200 && !(status == 503 && refusalPattern.Match(append(head[:len(head):len(head)], "\r\n"...)) &&
		json.Unmarshal(body, &said) == nil && said.Error.Code == "overloaded" && said.Error.RequestID != "" &&
		bytes.Contains(head, []byte("application/json")))
}
