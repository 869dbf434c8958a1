//go:build faults

package cmd

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/httpapi/apitest"
)

const (
	loadWorkers  = 8
	loadAccounts = 64
	busyAccounts = 8 // accounts with half of the requests, which reach their limits on a slow machine too
	loadSeries   = 16
	// sessionAgeMax is when sessions are renewed, which last a quarter of an hour.
	sessionAgeMax = 8 * time.Minute
	// loadSpan is the longest load of a cycle; the crash comes at a random time of it.
	loadSpan = 60 * time.Millisecond
	// stopSpan is about the duration of an orderly stop.
	stopSpan = 20 * time.Millisecond
	// The percentages of a worker's actions that change keys, and that use a revoked one.
	changesPercent, goneKeysPercent = 10, 5
)

// crashTest is a node under load, with its checker: it is crashed again and again, and checked after each start.
type crashTest struct {
	t              *testing.T
	checker        *checker
	mail           *mailServer
	program        string // "" = as users build it
	dir            string // data directory
	socket         string // management socket, beside the data, because not every file system supports sockets
	node           *endpoint
	sessionsStart  time.Time // since when all accounts have a session
	seed           uint64
	cycles         int
	crashesInStart int  // crashes before the node answered
	crashesInStop  int  // crashes after an orderly stop
	refused        bool // the node rejected its own log: see runUntilCaught
	callers        [loadWorkers]*httpClient
}

// newCrashTest prepares a data directory and signs up all accounts.
func newCrashTest(t *testing.T, x limits, place, program string) *crashTest {
	t.Helper()
	s := &crashTest{
		t: t, checker: newChecker(x), mail: newPlainMailServer(t), program: program, seed: newSeed(t),
		dir: filepath.Join(place, "data"), socket: filepath.Join(t.TempDir(), "admin.sock"),
	}
	s.node = &endpoint{number: 1, admin: newAdminClient(s.socket)}
	t.Cleanup(s.node.admin.close)
	s.checker.auditor = writeDataDir(t, s.dir, 1, apitest.KeysRequired())[0]
	for i := range s.callers {
		s.callers[i] = newHTTPClient("")
		t.Cleanup(s.callers[i].close)
	}
	s.checker.publishing(loadSeries)
	for number := range loadAccounts {
		s.checker.newAccount(fmt.Sprintf("account-%d@example.com", number), x.day, x.minute)
	}
	n := s.launch()
	s.ready(n)
	// Reads with the key of the first account of the directory are not recorded.
	lifted := map[string]int{"day": 100_000_000, "minute": 60_000}
	if got, err := s.node.admin.do("POST", "http://node/accounts/1/limit", "", lifted); err != nil || !got.good() {
		t.Fatal(got.failure("lift the auditor's limits", err))
	}
	s.signInAll(n)
	for _, a := range s.checker.accounts {
		if _, got := s.checker.newKey(s.callers[0], s.node, a); !got.good() {
			t.Fatal(got.failure("make the first key", nil))
		}
	}
	n.stop()
	mustExec(t, "sync", "-f", s.dir) // from now on only what the node syncs is safe
	return s
}

// newSeed draws a seed and prints it.
func newSeed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return seed
}

// signInAll gives all accounts sessions.
func (s *crashTest) signInAll(n *nodeProcess) {
	s.t.Helper()
	numbers, failed := make([]int, loadAccounts), make([]error, loadAccounts)
	for i := range numbers {
		numbers[i] = i
	}
	inParallel(loadWorkers, numbers, func(_, number int) {
		c := newHTTPClient(clientAddress(number))
		defer c.close()
		failed[number] = s.checker.signIn(s.mail, c, s.node, s.checker.accounts[number])
	})
	if err := errors.Join(failed...); err != nil {
		s.t.Fatalf("%v\n%s", err, n.Tail(20))
	}
	s.sessionsStart = time.Now()
}

// launch starts the node and does not wait.
func (s *crashTest) launch() *nodeProcess {
	args := append(s.mail.args(), "--admin-socket", s.socket)
	return launch(s.t, nodeCommand{program: s.program, args: nodeArgs(s.dir, append(args, s.checker.limits.args()...)...)})
}

