//go:build faults

package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// healthFaults are the faults of goal S15 that pass, each on its own node. Those that end the process have their own
// tests.
func healthFaults() map[string]func(t *testing.T) (*nodeProcess, plantedFault) {
	return map[string]func(t *testing.T) (*nodeProcess, plantedFault){
		"nothing published": plantEmpty, "log replays": plantRecovering, "disk slow": plantSlow,
		"rates expired": plantStale, "descriptors short": plantDescriptors, "connections at the cap": plantConnections, "mailboxes full": plantOverload,
		"snapshot without space": plantSnapshot,
		"disk full":              func(t *testing.T) (*nodeProcess, plantedFault) { return plantFull(t, "") },
		"mail server down":       func(t *testing.T) (*nodeProcess, plantedFault) { return plantMail(t, "", "failing", 1) },
		"mail queue full": func(t *testing.T) (*nodeProcess, plantedFault) { // of one message
			small := buildWith(t, "small-queue", plant{"actors/mail/config.go", "queueMaxDefault = 1000\n", "queueMaxDefault = 1\n"})
			return plantMail(t, small, "full", 2)
		},
	}
}

// TestFaultsS15_EachFaultShows plants each fault: /readyz shows it within a second, its end within five; nothing
// flaps; /livez stays good.
func TestFaultsS15_EachFaultShows(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	need(t, "strace", "strace")
	fired := 0
	var slowest, longest time.Duration
	var counting sync.Mutex
	t.Run("faults", func(t *testing.T) { // ends with the last of them
		for name, plant := range healthFaults() {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				n, planted := plant(t)
				comes, goes, err := watchHealth(t, n).plantAndMend(planted)
				noError(t, err)
				progress(t, "%s: %s %s after %s, ok %s after its end", name, planted.name, planted.state,
					comes.Round(time.Millisecond), goes.Round(time.Millisecond))
				counting.Lock()
				defer counting.Unlock()
				fired++
				slowest, longest = max(slowest, comes), max(longest, goes)
			})
		}
	})
	if fired < len(healthFaults()) {
		t.Errorf("%d of %d faults showed and went as promised", fired, len(healthFaults()))
	}
	figure(t, "%d of %d faults show within %s and are gone within %s, /livez always 200", fired, len(healthFaults()),
		slowest.Round(time.Millisecond), longest.Round(time.Millisecond))
}

// TestFaultsS15_ControlUnwired removes a condition from /readyz: the watch must notice.
func TestFaultsS15_ControlUnwired(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	n, planted := plantFull(t, buildWith(t, "deaf", plant{"actors/health.go", "s.dataCondition(), s.log.Health.Disk(now),", "s.dataCondition(), engine.HealthyCondition(\"disk\"),"}))
	_, _, err := watchHealth(t, n).plantAndMend(planted)
	if err == nil {
		t.Error("a node that says nothing of its full disk passes")
	}
	figure(t, "control: a node without the condition of its disk: %v", err)
}

// TestFaultsS15_FailStopShows makes a sync fail: /readyz is unavailable, or gone, within a second, and the process
// exits with 70.
func TestFaultsS15_FailStopShows(t *testing.T) {
	needRoot(t)
	need(t, "strace", "strace")
	n, keys := startWithAccounts(t, 1, "--lease", "1")
	watch := watchHealth(t, n)
	injectSyscalls(t, n, "fsync,fdatasync:error=EIO")
	began := time.Now()
	stop := askBest(t, n, 1, keys)
	took, in := watch.first(began, shownWithin, func(l healthSample) bool {
		return l.status == 0 || l.status == http.StatusServiceUnavailable && l.states["log"] == "failed"
	})
	code := n.AwaitExit()
	ended := time.Since(began)
	stop()
	if !in || code != 70 {
		t.Errorf("it shows within %s: %t, and ends with %d:\n%s", shownWithin, in, code, n.Tail(20))
	}
	if ended > 2*shownWithin {
		t.Errorf("the process ends after %s", ended)
	}
	figure(t, "a failed sync: /readyz is unavailable or gone after %s, the process leaves with 70 after %s", took.Round(time.Millisecond), ended.Round(time.Millisecond))
}

// setRate sets a manual rate.
func setRate(t *testing.T, n *nodeProcess, currency, buy, sell string, expires time.Time) {
	t.Helper()
	c := n.admin()
	defer c.close()
	got, err := c.do(http.MethodPost, "http://node/rates", "", map[string]any{
		"institution": "popular", "currency": currency, "buy": buy, "sell": sell, "expiresAt": expires, "by": "test",
	})
	if err != nil || !got.good() {
		t.Error(got.failure("set a rate", err))
	}
}

