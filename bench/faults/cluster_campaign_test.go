//go:build faults

package faults

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	siegeReaders = 6
	siegeWriters = 4 // of rates, each with a series of its own
	siegeSmiths  = 2 // who make and revoke keys
	// busyHolders have the limit of a minute that is always reached; the others that of a day, which is lifted again and again.
	busyHolders, dayHolders = 2, 2
	busyMinute, dayLimit    = 15, 40
	farAway                 = 1_000_000 // a limit of the day that is not reached
	// longCampaign is how many faults leave time for everything, also what is done every few seconds.
	longCampaign = 20
	// readerPause and writerPause keep the load small: faults are what these tests are about, and nodes share a machine.
	readerPause, writerPause, smithPause = 40 * time.Millisecond, 150 * time.Millisecond, 400 * time.Millisecond
)

// campaign is a cluster under load, with its ledger, while its nodes are killed or cut off.
type campaign struct {
	t      *testing.T
	rig    *rig
	ledger *ledger
	seed   uint64
	stop   chan struct{}
	over   atomic.Bool
	done   sync.WaitGroup

	faults   int
	special  int // of these, of the kind that specials says
	specials string
	silences []time.Duration // from a fault to the first write after it
	parted   parted
}

// newCampaign starts a cluster, signs accounts up at its nodes and begins to load it.
func newCampaign(t *testing.T, program string, s *street) *campaign {
	t.Helper()
	g := &campaign{t: t, rig: newRig(t, program, s), ledger: newLedger(terms{}), seed: newSeed(t), stop: make(chan struct{})}
	g.ledger.publishing(siegeWriters + 2*len(g.rig.peers))
	for i := range busyHolders + dayHolders {
		day, minute := farAway, busyMinute
		if i >= busyHolders {
			day, minute = dayLimit, clusterMinute
		}
		g.enrol(i, g.ledger.newAccount(fmt.Sprintf("holder-%d@example.com", i), day, minute))
	}
	for _, one := range g.ledger.series {
		if _, got := g.ledger.set(g.at(0), one); !got.good() {
			t.Fatal(got.trouble("set the first rate", nil))
		}
	}
	if !g.rig.level() {
		t.Fatal("the nodes do not come to the same record")
	}
	g.load()
	return g
}

// at is a node as callers see it.
func (g *campaign) at(index int) *member { return &g.rig.peers[index%len(g.rig.peers)].member }

// enrol signs an account up at one node and sets its limits through another one.
func (g *campaign) enrol(number int, a *ledgerAccount) {
	g.t.Helper()
	c := newCaller(g.rig.from(number))
	defer c.close()
	noError(g.t, g.ledger.signIn(g.rig.office, c, g.at(number), a))
	var got answer
	var err error
	if !soon(healMax, func() bool { // the other node may not know the account yet
		got, err = g.ledger.limit(g.at(number+1), a, a.day)
		return err == nil && got.good()
	}) {
		g.t.Fatal(got.trouble("limit "+a.email, err))
	}
}

// from is the address from which the n-th of a crowd calls: on a street, where callers have one address, the usual one.
func (r *rig) from(n int) string {
	if r.street != nil {
		return ""
	}
	return addressOf(n)
}

// load starts all clients; they go on through every fault until finish.
func (g *campaign) load() {
	g.t.Cleanup(g.quiet)
	number := uint64(0)
	begin := func(count int, pause time.Duration, each func(w *client)) {
		for range count {
			number++
			w := g.client(number)
			g.done.Go(func() {
				defer w.c.close()
				for g.rest(w, pause) {
					each(w)
				}
			})
		}
	}
	begin(siegeReaders, readerPause, func(w *client) { w.read(w.own[w.chance.IntN(len(w.own))], 5, 12) })
	for writer := range siegeWriters {
		begin(1, writerPause, func(w *client) {
			if m := w.some(); m != nil {
				w.set(m, w.series[writer])
			}
		})
	}
	begin(siegeSmiths, smithPause, (*client).forge)
	begin(1, 500*time.Millisecond, g.govern)
	begin(1, 5*time.Second, g.besieged)
}

// quiet ends the load and waits for it.
func (g *campaign) quiet() {
	if !g.over.Swap(true) {
		close(g.stop)
	}
	g.done.Wait()
}

// conclude ends the load, brings every node up and looks at everything.
func (g *campaign) conclude() {
	g.t.Helper()
	g.quiet()
	g.rig.startAll()
	g.settle()
	g.ledger.report(g.t)
}

// finish is conclude after faults under load, which must have been one.
func (g *campaign) finish() {
	g.t.Helper()
	g.conclude()
	done := []string{"rates", "reads", "keyed reads", "keys"}
	if g.faults >= longCampaign {
		done = append(done, "revocations", "limits", "codes", "sessions")
	}
	for _, what := range done {
		if g.ledger.count(what, acknowledged) == 0 {
			g.t.Errorf("no %s were ever acknowledged", what)
		}
	}
}