// ready waits until a node answers.
func (s *crashTest) ready(n *nodeProcess) {
	s.t.Helper()
	s.node.url = n.ready().URL
}

// crash ends a node in a cycle. When it returns the node is gone and its data directory as after the crash.
type crash func(n *nodeProcess)

// begin starts the node, waits until it answers, and checks it.
func (s *crashTest) begin() *nodeProcess {
	s.t.Helper()
	n := s.launch()
	s.ready(n)
	s.check(n)
	return n
}

// check checks a node that has just started.
func (s *crashTest) check(n *nodeProcess) {
	s.t.Helper()
	if time.Since(s.sessionsStart) > sessionAgeMax {
		s.signInAll(n)
	}
	s.checker.check(checkScope{chance: s.chance(-1)}, s.node)
}

// chance is the random source of a worker in this cycle.
func (s *crashTest) chance(worker int) *rand.Rand {
	return rand.New(rand.NewPCG(s.seed, uint64(s.cycles)*64+uint64(worker+1)))
}

// upTo returns a random part of a span.
func upTo(chance *rand.Rand, span time.Duration) time.Duration {
	return time.Duration(chance.Int64N(int64(span)))
}

// cycle starts the node, checks it, loads it, and crashes it at a random time: also before it answers, and while it
// stops.
func (s *crashTest) cycle(end crash) {
	s.t.Helper()
	s.cycles++
	chance := s.chance(loadWorkers)
	if chance.IntN(8) == 0 {
		s.crashesInStart++
		n := s.launch()
		wait(upTo(chance, loadSpan))
		end(n)
		return
	}
	s.load(s.begin(), upTo(chance, loadSpan), end)
}

// load has all clients send requests for a while, and crashes the node meanwhile.
func (s *crashTest) load(n *nodeProcess, span time.Duration, end crash) {
	var over atomic.Bool
	var done sync.WaitGroup
	const each = loadAccounts / loadWorkers
	for number := range loadWorkers {
		own := s.checker.accounts[number*each : (number+1)*each]
		w := newLoadClient(s.checker, s.callers[number], s.chance(number), func() []*endpoint { return []*endpoint{s.node} }, own)
		done.Go(func() {
			for !over.Load() && !n.Exited() {
				a := s.checker.accounts[w.chance.IntN(loadAccounts)]
				if w.chance.IntN(2) == 0 {
					a = s.checker.accounts[w.chance.IntN(busyAccounts)]
				}
				if w.chance.IntN(100) < changesPercent {
					w.changeKeys()
				} else {
					w.read(a, goneKeysPercent, 0)
				}
			}
		})
	}
	done.Go(func() { s.changeRates(n, &over) })
	wait(span)
	chance := s.chance(3 * loadWorkers)
	if chance.IntN(8) == 0 {
		s.checker.end()
		n.Send(syscall.SIGTERM)
		if chance.IntN(2) == 0 {
			s.crashesInStop++
			s.checker.stoppedInOrder = n.AwaitExit() == 0
		} else {
			wait(upTo(chance, stopSpan))
		}
	}
	end(n)
	over.Store(true)
	done.Wait()
	for _, c := range s.callers {
		c.close()
	}
}

// changeRates publishes rates and suspends accounts until the node is gone.
func (s *crashTest) changeRates(n *nodeProcess, over *atomic.Bool) {
	chance := s.chance(2 * loadWorkers)
	for !over.Load() && !n.Exited() {
		if chance.IntN(4) == 0 {
			s.checker.suspend(s.node, s.checker.accounts[8*chance.IntN(loadAccounts/8)])
		} else {
			s.checker.set(s.node, s.checker.series[chance.IntN(loadSeries)])
		}
	}
}

// finish starts the node a last time, checks everything, and stops it in order.
func (s *crashTest) finish() {
	s.t.Helper()
	n := s.begin()
	s.checker.checkAll(s.node)
	n.stop()
}

