//go:build faults

package faults

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tasard/tasard/httpapi/apitest"
)

const (
	stormWorkers  = 8
	stormAccounts = 64
	stormBusy     = 8 // accounts with half of the requests: they come to their limits on a slow machine too
	stormSeries   = 16
	// signedMax is when sessions are renewed, which end after a quarter of an hour: on a slow machine.
	signedMax = 8 * time.Minute
	// loadSpan is the longest time of load in a cycle: the crash comes at a random moment of it.
	loadSpan = 60 * time.Millisecond
	// stopSpan is about what a stop in order takes.
	stopSpan = 20 * time.Millisecond
	// Of a hundred things that a worker does, so many change keys and ask with a revoked one.
	changesPercent, goneKeysPercent = 10, 5
)

// storm is a node under load, with its ledger: it is crashed again and again, and looked at after each start.
type storm struct {
	t       *testing.T
	ledger  *ledger
	office  *postOffice
	program string // "" = as users build it
	dir     string // of the data
	socket  string // of the management: beside the data, because not every file system holds one
	at      *member
	signed  time.Time // since when all accounts have a session
	seed    uint64
	cycles  int
	early   int  // crashes before the node answered
	stops   int  // crashes after it had ended in order
	refused bool // the node refused its own log: see catch
	callers [stormWorkers]*caller
}

// newStorm prepares a data directory in a place and signs all accounts up.
func newStorm(t *testing.T, x terms, place, program string) *storm {
	t.Helper()
	s := &storm{
		t: t, ledger: newLedger(x), office: newPostOffice(t), program: program, seed: newSeed(t),
		dir: filepath.Join(place, "data"), socket: filepath.Join(t.TempDir(), "admin.sock"),
	}
	s.at = &member{number: 1, admin: newAdmin(s.socket)}
	t.Cleanup(s.at.admin.close)
	s.ledger.auditor = prepare(t, s.dir, 1, apitest.KeysRequired())[0]
	for i := range s.callers {
		s.callers[i] = newCaller("")
		t.Cleanup(s.callers[i].close)
	}
	s.ledger.publishing(stormSeries)
	for number := range stormAccounts {
		s.ledger.newAccount(fmt.Sprintf("account-%d@example.com", number), x.day, x.minute)
	}
	n := s.launch()
	s.ready(n)
	// What is read with the key of the first account of the directory is not part of the ledger.
	lifted := map[string]int{"day": 100_000_000, "minute": 60_000}
	if got, err := s.at.admin.do("POST", "http://node/accounts/1/limit", "", lifted); err != nil || !got.good() {
		t.Fatal(got.trouble("lift the auditor's limits", err))
	}
	s.sign(n)
	for _, a := range s.ledger.accounts {
		if _, got := s.ledger.newKey(s.callers[0], s.at, a); !got.good() {
			t.Fatal(got.trouble("make the first key", nil))
		}
	}
	n.stop()
	system(t, "sync", "-f", s.dir) // from here on only what the node syncs is safe
	return s
}

// newSeed is another one in each run, and told.
func newSeed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return seed
}

// sign gives all accounts sessions.
func (s *storm) sign(n *node) {
	s.t.Helper()
	numbers, failed := make([]int, stormAccounts), make([]error, stormAccounts)
	for i := range numbers {
		numbers[i] = i
	}
	spread(stormWorkers, numbers, func(_, number int) {
		c := newCaller(addressOf(number))
		defer c.close()
		failed[number] = s.ledger.signIn(s.office, c, s.at, s.ledger.accounts[number])
	})
	if err := errors.Join(failed...); err != nil {
		s.t.Fatalf("%v\n%s", err, n.tail(20))
	}
	s.signed = time.Now()
}

// launch starts the node and does not wait.
func (s *storm) launch() *node {
	args := append(s.office.args(), "--admin-socket", s.socket)
	return launch(s.t, command{program: s.program, args: serveArgs(s.dir, append(args, s.ledger.terms.args()...)...)})
}

// ready waits until a node answers.
func (s *storm) ready(n *node) {
	s.t.Helper()
	s.at.url = n.ready().url
}

// crash is how a node ends in a cycle: it must be over when that returns, and the data directory as it is after the crash.
type crash func(n *node)

// kill is a crash of the process alone.
func kill(n *node) { n.kill() }

// begin starts the node, waits until it answers, and holds the ledger against it.
func (s *storm) begin() *node {
	s.t.Helper()
	n := s.launch()
	s.ready(n)
	s.check(n)
	return n
}

// check holds the ledger against a node that has just started.
func (s *storm) check(n *node) {
	s.t.Helper()
	if time.Since(s.signed) > signedMax {
		s.sign(n)
	}
	s.ledger.check(scope{chance: s.chance(-1)}, s.at)
}

// chance is the source of a worker in this cycle.
func (s *storm) chance(worker int) *rand.Rand {
	return rand.New(rand.NewPCG(s.seed, uint64(s.cycles)*64+uint64(worker+1)))
}

