//go:build faults

package faults

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// healthFault plants one fault on a node of its own.
type healthFault struct {
	name  string
	plant func(t *testing.T) (*healthWatch, plantedFault)
}

// healthFaults are the faults of S15 that pass. Those that end the process are tests of their own.
func healthFaults() []healthFault {
	return []healthFault{
		{"nothing published", plantEmpty}, {"log replays", plantRecovering}, {"disk full", plantFull}, {"disk slow", plantSlow},
		{"clock stepped", plantStep}, {"mail server down", plantMailDown}, {"mail queue full", plantMailFull}, {"rates expired", plantStale},
		{"descriptors short", plantShort}, {"connections at the cap", plantCrowd}, {"mailboxes full", plantOverload},
		{"snapshot without space", plantSnapshot},
	}
}

// TestFaultsS15_EachFaultShows plants each fault on the real program: /readyz says so within a second, and within five seconds that it
// is over; nothing flaps; /livez goes on.
func TestFaultsS15_EachFaultShows(t *testing.T) {
	if !apart(t) {
		return
	}
	need(t, "strace", "strace")
	fired := 0
	var slowest, longest time.Duration
	var counting sync.Mutex
	t.Run("faults", func(t *testing.T) { // ends when all of them have
		for _, fault := range healthFaults() {
			t.Run(fault.name, func(t *testing.T) {
				t.Parallel()
				watch, planted := fault.plant(t)
				comes, goes, err := watch.judge(planted)
				if err != nil {
					t.Fatal(err)
				}
				progress(t, "%s: %s %s after %s, ok %s after its end", fault.name, planted.name, planted.state,
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

// TestFaultsS15_ControlUnwired takes a condition's wiring away: the watch must miss it.
func TestFaultsS15_ControlUnwired(t *testing.T) {
	if !apart(t) {
		return
	}
	deaf := mutant(t, "deaf", "actors/health.go", "s.dataCondition(), s.vitals.disk(now),", "s.dataCondition(), engine.Well(\"disk\"),")
	watch, planted := plantFullOn(t, deaf)
	_, _, err := watch.judge(planted)
	if err == nil {
		t.Error("a node that says nothing of its full disk passes")
	}
	figure(t, "control: a node without the condition of its disk: %v", err)
}

func nowAfter(do func()) func() time.Time {
	return func() time.Time {
		do()
		return time.Now()
	}
}

// setRate types a rate in.
func setRate(t *testing.T, n *node, currency string, expires time.Time) {
	t.Helper()
	buy, sell := map[string]string{"USD": "58.10", "CHF": "70.00"}[currency], map[string]string{"USD": "59.30", "CHF": "73.00"}[currency]
	output, err := exec.Command(program(t), "admin", "rates", "set", "popular", currency, "--buy", buy, "--sell", sell,
		"--expires", expires.UTC().Format(time.RFC3339),
		"--data", n.data, "--by", "test").CombinedOutput()
	if err != nil {
		t.Fatalf("set a rate: %v\n%s", err, output)
	}
}

func plantEmpty(t *testing.T) (*healthWatch, plantedFault) {
	n := start(t, t.TempDir()+"/data")
	return watchHealth(t, n), plantedFault{"data", "empty", true, time.Now, nowAfter(func() { setRate(t, n, "USD", time.Now().Add(6*time.Hour)) })}
}

// plantRecovering starts a node whose replay waits for four seconds.
func plantRecovering(t *testing.T) (*healthWatch, plantedFault) {
	text := planted(t, "actors/recovery.go", "\tr := newReplayer(s)\n", "\ttime.Sleep(4 * time.Second)\n\tr := newReplayer(s)\n")
	slow := overlaid(t, "slow-replay", map[string]string{"actors/recovery.go": text})
	data := t.TempDir() + "/data"
	prepare(t, data, 1)
	n := launch(t, command{program: slow, args: serveArgs(data)})
	if !n.listens() {
		t.Fatalf("it does not listen:\n%s", n.tail(50))
	}
	watch := watchHealth(t, n)
	return watch, plantedFault{"log", "recovering", true, time.Now, nowAfter(func() { n.await("recovered ") })}
}

// plantFull fills the disk of a node.
func plantFull(t *testing.T) (*healthWatch, plantedFault) { return plantFullOn(t, program(t)) }

// smallDisk is a file system in memory. Only for tests that run apart.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	place := t.TempDir()
	if err := unix.Mount("tmpfs", place, "tmpfs", 0, "size="+size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(place, unix.MNT_DETACH) })
	return place
}

// fill leaves so many bytes free.
func fill(t *testing.T, disk string, free int64) {
	t.Helper()
	var s unix.Statfs_t
	if err := unix.Statfs(disk, &s); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(disk, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := unix.Fallocate(int(file.Fd()), 0, 0, int64(s.Bavail)*s.Bsize-free); err != nil {
		t.Fatal(err)
	}
}

// reserveBytes is what a node leaves free.
const reserveBytes = 64 << 20

func plantFullOn(t *testing.T, program string) (*healthWatch, plantedFault) {
	disk := smallDisk(t, "160m")
	data := disk + "/data"
	prepare(t, data, 1)
	n := launch(t, command{program: program, args: serveArgs(data)}).ready()
	return watchHealth(t, n), plantedFault{"disk", "read_only", false,
		nowAfter(func() { fill(t, disk, reserveBytes-1<<20) }),
		nowAfter(func() {
			if err := os.Remove(disk + "/filler"); err != nil {
				t.Fatal(err)
			}
		})}
}

// traced injects a fault into the system calls of a node until release.
func traced(t *testing.T, n *node, inject string) (release func()) {
	t.Helper()
	calls, _, _ := strings.Cut(inject, ":")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("strace", "-f", "-p", strconv.Itoa(n.pid()), "-e", "trace="+calls, "-e", "inject="+inject, "-o", "/dev/null")
	cmd.Stderr = write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	text := make([]byte, 1)
	if _, err := read.Read(text); err != nil { // "Process N attached"
		t.Fatal(err)
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, read)
	}()
	var once sync.Once
	release = func() {
		once.Do(func() {
			_ = cmd.Process.Signal(syscall.SIGINT)
			_ = cmd.Wait() // it ends by the signal
			<-drained
			_ = read.Close()
		})
	}
	t.Cleanup(release)
	return release
}

// load asks from many connections until stop.
func load(n *node, callers int, keys []string, path string) (stop func()) {
	ends := make(chan struct{})
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			c := newCaller(addressOf(1000 + i*25))
			defer c.close()
			for {
				select {
				case <-ends:
					return
				default:
				}
				key := ""
				if len(keys) > 0 {
					key = keys[i%len(keys)]
				}
				_, _ = c.do(http.MethodGet, n.url+path, key, nil)
			}
		})
	}
	var once sync.Once
	return func() { once.Do(func() { close(ends); group.Wait() }) }
}

// plantSlow lets each sync take two seconds while somebody needs them.
func plantSlow(t *testing.T) (*healthWatch, plantedFault) {
	data := t.TempDir() + "/data"
	keys := prepare(t, data, 1)
	n := start(t, data, "--lease", "1", "--quota-minute", "60000", "--quota-day", "1000000")
	watch := watchHealth(t, n)
	var release, stop func()
	return watch, plantedFault{"disk", "slow", false,
		func() time.Time {
			release = traced(t, n, "fsync,fdatasync:delay_enter=2000000")
			stop = load(n, 1, keys, "/v1/rates/best?currency=USD&operation=buy")
			t.Cleanup(stop)
			return time.Now().Add(time.Second) // slow is what is older than a second
		},
		nowAfter(func() {
			release()
			stop() // the last sync has come back then
		})}
}

func plantStep(t *testing.T) (*healthWatch, plantedFault) {
	clock, data := newWallClock(t), t.TempDir()+"/data"
	prepare(t, data, 1)
	n := launch(t, command{program: overlaid(t, "skewed", skewedTime(t)), args: serveArgs(data), env: clock.env()}).ready()
	return watchHealth(t, n), plantedFault{"clock", "clock_suspect", false,
		nowAfter(func() { clock.step(61 * time.Second) }), nowAfter(func() { clock.step(-61 * time.Second) })}
}

// gateway passes connections on to a server while it is open.
type gateway struct {
	address, to string
	listener    net.Listener
	group       sync.WaitGroup
}

// newGateway finds a port that stays closed until open.
func newGateway(t *testing.T, to string) *gateway {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{address: listener.Addr().String(), to: to}
	_ = listener.Close()
	t.Cleanup(func() {
		if g.listener != nil {
			_ = g.listener.Close()
		}
		g.group.Wait()
	})
	return g
}

func (g *gateway) open(t *testing.T) {
	t.Helper()
	var err error
	if g.listener, err = net.Listen("tcp", g.address); err != nil {
		t.Fatal(err)
	}
	g.group.Go(func() {
		for {
			in, err := g.listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", g.to)
			if err != nil {
				_ = in.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
				g.group.Go(func() {
					_, _ = io.Copy(way[0], way[1])
					_ = in.Close()
					_ = out.Close()
				})
			}
		}
	})
}

func plantMailDown(t *testing.T) (*healthWatch, plantedFault) {
	return plantMail(t, program(t), "failing", 1)
}

// plantMailFull is a queue that holds two letters.
func plantMailFull(t *testing.T) (*healthWatch, plantedFault) {
	small := mutant(t, "small-queue", "actors/mail/config.go", "queueMaxDefault  = 1000\n", "queueMaxDefault  = 2\n")
	return plantMail(t, small, "full", 2)
}

func plantMail(t *testing.T, program, state string, letters int) (*healthWatch, plantedFault) {
	gate := newGateway(t, newPostOffice(t).address)
	data := t.TempDir() + "/data"
	prepare(t, data, 1)
	n := launch(t, command{program: program, args: serveArgs(data, "--smtp-addr", gate.address, "--smtp-tls", "off", "--mail-from", "no-reply@tasard.example")}).ready()
	c := newCaller(addressOf(1))
	t.Cleanup(c.close)
	return watchHealth(t, n), plantedFault{"mail", state, false,
		nowAfter(func() {
			for i := range letters {
				got, err := c.do(http.MethodPost, n.url+"/v1/account/codes", "", map[string]string{"email": fmt.Sprintf("ana%d@example.com", i)})
				if err != nil || !got.good() {
					t.Fatal(got.trouble("ask for a code", err))
				}
			}
		}), nowAfter(func() { gate.open(t) })}
}

func plantStale(t *testing.T) (*healthWatch, plantedFault) {
	data := t.TempDir() + "/data"
	prepare(t, data, 1)
	n := start(t, data)
	return watchHealth(t, n), plantedFault{"rates", "stale", false,
		func() time.Time {
			expires := time.Now().Truncate(time.Second).Add(3 * time.Second)
			setRate(t, n, "CHF", expires)
			pass(time.Until(expires))
			return expires
		}, nowAfter(func() { setRate(t, n, "CHF", time.Now().Add(6*time.Hour)) })}
}

// plantShort takes the descriptors away that are not in use, while somebody connects.
func plantShort(t *testing.T) (*healthWatch, plantedFault) {
	data := t.TempDir() + "/data"
	prepare(t, data, 1)
	n := start(t, data)
	watch := watchHealth(t, n)
	pass(500 * time.Millisecond) // both lines of the watch are open
	var old unix.Rlimit
	if err := unix.Prlimit(n.pid(), unix.RLIMIT_NOFILE, nil, &old); err != nil {
		t.Fatal(err)
	}
	return watch, plantedFault{"connections", "short", false,
		func() time.Time {
			if err := unix.Prlimit(n.pid(), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: old.Max}, nil); err != nil {
				t.Fatal(err)
			}
			address := strings.TrimPrefix(n.url, "http://")
			for range 2 {
				conn, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = conn.Close() })
			}
			return time.Now()
		},
		nowAfter(func() {
			if err := unix.Prlimit(n.pid(), unix.RLIMIT_NOFILE, &old, nil); err != nil {
				t.Fatal(err)
			}
		})}
}

