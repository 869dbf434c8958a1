//go:build faults && linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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
	o := startOverloaded(t, buildNode(t), smallFixture(t, 48), 0)
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
	path, f := buildNode(t), smallFixture(t, 1)
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
	path := buildNode(t)
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
	noError(t, os.WriteFile(path, []byte(script), 0o700))
	return path
}

const (
	slowClients = 10_000
	slowSpan    = 60 * time.Second // a closed client reconnects
	slowClosed  = 6 * time.Second
	slowP99     = 20 * time.Millisecond
	// slowMiB is the limit of the node's memory. Each client holds some 10 KiB of buffers and 4 to 8 KiB of stack.
	slowMiB  = 300
	goodRate = 200
	// slowInterval is how often a slow client sends another byte; the clients are divided into slowParts, which send
	// at different times.
	slowInterval = time.Second
	slowParts    = 50
	// slowArrival is how long it takes to open all of them.
	slowArrival = 4 * time.Second
)

// slowMethod is a way to keep a server waiting.
type slowMethod int

const (
	slowHeader slowMethod = iota
	slowBody
	slowRead
	slowMethods
)

// slowClient sends or reads hardly anything.
type slowClient struct {
	kind   slowMethod
	socket int
	opened time.Duration // when it began to be slow
	gone   bool
}

// slowClientSet is a set of slow clients, and their results.
type slowClientSet struct {
	target  unix.Sockaddr
	clients []slowClient
	began   time.Time
	closed  [slowMethods]int
	longest [slowMethods]time.Duration // until the server closed one
}

// raiseDescriptors raises this process's limit of file descriptors.
func raiseDescriptors(t *testing.T, wanted uint64) {
	t.Helper()
	var limit unix.Rlimit
	noError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	limit.Cur, limit.Max = max(limit.Cur, wanted), max(limit.Max, wanted)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Skipf("NEEDS %d descriptors: ulimit -n: %v", wanted, err)
	}
}

func (s *slowClientSet) now() time.Duration { return time.Since(s.began) }

// slowRequest is what a client sends first; slow readers request more than a socket buffers.
func slowRequest(kind slowMethod) string {
	switch kind {
	case slowHeader:
		return "GET /v1/currencies HTTP/1.1\r\nHost: a\r\nX-Slow: "
	case slowBody:
		return "POST /v1/account/codes HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 4000\r\n\r\n{"
	}
	return strings.Repeat("GET /v1/rates?limit=200 HTTP/1.1\r\nHost: a\r\n\r\n", 5)
}

func (s *slowClientSet) open(number int) error {
	c := &s.clients[number]
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return err
	}
	if c.kind == slowRead { // small buffers, so that responses stay with the server
		_ = unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_RCVBUF, 2048)
	}
	_ = unix.SetsockoptInt(socket, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
	source := &unix.SockaddrInet4{Addr: [4]byte{127, 9, byte(number / 100 / 250), byte(1 + number/100%250)}}
	if err := errors.Join(unix.Bind(socket, source), unix.Connect(socket, s.target), unix.SetNonblock(socket, true)); err != nil {
		_ = unix.Close(socket)
		return err
	}
	_, _ = unix.Write(socket, []byte(slowRequest(c.kind)))
	c.socket, c.opened, c.gone = socket, s.now(), false
	return nil
}

// tick lets the clients of one part send their next byte, and reopens those that the server has closed. A slow reader
// only checks whether the server has given up.
func (s *slowClientSet) tick(part int) error {
	for i := part; i < len(s.clients); i += slowParts {
		c := &s.clients[i]
		if c.kind != slowRead {
			_, _ = unix.Write(c.socket, []byte("x"))
		}
		if hasEnded(c.socket, c.kind) {
			s.closed[c.kind]++
			s.longest[c.kind] = max(s.longest[c.kind], s.now()-c.opened)
			_ = unix.Close(c.socket)
			c.gone = true
			if err := s.open(i); err != nil {
				return fmt.Errorf("client %d again: %w", i, err)
			}
		}
	}
	return nil
}

// hasEnded reports whether the server has closed a connection. For a slow reader the kernel knows before the
// responses are read.
func hasEnded(socket int, kind slowMethod) bool {
	if kind == slowRead {
		polled := []unix.PollFd{{Fd: int32(socket), Events: unix.POLLRDHUP}}
		_, _ = unix.Poll(polled, 0)
		info, err := unix.GetsockoptTCPInfo(socket, unix.IPPROTO_TCP, unix.TCP_INFO)
		const established = 1
		return polled[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0 || err != nil || info.State != established
	}
	var room [512]byte
	for {
		n, err := unix.Read(socket, room[:])
		switch {
		case err != nil:
			return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR)
		case n == 0:
			return true
		}
	}
}