// upTo is a random part of a span.
func upTo(chance *rand.Rand, span time.Duration) time.Duration {
	return time.Duration(chance.Int64N(int64(span)))
}

// cycle starts the node, checks, loads it, and crashes it at a random moment: also before it answers, and while it stops.
func (s *storm) cycle(end crash) {
	s.t.Helper()
	s.cycles++
	chance := s.chance(stormWorkers)
	if chance.IntN(8) == 0 {
		s.early++
		n := s.launch()
		wait(upTo(chance, loadSpan))
		end(n)
		return
	}
	s.load(s.begin(), upTo(chance, loadSpan), end)
}

// load has all clients ask for a while, and crashes the node meanwhile.
func (s *storm) load(n *node, span time.Duration, end crash) {
	var over atomic.Bool
	var done sync.WaitGroup
	const each = stormAccounts / stormWorkers
	for number := range stormWorkers {
		own := s.ledger.accounts[number*each : (number+1)*each]
		w := newClient(s.ledger, s.callers[number], s.chance(number), func() []*member { return []*member{s.at} }, own)
		done.Go(func() {
			for !over.Load() && !n.over() {
				a := s.ledger.accounts[w.chance.IntN(stormAccounts)]
				if w.chance.IntN(2) == 0 {
					a = s.ledger.accounts[w.chance.IntN(stormBusy)]
				}
				if w.chance.IntN(100) < changesPercent {
					w.forge()
				} else {
					w.read(a, goneKeysPercent, 0)
				}
			}
		})
	}
	done.Go(func() { s.operate(n, &over) })
	wait(span)
	chance := s.chance(3 * stormWorkers)
	if chance.IntN(8) == 0 {
		s.ledger.end()
		n.send(syscall.SIGTERM)
		if chance.IntN(2) == 0 {
			s.stops++
			s.ledger.orderly = n.end() == 0
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

// operate publishes rates and suspends accounts, one after the other, until the node is gone.
func (s *storm) operate(n *node, over *atomic.Bool) {
	chance := s.chance(2 * stormWorkers)
	for !over.Load() && !n.over() {
		if chance.IntN(4) == 0 {
			s.ledger.suspend(s.at, s.ledger.accounts[8*chance.IntN(stormAccounts/8)])
		} else {
			s.ledger.set(s.at, s.ledger.series[chance.IntN(stormSeries)])
		}
	}
}

// finish starts the node a last time, holds everything against it, and stops it in order.
func (s *storm) finish() {
	s.t.Helper()
	n := s.begin()
	s.ledger.whole(s.at)
	n.stop()
}

// String is what a figure says of it.
func (s *storm) String() string {
	return fmt.Sprintf("%d crashes, %d of them before the first answer, %d after a stop in order: %v; %d accounts at their limit of the day; %d torn tails",
		s.cycles, s.early, s.stops, s.ledger, s.reached(), s.torn())
}

// reached is how many accounts have used up their day.
func (s *storm) reached() (count int) {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	for _, a := range s.ledger.accounts {
		if a.base >= a.day {
			count++
		}
	}
	return count
}

// torn is how many torn tails were cut: the bytes of each are kept beside the log.
func (s *storm) torn() int {
	kept, _ := filepath.Glob(filepath.Join(s.dir, "*.torn-*")) // the pattern is good
	return len(kept)
}

// wait is for a crash at a moment that nothing announces.
func wait(span time.Duration) {
	timer := time.NewTimer(span)
	defer timer.Stop()
	<-timer.C
}

// rage crashes the node so often, and then looks at everything.
func (s *storm) rage(cycles int, end crash) {
	s.t.Helper()
	for range cycles {
		s.cycle(end)
		if s.cycles%100 == 0 {
			progress(s.t, "%v", s)
		}
		if s.ledger.broken() > 0 {
			break
		}
	}
	s.finish()
	s.ledger.report(s.t)
	never := s.cycles == s.early || s.ledger.count("keys", acknowledged) <= stormAccounts || s.ledger.count("", unknown) == 0
	for _, what := range []string{"revocations", "rates", "suspensions", "keyed reads"} {
		never = never || s.ledger.count(what, acknowledged) == 0
	}
	if never && s.cycles >= longCampaign {
		s.t.Errorf("something was never done: %v", s)
	}
}

// caughtWithin is after how many crashes a planted bug must have shown.
const caughtWithin = 25

// catch crashes a node with a planted bug until the ledger finds it, or until the node finds its own log damaged.
func (s *storm) catch(end crash, kinds ...breach) {
	s.t.Helper()
	for range caughtWithin {
		n := s.launch()
		if !n.answers() {
			if code := n.end(); code != exitBadData {
				s.t.Errorf("the node with a planted bug ended with %d", code)
			}
			s.refused = true
			return
		}
		s.at.url = n.url
		s.check(n)
		if s.ledger.broken(kinds...) > 0 {
			return
		}
		s.cycles++
		s.load(n, loadSpan/2+upTo(s.chance(stormWorkers), loadSpan), end)
	}
	s.t.Errorf("the planted bug was not found: %v", s)
}

// caught says how a planted bug was found.
func (s *storm) caught() string {
	if s.refused {
		return fmt.Sprintf("after %d crashes the node refuses its damaged log: %v", s.cycles, s)
	}
	return fmt.Sprintf("found after %d crashes: %v", s.cycles, s)
}

// TestFaultsW1_Control plants two bugs that only a crash shows: an answer a moment before the write, and leases that are not written.
func TestFaultsW1_Control(t *testing.T) {
	early := mutant(t, "answers-early", "actors/internal/commitlog/writer.go",
		"package commitlog\n", "package commitlog\n\nimport planted \"time\"\n",
		"last, err := w.journal.Append(j.expected, j.records)",
		"w.to.Send(&written{last: j.expected + uint64(len(j.records))}); planted.Sleep(5 * planted.Millisecond)\n"+
			"last, err := w.journal.Append(j.expected, j.records)",
		"w.to.Send(&written{last: last, err: err})", "_ = last")
	s := newStorm(t, terms{day: 20_000, minute: 60_000, lease: 16}, t.TempDir(), early)
	s.catch(kill, lost)
	figure(t, "control, answers before it writes: %s", s.caught())

	unlogged := mutant(t, "unlogged-lease", "actors/internal/record/accounts.go", "\tc.count(3, &e.Count)\n", "")
	s = newStorm(t, terms{day: 20_000, minute: 60_000, lease: 16}, t.TempDir(), unlogged)
	s.catch(kill, granted)
	figure(t, "control, no lease is logged: %s", s.caught())
}

// TestFaultsW1_KilledUnderLoad kills the node at random moments under load, with the lease of the default, with none where the
// limit of the day is reached, and with the limits of the contract (W1, Q2, S7); W1_KILLS sets how often.
func TestFaultsW1_KilledUnderLoad(t *testing.T) {
	for _, way := range []struct {
		name   string
		terms  terms
		cycles int
	}{
		{"lease 16", terms{day: 20_000, minute: 60_000, lease: 16}, 300},
		{"lease 16, another node", terms{day: 20_000, minute: 60_000, lease: 16}, 300},
		{"lease 1, the day's limit is reached", terms{day: 200, minute: 60_000, lease: 1}, 300},
		{"lease 16, 1,000 a day and 60 a minute", terms{day: 1000, minute: 60, lease: 16}, 100},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel() // half of a cycle is waiting
			s := newStorm(t, way.terms, t.TempDir(), "")
			s.rage(countFrom(t, "W1_KILLS", way.cycles), kill)
			if way.terms.lease == 1 && s.cycles == way.cycles && s.reached() == 0 {
				t.Error("no account came to its limit of the day")
			}
			figure(t, "%s: %v", way.name, s)
		})
	}
}

// freeze stops all threads of a node; the program must be the child itself, not a prefix.
func (n *node) freeze() {
	n.t.Helper()
	n.send(syscall.SIGSTOP)
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, n.pid(), &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if err == nil || err == unix.ECHILD { // no child: it has ended
			return
		}
		if err != unix.EINTR {
			n.t.Fatalf("wait until the node stands: %v", err)
		}
	}
}

