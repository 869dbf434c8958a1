//go:build faults

package faults

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/apitest"
)

const (
	stormWorkers = 8
	stormTenants = 64
	stormBusy    = 8 // tenants with half of the requests: they come to their limits on a slow machine too
	stormQuotes  = 16
	// signedMax is when sessions are renewed, which end after a quarter of an hour: on a slow machine.
	signedMax = 8 * time.Minute
	// loadSpan is the longest time of load in a cycle: the crash comes at a random moment of it.
	loadSpan = 60 * time.Millisecond
	// stopSpan is about what a stop in order takes.
	stopSpan = 20 * time.Millisecond
	// Of a hundred things that a worker does, so many change keys and ask with a revoked one.
	changesPercent, barredPercent = 10, 5
)

// storm is a node under load, with its ledger: it is crashed again and again, and looked at after each start.
type storm struct {
	t       *testing.T
	ledger  *ledger
	office  *postOffice
	program string    // "" = as users build it
	dir     string    // of the data
	socket  string    // of the management: beside the data, because not every file system holds one
	auditor string    // key that is not in the ledger
	signed  time.Time // since when everybody has a session
	seed    uint64
	cycles  int
	early   int  // crashes before the node answered
	stops   int  // crashes after it had ended in order
	vague   int  // starts that found an ambiguous tail
	refused bool // the node refused its own log: see catch
	callers [stormWorkers]*caller
}

// newStorm prepares a data directory in a place and signs everybody up.
func newStorm(t *testing.T, x terms, place, program string) *storm {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	s := &storm{
		t: t, ledger: newLedger(x), office: newPostOffice(t), program: program, seed: seed,
		dir: filepath.Join(place, "data"), socket: filepath.Join(t.TempDir(), "admin.sock"),
	}
	s.auditor = prepare(t, s.dir, 1, apitest.KeysRequired())[0]
	for i := range s.callers {
		s.callers[i] = newCaller("")
		t.Cleanup(s.callers[i].close)
	}
	for _, institution := range engine.DefaultCatalogue().Institutions() {
		if institution.Active && institution.Type != engine.Official && len(s.ledger.quotes) < stormQuotes {
			s.ledger.quotes = append(s.ledger.quotes, &quote{institution: institution.ID})
		}
	}
	n := s.launch().ready()
	admin := n.admin()
	defer admin.close()
	if err := auditorOf(admin); err != nil {
		t.Fatal(err)
	}
	s.sign(n, func(from, to int) error { return s.ledger.enrol(s.office, n.url, from, to) })
	n.stop()
	s.settle()
	return s
}