// TestFaultsO3_SlowClients runs ten thousand clients that send their headers or a body byte by byte, or do not read
// the response. All others are served as if these were absent, and each of them is closed in time. The control is a
// node without timeouts.
func TestFaultsO3_SlowClients(t *testing.T) {
	raiseDescriptors(t, 2*slowClients)
	f, err := newFixture(t.TempDir(), 10)
	noError(t, err)
	t.Run("node", func(t *testing.T) {
		slow, good, peak := loadBesideSlow(t, buildNode(t), f, slowSpan)
		total := slow.closed[slowHeader] + slow.closed[slowBody] + slow.closed[slowRead]
		figure(t, "%d slow clients for %v, closed %d times (headers within %v, bodies %v, readers %v); others: %d of %d served, p99 %v, slowest %v; %d MiB",
			slowClients, slowSpan, total, slow.longest[slowHeader].Round(time.Millisecond), slow.longest[slowBody].Round(time.Millisecond),
			slow.longest[slowRead].Round(time.Millisecond), good.Statuses[200], good.Intended, p99Of(good), time.Duration(good.Latency.Max()).Round(time.Microsecond), peak)
		if good.Statuses[200] != good.Intended || p99Of(good) > slowP99 || peak > slowMiB {
			t.Errorf("want all served, p99 of %v, %d MiB", slowP99, slowMiB)
		}
		for kind := range slowMethods {
			if slow.closed[kind] < slowClients/int(slowMethods) || slow.longest[kind] > slowClosed+2*slowInterval {
				t.Errorf("kind %d: %d closed, the last after %v; want each within %v", kind, slow.closed[kind], slow.longest[kind], slowClosed)
			}
		}
	})
	t.Run("control", func(t *testing.T) {
		path := buildNode(t, "-overlay", overlay(t, "../httpapi/server.go", "l.ReadTimeout), 5*time.Second)", "l.ReadTimeout), time.Hour)"))
		slow, _, _ := loadBesideSlow(t, path, f, 2*slowClosed)
		figure(t, "control, no limit of time: %d of %d closed", slow.closed[slowHeader]+slow.closed[slowBody], slowClients)
		if slow.closed[slowHeader]+slow.closed[slowBody] > 0 {
			t.Error("clients are closed without the limit that is there for it")
		}
	})
}

// loadBesideSlow runs normal clients beside slow ones, which reconnect when they are closed.
func loadBesideSlow(t *testing.T, path string, f *fixture, span time.Duration) (*slowClientSet, *results, int) {
	t.Helper()
	found, err := startNode(t.Context(), path, f, anyCore, "--connections-per-address", "128")
	noError(t, err)
	defer found.kill() // slow clients may still be connected
	address := netip.MustParseAddrPort(found.address)
	target := &unix.SockaddrInet4{Addr: address.Addr().As4(), Port: int(address.Port())}
	s := &slowClientSet{target: target, clients: make([]slowClient, slowClients), began: time.Now()}
	defer s.close()
	noError(t, s.openAll())
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() { stopped <- s.tickUntil(stop) }()
	good := &generator{
		Address: found.address, Requests: newMix(benchHost, nil, mixes()[mixBest]), Connections: 20, Rate: goodRate, Subnet: 2, PerAddress: 1, Measure: span,
	}
	noError(t, good.run(t.Context()))
	peak := peakMemory(t, found)
	close(stop)
	noError(t, <-stopped)
	return s, &good.results, peak
}

// openAll opens all of them within slowArrival: they are slow, not a flood.
func (s *slowClientSet) openAll() error {
	ticker := time.NewTicker(slowArrival * slowParts / slowClients)
	defer ticker.Stop()
	for i := range s.clients {
		if i%slowParts == 0 {
			<-ticker.C
		}
		s.clients[i] = slowClient{kind: slowMethod(i) % slowMethods, socket: -1, gone: true}
		if err := s.open(i); err != nil {
			return fmt.Errorf("client %d: %w", i, err)
		}
	}
	return nil
}