func plantEmpty(t *testing.T) (*nodeProcess, plantedFault) {
	n := startBuilt(t, t.TempDir()+"/data")
	return n, plantedFault{
		name: "data", state: "empty", down: true, plant: func() {},
		mend: func() { setRate(t, n, "USD", "58.10", "59.30", time.Now().Add(6*time.Hour)) },
	}
}

// plantRecovering starts a node whose replay waits for four seconds.
func plantRecovering(t *testing.T) (*nodeProcess, plantedFault) {
	slow := buildWith(t, "slow-replay", plant{"actors/recovery.go", "\tr := newReplayer(s)\n", "\ttime.Sleep(4 * time.Second)\n\tr := newReplayer(s)\n"})
	data := t.TempDir() + "/data"
	writeDataDir(t, data, 1)
	n := launch(t, nodeCommand{program: slow, args: nodeArgs(data)})
	if !n.Listens() {
		t.Fatalf("it does not listen:\n%s", n.Tail(50))
	}
	return n, plantedFault{name: "log", state: "recovering", down: true, plant: func() {}, mend: func() { n.Await("recovered ") }}
}

// onSmallDisk starts a node on a disk in memory.
func onSmallDisk(t *testing.T, program, size string, accounts int, more ...string) (n *nodeProcess, disk string, keys []string) {
	t.Helper()
	disk = memoryDisk(t, size)
	keys = writeDataDir(t, disk+"/data", accounts)
	return launch(t, nodeCommand{program: program, args: nodeArgs(disk+"/data", more...)}).ready(), disk, keys
}

func plantFull(t *testing.T, program string) (*nodeProcess, plantedFault) {
	n, disk, _ := onSmallDisk(t, program, "160m", 1)
	return n, plantedFault{
		name: "disk", state: "read_only",
		plant: func() { fill(t, disk, reservedBytes-1<<20) },
		mend:  func() { freeSpace(t, disk) },
	}
}

// injectSyscalls injects a fault into the system calls of a node until release.
func injectSyscalls(t *testing.T, n *nodeProcess, inject string) (release func()) {
	t.Helper()
	calls, _, _ := strings.Cut(inject, ":")
	said, write, err := os.Pipe()
	noError(t, err)
	cmd := exec.Command("strace", "-f", "-p", strconv.Itoa(n.pid()), "-e", "trace="+calls, "-e", "inject="+inject, "-o", "/dev/null")
	cmd.Stderr = write
	noError(t, errors.Join(cmd.Start(), write.Close()))
	if _, err := said.Read(make([]byte, 1)); err != nil { // "Process N attached"
		t.Fatal(err)
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, said)
	}()
	release = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait() // it exits by the signal
		<-drained
		_ = said.Close()
	})
	t.Cleanup(release)
	return release
}

// askBest requests the best rates over many connections until stop, or until the test ends.
func askBest(t *testing.T, n *nodeProcess, callers int, keys []string) (stop func()) {
	ends := make(chan struct{})
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			c := newHTTPClient(clientAddress(1000 + i*25))
			defer c.close()
			every(time.Nanosecond, ends, func() bool {
				_, _ = c.do(http.MethodGet, n.URL+"/v1/rates/best?currency=USD&operation=buy", keys[i%len(keys)], nil)
				return true
			})
		})
	}
	stop = sync.OnceFunc(func() { close(ends); group.Wait() })
	t.Cleanup(stop)
	return stop
}

// plantSlow makes each sync take two seconds.
func plantSlow(t *testing.T) (*nodeProcess, plantedFault) {
	n, keys := startWithAccounts(t, 1, unlimitedReads()...)
	var release, stop func()
	return n, plantedFault{
		name: "disk", state: "slow", late: time.Second, // a sync is slow after a second
		plant: func() {
			release = injectSyscalls(t, n, "fsync,fdatasync:delay_enter=2000000")
			stop = askBest(t, n, 1, keys)
		},
		mend: func() {
			release()
			stop() // the last sync has returned then
		},
	}
}

