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

	"github.com/tasard/tasard/bench/load"

	"golang.org/x/sys/unix"
)

// clients are the clients of a load, with a name for the report.
type clients struct {
	name string
	load.Clients
}

func (g *clients) answeredOK() uint64 { return g.Statuses[200] }
func (g *clients) shedCount() uint64  { return g.Statuses[503] }

// servedShare returns the served part of the intended requests.
func (g *clients) servedShare() float64 { return float64(g.answeredOK()) / float64(max(1, g.Intended)) }

func (g *clients) quantile(q float64) time.Duration {
	return time.Duration(g.Latency.ValueAtQuantile(q)).Round(10 * time.Microsecond)
}

func (g *clients) String() string {
	return fmt.Sprintf("%d intended, %d sent, %d not read, %d served, %d refused, %d strange, %d lost, p50 %v, p99 %v",
		g.Intended, g.Sent, g.Dropped, g.answeredOK(), g.shedCount(), g.Unexpected, g.Lost, g.quantile(50), g.quantile(99))
}

// merge adds the results of other clients.
func (g *clients) merge(other *clients) {
	g.Intended, g.Sent, g.Dropped = g.Intended+other.Intended, g.Sent+other.Sent, g.Dropped+other.Dropped
	g.Unexpected, g.Lost, g.FirstUnexpected = g.Unexpected+other.Unexpected, g.Lost+other.Lost, cmp.Or(g.FirstUnexpected, other.FirstUnexpected)
	for status, count := range other.Statuses {
		g.Statuses[status] += count
	}
	g.Latency.Merge(other.Latency)
}

// runClients puts clients on a server for a while, then waits for outstanding answers, at most patience. A request
// that is due while all clients of a group wait for an answer is not sent: the server would not have read it either.
func runClients(t *testing.T, address string, span, patience time.Duration, groups ...*clients) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer raisePriority()()
	l := &load.Generator{Address: address, Seed: 1, Measure: span, Drain: patience}
	for _, g := range groups {
		g.DropLate, g.IsUnexpected = true, isUnexpected
		l.Groups = append(l.Groups, &g.Clients)
	}
	if err := l.Run(t.Context()); err != nil {
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

// IsUnexpected reports a response that is neither 200 nor the documented overload response.
func isUnexpected(status int, answer []byte) bool {
	head, body, _ := bytes.Cut(answer, []byte("\r\n\r\n"))
	var said struct {
		Error struct{ Code, Message, RequestID string }
	}
	return status != 200 && !(status == 503 && refusalPattern.Match(append(head[:len(head):len(head)], "\r\n"...)) &&
		json.Unmarshal(body, &said) == nil && said.Error.Code == "overloaded" && said.Error.RequestID != "" &&
		bytes.Contains(head, []byte("application/json")))
}
