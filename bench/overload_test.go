//go:build faults && linux

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// overloadSpan is the duration of three times the node's capacity (goal O1).
	overloadSpan        = 60 * time.Second
	overloadConnections = 2000
	overloadMiB         = 512
	baseSpan            = 4 * time.Second
	healthMax           = time.Second
	afterRatio          = 1.2
	// afterSlack is the noise of a 99th percentile over four seconds on a shared machine.
	afterSlack = 5 * time.Millisecond
)

// overloaded is a node in a control group of half a processor.
type overloaded struct {
	*server
	cage    cgroup
	fixture *fixture
	metrics string // address of its metrics listener, which has /livez too
}

func startOverloaded(t *testing.T, path string, f *fixture, memory int, flags ...string) *overloaded {
	t.Helper()
	metrics, err := freeAddress()
	noError(t, err)
	c := newCgroup(t, memory)
	return &overloaded{running(t, c.wrap(t, path), f, serverCore, append([]string{"--metrics-listen", metrics}, flags...)...), c, f, metrics}
}

// running starts a node, which must stop in order at the end of the test.
func running(t *testing.T, program string, f *fixture, core int, flags ...string) *server {
	t.Helper()
	found, err := startNode(t.Context(), program, f, core, flags...)
	noError(t, err)
	t.Cleanup(func() {
		if err := found.stop(); err != nil {
			t.Error(err)
		}
	})
	return found
}

func smallFixture(t *testing.T, accounts int) *fixture {
	t.Helper()
	f, err := newFixture(t.TempDir(), accounts)
	noError(t, err)
	return f
}

// run puts a load on the node for a while: at a rate, or with rate 0 as fast as the node answers.
func (o *overloaded) run(t *testing.T, connections int, rate float64, span time.Duration) *results {
	t.Helper()
	g := &generator{
		Address: o.address, Requests: newMix(benchHost, o.fixture.keys, mixes()[mixVarying]), Connections: connections, Rate: rate,
		Measure: span, Drain: time.Minute, Subnet: 2, PerAddress: 100,
	}
	noError(t, pinToCore(loadCore, func() error { return g.run(t.Context()) }))
	return &g.results
}

func p99Of(r *results) time.Duration { return time.Duration(r.Latency.ValueAtQuantile(99)) }

// slowestHealth asks /livez of the metrics listener until stop is closed. It returns the longest wait, or an hour if
// there was no answer.
func (o *overloaded) slowestHealth(stop <-chan struct{}) time.Duration {
	slowest := time.Duration(0)
	pause := time.NewTicker(200 * time.Millisecond)
	defer pause.Stop()
	for {
		took, status, _ := askFresh(o.metrics, "/livez")
		if slowest = max(slowest, took); status != http.StatusOK {
			return time.Hour
		}
		select {
		case <-stop:
			return slowest
		case <-pause.C:
		}
	}
}

// TestFaultsO1_ThreeTimesCapacity puts three times its capacity on a node for a minute, from 2,000 connections. The
// node stays up within its memory, answers health checks of its metrics listener, answers nothing but 200, and is as
// fast as before five seconds after. The control is a node whose health checks share the listener of the load.
func TestFaultsO1_ThreeTimesCapacity(t *testing.T) {
	needLimits(t)
	raiseDescriptors(t, 3*overloadConnections)
	o := startOverloaded(t, buildNode(t, ""), smallFixture(t, 48), 0)
	before := o.run(t, 64, 0, baseSpan)
	capacity := float64(before.Responses) / before.Elapsed.Seconds()
	stop, slowest := make(chan struct{}), make(chan time.Duration, 1)
	go func() { slowest <- o.slowestHealth(stop) }()
	over := o.run(t, overloadConnections, 3*capacity, overloadSpan)
	close(stop)
	health, peak, held := <-slowest, peakMemory(t, o.server), o.cage.throttled(t)
	<-time.NewTimer(5 * time.Second).C
	after := o.run(t, 64, 0, baseSpan)
	figure(t, "C %.0f/s; 3C for %v: %d answers (%.2f C), %v; health within %v; %d MiB; p99 before %v, after %v", capacity, overloadSpan,
		over.Responses, float64(over.Responses)/over.Elapsed.Seconds()/capacity, over.Statuses, health, peak, p99Of(before), p99Of(after))
	if held == 0 || over.Lost == 0 && p99Of(over) < 10*p99Of(before) {
		t.Errorf("there was no overload: %d periods throttled, p99 %v", held, p99Of(over))
	}
	if over.Statuses[200] != over.Responses || over.Responses == 0 {
		t.Errorf("answers other than 200: %v", over.Statuses)
	}
	if health > healthMax || peak > overloadMiB {
		t.Errorf("health within %v, %d MiB; want %v, %d MiB", health, peak, healthMax, overloadMiB)
	}
	if allowed := time.Duration(float64(p99Of(before))*afterRatio) + afterSlack; p99Of(after) > allowed {
		t.Errorf("5 s after the load p99 is %v, want at most %v", p99Of(after), allowed)
	}
}