// plantMail sends emails while there is no mail server; then there is one.
func plantMail(t *testing.T, program, state string, messages int) (*nodeProcess, plantedFault) {
	mail, data := newPlainMailServer(t), t.TempDir()+"/data"
	writeDataDir(t, data, 1)
	mail.Close()
	n := launch(t, nodeCommand{program: program, args: nodeArgs(data, mail.args()...)}).ready()
	return n, plantedFault{
		name: "mail", state: state,
		plant: func() {
			c := newHTTPClient(clientAddress(1))
			defer c.close()
			for i := range messages {
				got, err := c.do(http.MethodPost, n.URL+"/v1/account/codes", "", map[string]string{"email": fmt.Sprintf("ana%d@example.com", i)})
				if refused := i > 0; err != nil || got.good() == refused { // the queue is full: see healthFaults
					t.Error(got.failure("ask for a code", err))
				}
			}
		},
		mend: func() { mail.Open() },
	}
}

func plantStale(t *testing.T) (*nodeProcess, plantedFault) {
	n, _ := startWithAccounts(t, 1)
	return n, plantedFault{
		name: "rates", state: "stale",
		plant: func() {
			expires := time.Now().Truncate(time.Second).Add(3 * time.Second)
			setRate(t, n, "CHF", "70.00", "73.00", expires)
			wait(time.Until(expires))
		},
		mend: func() { setRate(t, n, "CHF", "70.00", "73.00", time.Now().Add(6*time.Hour)) },
	}
}

// watchStartDelay is when the connection of a watch is open.
const watchStartDelay = 500 * time.Millisecond

// dial opens connections to a node; leave closes them.
func (n *nodeProcess) dial(count int) (leave func()) {
	var conns []net.Conn
	for range count {
		conn, err := net.Dial("tcp", strings.TrimPrefix(n.URL, "http://"))
		noError(n.t, err)
		conns = append(conns, conn)
	}
	return func() {
		for _, conn := range conns {
			_ = conn.Close() // perhaps once more
		}
	}
}

// plantDescriptors takes the unused descriptors away while clients connect.
func plantDescriptors(t *testing.T) (*nodeProcess, plantedFault) {
	n, _ := startWithAccounts(t, 1)
	var old unix.Rlimit
	noError(t, unix.Prlimit(n.pid(), unix.RLIMIT_NOFILE, nil, &old))
	limit := func(to unix.Rlimit) {
		noError(t, unix.Prlimit(n.pid(), unix.RLIMIT_NOFILE, &to, nil))
	}
	return n, plantedFault{
		name: "connections", state: "short",
		plant: func() {
			wait(watchStartDelay)
			limit(unix.Rlimit{Cur: 3, Max: old.Max})
			t.Cleanup(n.dial(2))
		},
		mend: func() { limit(old) },
	}
}

// plantConnections opens as many connections as allowed.
func plantConnections(t *testing.T) (*nodeProcess, plantedFault) {
	n, _ := startWithAccounts(t, 1, "--connections", "40", "--connections-per-address", "0")
	var leave func()
	return n, plantedFault{
		name: "connections", state: "full",
		plant: func() {
			wait(watchStartDelay)
			leave = n.dial(45)
			t.Cleanup(leave)
		},
		mend: func() { leave() },
	}
}

// plantOverload sends more requests at once than a mailbox of one place can hold.
func plantOverload(t *testing.T) (*nodeProcess, plantedFault) {
	small := buildWith(t, "small-mailbox", plant{"actors/config.go", "mailboxDefault         = 4096\n", "mailboxDefault         = 1\n"})
	n, _, keys := onSmallDisk(t, small, "160m", 1, unlimitedReads()...)
	var stop func()
	return n, plantedFault{
		name: "load", state: "overloaded",
		plant: func() { stop = askBest(t, n, 24, keys) },
		mend:  func() { stop() },
	}
}

// plantSnapshot has a snapshot written for which there is not enough space.
func plantSnapshot(t *testing.T) (*nodeProcess, plantedFault) {
	eager := buildWith(t, "eager-snapshots", smallLimits()...)
	n, disk, keys := onSmallDisk(t, eager, "220m", 20_000, unlimitedReads()...)
	var stop func()
	return n, plantedFault{
		name: "snapshot", state: "failing",
		plant: func() {
			fill(t, disk, reservedBytes+512<<10)
			stop = askBest(t, n, 4, keys)
			n.Await("snapshot failed")
		},
		mend: func() {
			stop()
			freeSpace(t, disk)
		},
	}
}

const (
	// shownWithin and clearedWithin are the promise of goal S15: how soon a fault shows, and how soon its end.
	shownWithin    = time.Second
	clearedWithin  = 5 * time.Second
	sampleInterval = 10 * time.Millisecond
	// holdTime is how long a fault, and then its end, must show without flapping.
	holdTime = 1500 * time.Millisecond
)