// plantCrowd opens as many connections as may be.
func plantCrowd(t *testing.T) (*healthWatch, plantedFault) {
	data := t.TempDir() + "/data"
	prepare(t, data, 1)
	n := start(t, data, "--connections", "40", "--connections-per-address", "0")
	watch := watchHealth(t, n)
	pass(500 * time.Millisecond)
	var conns []net.Conn
	leave := func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
		conns = nil
	}
	t.Cleanup(leave)
	return watch, plantedFault{"connections", "full", false,
		nowAfter(func() {
			for range 45 {
				conn, err := net.Dial("tcp", strings.TrimPrefix(n.url, "http://"))
				if err != nil {
					t.Fatal(err)
				}
				conns = append(conns, conn)
			}
		}), nowAfter(leave)}
}

// plantOverload asks more at once than wait for a mailbox of one place.
func plantOverload(t *testing.T) (*healthWatch, plantedFault) {
	small := mutant(t, "small-mailbox", "actors/config.go", "mailboxDefault         = 4096\n", "mailboxDefault         = 1\n")
	data := t.TempDir() + "/data"
	keys := prepare(t, data, 1)
	n := launch(t, command{program: small, args: serveArgs(data, "--lease", "1", "--quota-minute", "60000", "--quota-day", "1000000")}).ready()
	watch := watchHealth(t, n)
	var stop func()
	return watch, plantedFault{"load", "overloaded", false,
		func() time.Time {
			stop = load(n, 24, keys, "/v1/rates/best?currency=USD&operation=buy")
			t.Cleanup(stop)
			return time.Now()
		}, nowAfter(func() { stop() })}
}

// plantSnapshot has a snapshot written of which the space lets only the beginning.
func plantSnapshot(t *testing.T) (*healthWatch, plantedFault) {
	eager := mutant(t, "eager-snapshots", "actors/config.go", "snapshotRecordsDefault = 50_000\n", "snapshotRecordsDefault = 20\n")
	disk := smallDisk(t, "220m")
	data := disk + "/data"
	keys := prepare(t, data, 20_000)
	n := launch(t, command{program: eager, args: serveArgs(data, "--lease", "1", "--quota-minute", "60000", "--quota-day", "1000000")}).ready()
	watch := watchHealth(t, n)
	var stop func()
	return watch, plantedFault{"snapshot", "failing", false,
		func() time.Time {
			fill(t, disk, reserveBytes+512<<10)
			stop = load(n, 4, keys, "/v1/rates/best?currency=USD&operation=buy")
			t.Cleanup(stop)
			n.await("snapshot not taken")
			return time.Now()
		},
		nowAfter(func() {
			stop()
			if err := os.Remove(disk + "/filler"); err != nil {
				t.Fatal(err)
			}
		})}
}