// TestFaultsO1_OneProcessor checks that a node whose control group allows half a processor uses one thread, not the
// runtime's two, unless the operator says otherwise.
func TestFaultsO1_OneProcessor(t *testing.T) {
	needLimits(t)
	path, f := buildNode(t, ""), smallFixture(t, 1)
	for setting, want := range map[string]float64{"--unset=GOMAXPROCS": 1, "GOMAXPROCS=2": 2} {
		t.Run(setting, func(t *testing.T) {
			running(t, newCgroup(t, 0).wrap(t, "/usr/bin/env", setting, path), f, anyCore)
			used, err := processorsOf(f)
			figure(t, "half a processor, %s: the node uses %v", setting, used)
			if err != nil || used != want {
				t.Errorf("it uses %v processors, want %v (%v)", used, want, err)
			}
		})
	}
}

// processorsOf asks a node for GOMAXPROCS, at its management socket.
func processorsOf(f *fixture) (float64, error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(f.dir, "admin.sock"))
	}}}
	response, err := client.Get("http://node/metrics")
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	_, line, _ := strings.Cut(string(text), "\ngo_sched_gomaxprocs_threads ")
	line, _, _ = strings.Cut(line, "\n")
	return strconv.ParseFloat(line, 64)
}

const (
	tightMemory   = 256 << 20 // an account is an actor of 1 KiB from start to stop, and a start needs as much again
	tightAccounts = 100_000
	// tightConnections is the limit that an operator would set for so little memory.
	tightConnections = 1000
)

// TestFaultsO8_LittleMemory puts three times its capacity on a node with a hundred thousand accounts in a control
// group of 256 MB. The control is a group too small for the accounts themselves.
func TestFaultsO8_LittleMemory(t *testing.T) {
	needLimits(t)
	raiseDescriptors(t, 3*tightConnections)
	f := smallFixture(t, tightAccounts)
	path := buildNode(t, "")
	t.Run("node", func(t *testing.T) {
		o := startOverloaded(t, path, f, tightMemory, "--connections", fmt.Sprint(tightConnections))
		base := o.run(t, 64, 0, baseSpan)
		over := o.run(t, tightConnections-64, 3*float64(base.Responses)/base.Elapsed.Seconds(), overloadSpan/6)
		kills := o.cage.oomKills(t)
		figure(t, "%d accounts in %d MB at 3C: %d killed for memory, peak %d MiB; %v", len(f.keys), tightMemory>>20, kills, peakMemory(t, o.server), over.Statuses)
		if kills > 0 || over.Statuses[200] == 0 || over.Statuses[200]+over.Statuses[503] != over.Responses {
			t.Errorf("%d killed; answers %v", kills, over.Statuses)
		}
	})
	t.Run("control", func(t *testing.T) {
		c := newCgroup(t, tightMemory/8)
		if node, err := startNode(t.Context(), c.wrap(t, path), f, serverCore); err == nil {
			node.kill()
		}
		kills := c.oomKills(t)
		figure(t, "control, %d MB: %d killed for memory", tightMemory>>23, kills)
		if kills == 0 {
			t.Error("nothing was killed in a group that is too small: the test sees nothing")
		}
	})
}

// askFresh sends one request on its own connection. Status 0 means no answer within a second.
func askFresh(address, path string) (took time.Duration, status int, body []byte) {
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	began := time.Now()
	if response, err := client.Get("http://" + address + path); err == nil {
		status = response.StatusCode
		body, _ = io.ReadAll(response.Body)
		response.Body.Close()
	}
	return time.Since(began), status, body
}

// wrap writes a script that runs a program in the control groups from its start, and returns its path.
func (c cgroup) wrap(t *testing.T, program ...string) string {
	t.Helper()
	path, command := filepath.Join(t.TempDir(), "in-group"), ""
	for _, word := range program {
		command += fmt.Sprintf(" '%s'", word)
	}
	script := fmt.Sprintf("#!/bin/sh\necho $$ > %s/cgroup.procs && echo $$ > %s/cgroup.procs && exec%s \"$@\"\n", c.cpu, c.memory, command)
	writeProgram(t, path, script)
	return path
}