// String formats the figures.
func (s *crashTest) String() string {
	return fmt.Sprintf("%d crashes, %d of them before the first answer, %d after a stop in order: %v; %d accounts at their limit of the day; %d torn tails",
		s.cycles, s.crashesInStart, s.crashesInStop, s.checker, s.accountsAtLimit(), s.tornTails())
}

// accountsAtLimit returns how many accounts have used up their daily quota.
func (s *crashTest) accountsAtLimit() (count int) {
	s.checker.mu.Lock()
	defer s.checker.mu.Unlock()
	for _, a := range s.checker.accounts {
		if a.spentAtStart >= a.day {
			count++
		}
	}
	return count
}

// tornTails returns how many torn tails were cut off: their bytes are kept beside the log.
func (s *crashTest) tornTails() int {
	kept, _ := filepath.Glob(filepath.Join(s.dir, "*.torn-*")) // the pattern is valid
	return len(kept)
}

// wait waits for a crash at a time that no event announces.
func wait(span time.Duration) {
	timer := time.NewTimer(span)
	defer timer.Stop()
	<-timer.C
}

// run crashes the node a number of times, and then checks everything.
func (s *crashTest) run(cycles int, end crash) {
	s.t.Helper()
	for range cycles {
		s.cycle(end)
		if s.cycles%100 == 0 {
			progress(s.t, "%v", s)
		}
		if s.checker.violationCount() > 0 {
			break
		}
	}
	s.finish()
	s.checker.report(s.t)
	wantHalfDone(s.t, "crashes", s.cycles, cycles)
	never := s.cycles == s.crashesInStart || s.checker.count("keys", acknowledged) <= loadAccounts || s.checker.count("", unknown) == 0
	for _, what := range []string{"revocations", "rates", "suspensions", "keyed reads"} {
		never = never || s.checker.count(what, acknowledged) == 0
	}
	if never && s.cycles >= faultsForAll {
		s.t.Errorf("something was never done: %v", s)
	}
}

// caughtWithin is the number of crashes within which a planted bug must be found.
const caughtWithin = 25

// runUntilCaught crashes a node with a planted bug until the checker finds it, or the node finds its own log damaged.
func (s *crashTest) runUntilCaught(end crash, kinds ...violation) {
	s.t.Helper()
	for range caughtWithin {
		n := s.launch()
		if !n.answers() {
			if code := n.AwaitExit(); code != exit.BadData {
				s.t.Errorf("the node with a planted bug ended with %d", code)
			}
			s.refused = true
			return
		}
		s.node.url = n.URL
		s.check(n)
		if s.checker.violationCount(kinds...) > 0 {
			return
		}
		s.cycles++
		s.load(n, loadSpan/2+upTo(s.chance(loadWorkers), loadSpan), end)
	}
	s.t.Errorf("the planted bug was not found: %v", s)
}

// caughtBy describes how a planted bug was found.
func (s *crashTest) caughtBy() string {
	if s.refused {
		return fmt.Sprintf("after %d crashes the node refuses its damaged log: %v", s.cycles, s)
	}
	return fmt.Sprintf("found after %d crashes: %v", s.cycles, s)
}

// TestFaultsW1_Control plants three bugs that only a crash shows: an answer just before the write, leases that are not
// written, and grants of a day that a replay forgets.
func TestFaultsW1_Control(t *testing.T) {
	for _, c := range []struct {
		name string
		kind violation
		bugs []plant
	}{
		{"answers before it writes", lostWrite, []plant{
			{"actors/internal/commitlog/log.go", "package commitlog\n", "package commitlog\n\nimport planted \"time\"\n"},
			{"actors/internal/commitlog/log.go", "l.Ref.Send(&appendResult{last: last, err: err})", "_ = last"},
			{"actors/internal/commitlog/log.go", "last, err := l.Journal.Append(expected, records)",
				"l.Ref.Send(&appendResult{last: expected + uint64(len(records))}); planted.Sleep(5 * planted.Millisecond)\n" +
					"last, err := l.Journal.Append(expected, records)"},
		}},
		{"no lease is logged", overGranted, []plant{{"actors/internal/record/accounts.go", "\tc.count(3, &e.Count)\n", ""}}},
		{"grants are forgotten", overGranted, []plant{{"actors/internal/accounts/replay.go", "r.grants = r.grants.Apply(*e, false)", ""}}},
	} {
		s := newCrashTest(t, usualLimits(), t.TempDir(), buildWith(t, strings.ReplaceAll(c.name, " ", "-"), c.bugs...))
		s.runUntilCaught((*nodeProcess).kill, c.kind)
		figure(t, "control, %s: %s", c.name, s.caughtBy())
	}
}