// settle is the check at the end: all faults are over, all nodes are up, and nothing is written any more.
func (g *campaign) settle() {
	g.t.Helper()
	l := g.ledger
	note := func(kind breach, what any) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.wrong(kind, "%v", what)
	}
	if !g.rig.level() {
		note(strange, "the nodes do not come to the same record")
		return
	}
	for i, a := range l.accounts {
		if time.Since(a.signed) < signedMax {
			continue
		}
		c := newCaller(g.rig.from(500 + i))
		var err error
		if !soon(90*time.Second, func() bool { err = l.signIn(g.rig.office, c, g.at(i), a); return err == nil }) {
			note(lost, err)
		}
		c.close()
	}
	g.rig.level() // so that all nodes know the sessions
	l.whole(g.rig.members()...)
}

// written waits until a write was acknowledged that was sent after a moment, and notes how long that took from the fault on.
func (g *campaign) written(fault time.Duration) {
	g.t.Helper()
	first := time.Duration(0)
	if !soon(healMax, func() (is bool) { first, is = g.ledger.writtenAfter(fault); return is }) {
		g.t.Errorf("nothing was written for %v after fault %d", healMax, g.faults)
		return
	}
	g.silences = append(g.silences, first-fault)
}

// chance is the source of whoever makes the faults.
func (g *campaign) chance() *rand.Rand { return rand.New(rand.NewPCG(g.seed, 1<<32+uint64(g.faults))) }

// quantiles are the middle, the 99th hundredth and the end of some spans, in a form for figures.
func quantiles(spans []time.Duration) string {
	if len(spans) == 0 {
		return "none"
	}
	sorted := slices.Sorted(slices.Values(spans))
	at := func(part int) float64 { return sorted[min(len(sorted)-1, len(sorted)*part/100)].Seconds() }
	return fmt.Sprintf("p50 %.3f s, p99 %.3f s, max %.3f s", at(50), at(99), at(100))
}

// countFrom is a count that the environment may set.
func countFrom(t *testing.T, variable string, usual int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	count, err := strconv.Atoi(text)
	if err != nil || count < 1 {
		t.Fatalf("%s is %q: want a number from 1 on", variable, text)
	}
	return count
}

// client is one caller of this campaign.
func (g *campaign) client(number uint64) *client {
	chance := rand.New(rand.NewPCG(g.seed, number))
	up := func() (members []*member) {
		for _, i := range chance.Perm(len(g.rig.peers)) {
			if g.rig.peers[i].alive() {
				members = append(members, g.at(i))
			}
		}
		return members
	}
	return newClient(g.ledger, newCaller(""), chance, up, g.ledger.accounts)
}

// rest waits about so long; false when the load is to end.
func (g *campaign) rest(w *client, about time.Duration) bool {
	timer := time.NewTimer(about/2 + upTo(w.chance, about))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-g.stop:
		return false
	}
}

// govern lifts limits of the day, and renews sessions before they end.
func (g *campaign) govern(w *client) {
	m, a := w.some(), w.own[w.chance.IntN(len(w.own))]
	if m == nil {
		return
	}
	if w.chance.IntN(10) == 0 && a.minute == clusterMinute {
		_, _ = w.limit(m, a, a.day+dayLimit) // the ledger has noted it
	}
	for _, a := range w.own {
		if time.Since(a.signed) > signedMax {
			_ = w.signIn(g.rig.office, w.c, m, a) // a node may be away: soon again
		}
	}
}

// besieged asks one node for a code and tries it at all nodes at once: it opens one session, whatever happens meanwhile (K2).
func (g *campaign) besieged(w *client) {
	members := w.up()
	if len(members) > 0 {
		w.mu.Lock()
		number := w.trials
		w.mu.Unlock()
		g.crack(fmt.Sprintf("trial-%d-%d@example.com", g.seed%1000, number), 1000+5*number, members, 0, false)
	}
}

// crack asks one node for a code, and then tries wrong codes and the right one at all of them at once, twice at each.
func (g *campaign) crack(email string, from int, members []*member, wrong int, calm bool) {
	l, c := g.ledger, newCaller(g.rig.from(from))
	defer c.close()
	code, got, err := g.rig.office.askCode(c, members[0].url, email)
	l.mu.Lock()
	l.trials++
	l.came("codes", members[0], &got, err)
	l.mu.Unlock()
	if code == "" || calm && !g.rig.level() { // a node that has not heard of the code yet does not count tries of it
		if calm {
			g.t.Error(got.trouble("ask a code", err))
		}
		return
	}
	twice := slices.Concat(members, members)
	var tried, opened atomic.Int32
	rush(twice[:min(wrong, len(twice))], func(m *member) {
		if _, got, err := openSession(c, m.url, email, wrongOf(code)); err == nil && got.status == http.StatusUnauthorized {
			tried.Add(1)
		}
	})
	rush(twice, func(m *member) {
		token, got, err := openSession(c, m.url, email, code)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.came("sessions", m, &got, err); token != "" {
			opened.Add(1)
		}
	})
	l.opened(email, int(opened.Load()), int(tried.Load()), calm && wrong == 0)
}

// wrongOf is another code.
func wrongOf(code string) string {
	last := code[len(code)-1]
	return code[:len(code)-1] + string('0'+(last-'0'+1)%10)
}