// powerCut is how a node on a volume loses power. It stands first: else answers come out that it gave while the file system went down.
func (v *volume) powerCut(n *node) {
	n.freeze()
	v.cut()
	n.kill()
	v.again()
}

// unsynced is the program with a bug: it never waits for the disk.
func unsynced(t *testing.T) string {
	t.Helper()
	return mutant(t, "unsynced", "wal/log.go", "err := l.store.Sync()", "err := error(nil)")
}

// volumeTerms are those of the nodes that lose power.
func volumeTerms() terms { return terms{day: 20_000, minute: 60_000, lease: 16} }

// losePower cuts the power of a node on a kind of file system so often, then that of one that does not sync.
func losePower(t *testing.T, kind string, cycles int, size string, options ...string) {
	t.Helper()
	t.Parallel()
	need(t, map[string]string{"ext4": "e2fsprogs", "xfs": "xfsprogs"}[kind], "mkfs."+kind)
	if !apart(t) {
		return
	}
	v := newVolume(t, memoryDir(t), kind, size, options...)
	s := newStorm(t, volumeTerms(), v.place, "")
	s.rage(countFrom(t, "W2_CUTS", cycles), v.powerCut)
	figure(t, "power cut, %s: %v", kind, s)

	v = newVolume(t, memoryDir(t), kind, size, options...)
	s = newStorm(t, volumeTerms(), v.place, unsynced(t))
	s.catch(v.powerCut, lost, granted)
	figure(t, "control, %s without sync: %s", kind, s.caught())
}

// TestFaultsW2_PowerCutExt4 cuts the power under load on ext4 (W2, Q2, S7).
func TestFaultsW2_PowerCutExt4(t *testing.T) { losePower(t, "ext4", 500, "256M", "-q", "-F") }

// TestFaultsW2_PowerCutXFS is the same on XFS.
func TestFaultsW2_PowerCutXFS(t *testing.T) { losePower(t, "xfs", 300, "512M", "-q", "-f") }