// healthSample is one answer of /readyz.
type healthSample struct {
	at     time.Time
	status int // 0 = no answer
	whole  string
	states map[string]string
}

// healthWatch polls /readyz and /livez over one connection, which is opened at the beginning.
type healthWatch struct {
	mu      sync.Mutex
	samples []healthSample
	dead    int // answers of /livez that were not 200
}

// watchHealth watches a node until the test ends.
func watchHealth(t *testing.T, n *nodeProcess) *healthWatch {
	t.Helper()
	w := &healthWatch{}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		c := newHTTPClient("127.0.9.9")
		defer c.close()
		every(sampleInterval, stop, func() bool {
			l := sampleHealth(c, n.URL+"/readyz")
			live, err := c.do(http.MethodGet, n.URL+"/livez", "", nil)
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.samples = append(w.samples, l); err != nil || live.status != http.StatusOK {
				w.dead++
			}
			return true
		})
	}()
	t.Cleanup(func() { close(stop); <-ended })
	return w
}

// sampleHealth polls once. The time is that of the answer.
func sampleHealth(c *httpClient, url string) healthSample {
	got, err := c.do(http.MethodGet, url, "", nil)
	l := healthSample{at: time.Now(), states: map[string]string{}}
	var said struct {
		Status     string
		Conditions []struct{ Name, State string }
	}
	if err == nil && json.Unmarshal([]byte(got.body), &said) == nil {
		l.status, l.whole = got.status, said.Status
		for _, c := range said.Conditions {
			l.states[c.Name] = c.State
		}
	}
	return l
}

// since returns the samples from a time on.
func (w *healthWatch) since(from time.Time) []healthSample {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.IndexFunc(w.samples, func(l healthSample) bool { return !l.at.Before(from) }); i >= 0 {
		return slices.Clone(w.samples[i:])
	}
	return nil
}

func (w *healthWatch) newest() healthSample {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.samples[len(w.samples)-1] // first has waited for some
}

// first waits for a matching sample and returns how long after from it came; false if none came in time.
func (w *healthWatch) first(from time.Time, most time.Duration, right func(healthSample) bool) (took time.Duration, in bool) {
	comesTrue(time.Until(from)+most+10*sampleInterval, func() bool {
		all := w.since(from)
		i := slices.IndexFunc(all, right)
		if i >= 0 {
			took = all[i].at.Sub(from)
		}
		return i >= 0
	})
	return took, took > 0 && took <= most
}

// holds checks that all samples of a span match.
func (w *healthWatch) holds(span time.Duration, right func(healthSample) bool) error {
	from := time.Now()
	wait(span)
	for _, l := range w.since(from) {
		if !right(l) {
			return fmt.Errorf("it flaps: after %s it is %v (%s)", l.at.Sub(from), l.states, l.whole)
		}
	}
	return nil
}

// plantedFault is a fault, and what /readyz must show.
type plantedFault struct {
	name, state string
	down        bool
	plant       func()        // when it returns the fault is there,
	late        time.Duration // except for this delay
	mend        func()        // when it returns the fault is over
}

// plantAndMend plants a fault, ends it, and returns how long /readyz took to show both, or what was wrong.
func (w *healthWatch) plantAndMend(f plantedFault) (comes, goes time.Duration, err error) {
	shows := func(l healthSample) bool {
		want, whole := http.StatusOK, "degraded"
		if f.down {
			want, whole = http.StatusServiceUnavailable, "unavailable"
		}
		return l.states[f.name] == f.state && l.status == want && l.whole == whole
	}
	well := func(l healthSample) bool { return l.status == http.StatusOK && l.states[f.name] == "ok" }
	f.plant()
	comes, in := w.first(time.Now().Add(f.late), shownWithin, shows)
	if !in {
		return 0, 0, fmt.Errorf("%s does not show %s within %s: %v", f.name, f.state, shownWithin, w.newest().states)
	}
	if err := w.holds(holdTime, shows); err != nil {
		return 0, 0, err
	}
	f.mend()
	goes, in = w.first(time.Now(), clearedWithin, well)
	if !in {
		return comes, 0, fmt.Errorf("%s does not go within %s: %v", f.name, clearedWithin, w.newest().states)
	}
	err = w.holds(holdTime, well)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead > 0 {
		err = errors.Join(err, fmt.Errorf("/livez: %d answers that were not 200", w.dead))
	}
	return comes, goes, err
}