// settle brings what was prepared to the disk: from here on only what the node syncs is safe.
func (s *storm) settle() {
	s.t.Helper()
	dir, err := os.Open(s.dir)
	if err == nil {
		err = errors.Join(unix.Syncfs(int(dir.Fd())), dir.Close())
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// sign does something with all tenants, some at a time, that gives them sessions.
func (s *storm) sign(n *node, each func(from, to int) error) {
	s.t.Helper()
	const part = stormTenants / stormWorkers
	failed := make([]error, stormWorkers)
	var done sync.WaitGroup
	for worker := range stormWorkers {
		done.Go(func() { failed[worker] = each(worker*part, (worker+1)*part) })
	}
	done.Wait()
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

// crash is how a node ends in a cycle: it must be over when that returns, and the data directory as it is after the crash.
type crash func(n *node)

// kill is a crash of the process alone.
func kill(n *node) { n.kill() }

// begin starts the node, waits until it answers, and holds the ledger against it.
func (s *storm) begin(whole bool) *node {
	s.t.Helper()
	n := s.launch().ready()
	s.check(n, whole)
	return n
}

// check holds the ledger against a node that has just started.
func (s *storm) check(n *node, whole bool) {
	s.t.Helper()
	if time.Since(s.signed) > signedMax {
		s.sign(n, func(from, to int) error { return s.ledger.renew(s.office, n.url, from, to) })
	}
	admin := n.admin()
	defer admin.close()
	s.ledger.check(s.callers[0], admin, n.url, s.auditor, scope{whole, s.chance(-1)})
}

// chance is the source of a worker in this cycle.
func (s *storm) chance(worker int) *rand.Rand {
	return rand.New(rand.NewPCG(s.seed, uint64(s.cycles)*64+uint64(worker+1)))
}

// cycle starts the node, checks, loads it, and crashes it at a random moment: one in eight times before it answers, as often while
// it stops in order, or after that.
func (s *storm) cycle(end crash) {
	s.t.Helper()
	s.cycles++
	chance := s.chance(stormWorkers)
	if chance.IntN(8) == 0 {
		s.early++
		n := s.launch()
		wait(time.Duration(chance.Int64N(int64(loadSpan))))
		end(n)
		return
	}
	n := s.begin(false)
	s.load(n, time.Duration(chance.Int64N(int64(loadSpan))), end)
}

// load has everybody ask for a while, and crashes the node meanwhile.
func (s *storm) load(n *node, span time.Duration, end crash) {
	var over atomic.Bool
	var done sync.WaitGroup
	for number := range stormWorkers {
		w := &worker{storm: s, number: number, c: s.callers[number], node: n, chance: s.chance(number), over: &over}
		done.Go(w.run)
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
			wait(time.Duration(chance.Int64N(int64(stopSpan))))
		}
	}
	end(n)
	over.Store(true)
	done.Wait()
	if _, found := n.seen("the mark of the log is old"); found {
		s.vague++
	}
	for _, c := range s.callers {
		c.close()
	}
}

// operate publishes rates and suspends accounts, one after the other, until the node is gone.
func (s *storm) operate(n *node, over *atomic.Bool) {
	admin, chance := n.admin(), s.chance(2*stormWorkers)
	defer admin.close()
	for !over.Load() && !n.over() {
		if chance.IntN(4) == 0 {
			s.ledger.suspend(admin, s.ledger.tenants[8*chance.IntN(len(s.ledger.tenants)/8)])
		} else {
			s.ledger.publish(admin, s.ledger.quotes[chance.IntN(len(s.ledger.quotes))])
		}
	}
}

// finish starts the node a last time, holds everything against it, and stops it in order.
func (s *storm) finish() {
	s.t.Helper()
	s.begin(true).stop()
	s.ledger.minutes()
}

// String is what a figure says of it.
func (s *storm) String() string {
	total := s.ledger.total()
	return fmt.Sprintf("%d crashes, %d of them before the first answer, %d after a stop in order: %v; %d accounts at their limit of the day; %d torn tails, %d ambiguous ones",
		s.cycles, s.early, s.stops, &total, s.reached(), s.torn(), s.vague)
}

// reached is how many accounts have used up their day.
func (s *storm) reached() int {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	count := 0
	for _, tn := range s.ledger.tenants {
		if tn.base >= s.ledger.terms.day {
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

// worker is one client. It changes the keys of its own tenants, and asks with those of all.
type worker struct {
	*storm
	number int
	c      *caller
	node   *node
	chance *rand.Rand
	over   *atomic.Bool
	made   int
}

// run asks until the node is gone.
func (w *worker) run() {
	for !w.over.Load() && !w.node.over() {
		tn := w.ledger.tenants[w.chance.IntN(len(w.ledger.tenants))]
		if w.chance.IntN(2) == 0 {
			tn = w.ledger.tenants[w.chance.IntN(stormBusy)]
		}
		switch dice := w.chance.IntN(100); {
		case dice < changesPercent:
			w.change()
		case dice < changesPercent+barredPercent:
			w.ask(tn, true)
		default:
			w.ask(tn, false)
		}
	}
}

// change creates or revokes a key of an own tenant. Now and then it asks for a third one.
func (w *worker) change() {
	each := len(w.ledger.tenants) / stormWorkers
	tn := w.ledger.tenants[w.number*each+w.chance.IntN(each)]
	w.ledger.mu.Lock()
	var active []*ledgerKey
	for _, key := range tn.keys {
		if !key.revoked && !key.asked {
			active = append(active, key)
		}
	}
	w.ledger.mu.Unlock()
	if len(active) < 2 && (len(active) == 0 || w.chance.IntN(3) > 0) || w.chance.IntN(10) == 0 {
		w.made++
		w.ledger.newKey(w.c, w.node.url, tn, fmt.Sprintf("c%d-w%d-%d", w.cycles, w.number, w.made))
		return
	}
	w.ledger.endKey(w.c, w.node.url, tn, active[w.chance.IntN(len(active))])
}

// ask asks for a rate with a key of an account, an active or a revoked one; without such a key it does nothing.
func (w *worker) ask(tn *tenant, revoked bool) {
	q := w.ledger.quotes[w.chance.IntN(len(w.ledger.quotes))]
	w.ledger.mu.Lock()
	key := tn.pick(w.chance, revoked)
	w.ledger.mu.Unlock()
	if key == nil {
		return
	}
	k := w.ledger.ask(tn, key, q)
	got, err := w.c.do(http.MethodGet, w.node.url+"/v1/rates?currency=USD&institution="+q.institution, key.secret, nil)
	w.ledger.told(k, &got, err)
}

// pick is a key with a secret: any active one, nearly always one of the newest, or some revoked one; nil when none is found.
func (tn *tenant) pick(chance *rand.Rand, revoked bool) *ledgerKey {
	from := chance.IntN(len(tn.keys))
	if !revoked {
		from = len(tn.keys) - 1 - chance.IntN(2)
	}
	for i := range tn.keys {
		key := tn.keys[(from-i+2*len(tn.keys))%len(tn.keys)]
		if key.secret != "" && key.revoked == revoked && (revoked || !key.asked) {
			return key
		}
	}
	return nil
}