// TestFaultsW1_KilledUnderLoad kills the node at random times under load, with the default lease, with leases of one
// where daily limits are reached, and with the default quotas (goals W1, Q2 and S7); W1_KILLS sets how often.
func TestFaultsW1_KilledUnderLoad(t *testing.T) {
	for _, way := range []struct {
		name   string
		limits limits
		cycles int
	}{
		{"lease 16", usualLimits(), 300},
		{"lease 16, another node", usualLimits(), 300},
		{"lease 1, the day's limit is reached", limits{day: 200, minute: 60_000, lease: 1}, 300},
		{"lease 16, 1,000 a day and 60 a minute", limits{day: 1000, minute: 60, lease: 16}, 100},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel() // half of a cycle is waiting
			s := newCrashTest(t, way.limits, t.TempDir(), "")
			s.run(countFrom(t, "W1_KILLS", way.cycles), (*nodeProcess).kill)
			if way.limits.lease == 1 && s.cycles == way.cycles && s.accountsAtLimit() == 0 {
				t.Error("no account came to its limit of the day")
			}
			figure(t, "%s: %v", way.name, s)
		})
	}
}

// freeze stops all threads of a node, which must be the child itself, not a wrapper.
func (n *nodeProcess) freeze() {
	n.t.Helper()
	n.Send(syscall.SIGSTOP)
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, n.pid(), &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if err == nil || err == unix.ECHILD { // no child: it has exited
			return
		}
		if err != unix.EINTR {
			n.t.Fatalf("wait until the node stands: %v", err)
		}
	}
}

// powerCut crashes a node on a volume by a power cut. The node is stopped first: otherwise it would send answers
// while the file system shuts down.
func (v *volume) powerCut(n *nodeProcess) {
	n.freeze()
	v.cutPower()
	n.kill()
	v.remount()
}

// unsynced is the program with a bug: it never waits for the disk.
func unsynced(t *testing.T) string {
	t.Helper()
	return buildWith(t, "unsynced", plant{"wal/log.go", "err := l.store.Sync()", "err := error(nil)"})
}

// usualLimits are never reached, and leases are those of a node without flags.
func usualLimits() limits { return limits{day: 20_000, minute: 60_000, lease: 16} }

// losePower cuts the power of a node on a kind of file system a number of times, then that of one that does not sync.
func losePower(t *testing.T, kind string, cycles int, size string, options ...string) {
	t.Helper()
	t.Parallel()
	need(t, map[string]string{"ext4": "e2fsprogs", "xfs": "xfsprogs"}[kind], "mkfs."+kind)
	if !inNamespace(t) {
		return
	}
	v := newVolume(t, memoryDir(t), kind, size, options...)
	s := newCrashTest(t, usualLimits(), v.mountPoint, "")
	s.run(countFrom(t, "W2_CUTS", cycles), v.powerCut)
	figure(t, "power cut, %s: %v", kind, s)

	v = newVolume(t, memoryDir(t), kind, size, options...)
	s = newCrashTest(t, usualLimits(), v.mountPoint, unsynced(t))
	s.runUntilCaught(v.powerCut, lostWrite, overGranted)
	figure(t, "control, %s without sync: %s", kind, s.caughtBy())
}

// TestFaultsW2_PowerCutExt4 cuts the power under load on ext4 (goals W2, Q2 and S7).
func TestFaultsW2_PowerCutExt4(t *testing.T) { losePower(t, "ext4", 500, "256M", "-q", "-F") }

// TestFaultsW2_PowerCutXFS does the same on XFS.
func TestFaultsW2_PowerCutXFS(t *testing.T) { losePower(t, "xfs", 300, "512M", "-q", "-f") }