// tickUntil ticks until stop.
func (s *slowClientSet) tickUntil(stop <-chan struct{}) error {
	ticker := time.NewTicker(slowInterval / slowParts)
	defer ticker.Stop()
	for part := 0; ; part = (part + 1) % slowParts {
		select {
		case <-stop:
			return nil
		case <-ticker.C:
		}
		if err := s.tick(part); err != nil {
			return err
		}
	}
}

func (s *slowClientSet) close() {
	for i := range s.clients {
		if !s.clients[i].gone && s.clients[i].socket >= 0 {
			_ = unix.Close(s.clients[i].socket)
		}
	}
}

// figure prints a result in the form that make test-faults collects.
func figure(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Logf("FIGURE %s", fmt.Sprintf(format, args...))
}

const (
	cgroupRoot = "/sys/fs/cgroup"
	// cpuPeriod is short, so that latencies are usable for processes limited to halfCore.
	cpuPeriod = 10 * time.Millisecond
	halfCore  = cpuPeriod / 2
	// cpuShares gives a group priority over other processes of the machine.
	cpuShares = 1 << 18
)

// needLimits skips a test where processes cannot be limited.
func needLimits(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("NEEDS root: run make test-faults as root, in a machine of its own")
	}
	for _, controller := range []string{"cpu", "memory"} {
		if _, err := os.Stat(filepath.Join(cgroupRoot, controller, "cgroup.procs")); err != nil {
			t.Skip("NEEDS control groups of version 1 in " + cgroupRoot)
		}
	}
}

// cgroup is a pair of control groups, which limits its processes to half a core and to an amount of memory.
type cgroup struct{ cpu, memory string }

// newCgroup makes one that is removed at the end of the test, when its processes have exited. memory 0 is unlimited.
func newCgroup(t *testing.T, memory int) cgroup {
	t.Helper()
	limits := map[string]int{"memory.limit_in_bytes": memory}
	if memory == 0 {
		limits = nil
	}
	return cgroup{
		newController(t, "cpu", map[string]int{
			"cpu.cfs_period_us": int(cpuPeriod.Microseconds()), "cpu.cfs_quota_us": int(halfCore.Microseconds()), "cpu.shares": cpuShares,
		}),
		newController(t, "memory", limits),
	}
}

func newController(t *testing.T, controller string, limits map[string]int) (dir string) {
	t.Helper()
	dir = filepath.Join(cgroupRoot, controller, fmt.Sprintf("tasard-%d-%d", os.Getpid(), time.Now().UnixNano()))
	noError(t, os.Mkdir(dir, 0o755))
	t.Cleanup(func() {
		for range 100 { // the kernel removes an ended process after a while
			if err := os.Remove(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
				return
			}
			<-time.NewTimer(20 * time.Millisecond).C
		}
		t.Errorf("%s is not empty", dir)
	})
	for name, value := range limits {
		writeFile(t, filepath.Join(dir, name), []byte(strconv.Itoa(value)))
	}
	return dir
}

// kernelNumber reads the number on a line of a kernel file.
func kernelNumber(t *testing.T, file, line string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	noError(t, err)
	_, rest, _ := strings.Cut("\n"+string(text), "\n"+line)
	value, err := strconv.Atoi(strings.Fields(rest + " -")[0])
	if err != nil {
		t.Fatalf("%s has no %q: %s", file, line, text)
	}
	return value
}

// throttled returns in how many periods the processes were held back, oomKills how many were killed for lack of
// memory.
func (c cgroup) throttled(t *testing.T) int {
	return kernelNumber(t, filepath.Join(c.cpu, "cpu.stat"), "nr_throttled")
}
func (c cgroup) oomKills(t *testing.T) int {
	return kernelNumber(t, filepath.Join(c.memory, "memory.oom_control"), "oom_kill ")
}

// peakMemory returns the maximum memory of a process so far, in MiB.
func peakMemory(t *testing.T, s *server) int {
	return kernelNumber(t, fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid), "VmHWM:") >> 10
}

// overlay returns an overlay file for go build, in which one text of a file is replaced by another.
func overlay(t *testing.T, file, old, changed string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "changed.go")
	source, err := os.ReadFile(file)
	if err != nil || strings.Count(string(source), old) != 1 {
		t.Fatalf("change %s: %v, or not once:\n%s", file, err, old)
	}
	file, err = filepath.Abs(file)
	noError(t, err)
	writeFile(t, path, []byte(strings.Replace(string(source), old, changed, 1)))
	writeFile(t, path+".json", fmt.Appendf(nil, `{"Replace":{%q:%q}}`, file, path))
	return path + ".json"
}
