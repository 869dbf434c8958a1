//go:build faults

package faults

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
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
	ledger *fleetLedger
	seed   uint64
	stop   chan struct{}
	over   atomic.Bool
	done   sync.WaitGroup

	faults   int
	silences []time.Duration // from a fault to the first write after it
}

// newCampaign starts a cluster, signs accounts up at its nodes and begins to load it.
func newCampaign(t *testing.T, program string, s *street) *campaign {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	g := &campaign{t: t, rig: newRig(t, program, s), ledger: newFleetLedger(), seed: seed, stop: make(chan struct{})}
	for _, institution := range engine.DefaultCatalogue().Institutions() {
		if institution.Active && institution.Type != engine.Official && len(g.ledger.series) < siegeWriters+2*len(g.rig.peers) {
			g.ledger.series = append(g.ledger.series, &series{institution: institution.ID})
		}
	}
	for i := range busyHolders + dayHolders {
		day, minute := farAway, busyMinute
		if i >= busyHolders {
			day, minute = dayLimit, clusterMinute
		}
		c := newCaller(g.rig.from(i))
		err := g.ledger.enrol(c, g.rig.peers[i%3], g.rig.peers[(i+1)%3], day, minute)
		c.close()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range g.ledger.series {
		if _, got := g.ledger.set(g.rig.peers[0], one); !got.good() {
			t.Fatal(got.trouble("set the first rate", nil))
		}
	}
	if !g.rig.level() {
		t.Fatal("the nodes do not come to the same record")
	}
	g.load()
	return g
}

// from is the address from which the n-th of a crowd calls: on a street, where callers have one address, the usual one.
func (r *rig) from(n int) string {
	if r.street != nil {
		return ""
	}
	return addressOf(n)
}

// load starts all who ask; they go on through every fault until finish.
func (g *campaign) load() {
	g.t.Cleanup(g.quiet)
	worker := uint64(0)
	begin := func(count int, pause time.Duration, each func(w *soldier)) {
		for range count {
			worker++
			w := &soldier{campaign: g, number: int(worker), chance: rand.New(rand.NewPCG(g.seed, worker)), seen: map[*peer]*glance{}, c: newCaller("")}
			g.done.Go(func() {
				defer w.c.close()
				for w.rest(pause) {
					each(w)
				}
			})
		}
	}
	begin(siegeReaders, readerPause, (*soldier).read)
	begin(siegeWriters, writerPause, (*soldier).write)
	begin(siegeSmiths, smithPause, (*soldier).forge)
	begin(1, 500*time.Millisecond, (*soldier).govern)
	begin(1, 5*time.Second, (*soldier).besieged)
}

// quiet ends the load and waits for it.
func (g *campaign) quiet() {
	if !g.over.Swap(true) {
		close(g.stop)
	}
	g.done.Wait()
}

// finish ends the load, brings every node up and looks at everything.
func (g *campaign) finish() {
	g.t.Helper()
	g.quiet()
	g.rig.startAll()
	g.ledger.settle(g.rig)
	g.ledger.report(g.t)
	l := g.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	done := []string{"rates", "reads", "keyed reads", "keys"}
	if g.faults >= longCampaign {
		done = append(done, "revocations", "limits", "codes", "sessions")
	}
	for _, what := range done {
		if c := l.counts[what]; c == nil || c[acknowledged] == 0 {
			g.t.Errorf("no %s were ever acknowledged", what)
		}
	}
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

// soldier is one caller of a campaign.
type soldier struct {
	*campaign
	number int
	c      *caller
	chance *rand.Rand

	mu   sync.Mutex // of seen, while it asks several nodes at once
	seen map[*peer]*glance
}

// rest waits about so long; false when the load is to end.
func (w *soldier) rest(about time.Duration) bool {
	timer := time.NewTimer(about/2 + time.Duration(w.chance.Int64N(int64(about))))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-w.stop:
		return false
	}
}

// some is any node that is up, nil when there is none.
func (w *soldier) some() *peer {
	from := w.chance.IntN(len(w.rig.peers))
	for i := range w.rig.peers {
		if p := w.rig.peers[(from+i)%len(w.rig.peers)]; p.alive() {
			return p
		}
	}
	return nil
}

// read asks a node for a rate, mostly with a key, now and then with one that was revoked.
func (w *soldier) read() {
	p := w.some()
	if p == nil {
		return
	}
	if w.chance.IntN(8) == 0 {
		w.ask(p, nil, nil)
		return
	}
	h := w.ledger.holders[w.chance.IntN(len(w.ledger.holders))]
	w.ledger.mu.Lock()
	good, _, gone := h.pick(w.chance)
	w.ledger.mu.Unlock()
	if good == nil || gone != nil && w.chance.IntN(20) == 0 {
		good = gone
	}
	w.ask(p, h, good)
}

// ask asks a node for any rate, with a key or, if that is nil, without.
func (w *soldier) ask(p *peer, h *holder, k *heldKey) {
	w.mu.Lock()
	if w.seen[p] == nil {
		w.seen[p] = &glance{values: map[*series][]int{}}
	}
	r := request{by: h, key: k, want: w.ledger.series[w.chance.IntN(len(w.ledger.series))], at: p, seen: w.seen[p]}
	w.mu.Unlock()
	w.ledger.ask(w.c, r)
}

// write sets the next rate of an own series at any node.
func (w *soldier) write() {
	if p := w.some(); p != nil {
		w.ledger.set(p, w.ledger.series[w.number%siegeWriters])
	}
}

// forge makes keys, now and then on all nodes at once, and revokes some.
func (w *soldier) forge() {
	p, h := w.some(), w.ledger.holders[w.chance.IntN(len(w.ledger.holders))]
	if p == nil {
		return
	}
	w.ledger.mu.Lock()
	good, loose, _ := h.pick(w.chance)
	w.ledger.mu.Unlock()
	switch dice := w.chance.IntN(4); {
	case dice == 0:
		rush(w.up(), func(p *peer) { w.ledger.newKey(w.c, p, h) })
	case dice == 1 || good == nil && loose == nil:
		w.ledger.newKey(w.c, p, h)
		w.ledger.adopt(w.c, p, h)
	case loose != nil:
		w.ledger.endKey(w.c, p, h, loose)
	default:
		w.ledger.endKey(w.c, p, h, good)
		rush(w.up(), func(p *peer) { w.ask(p, h, good) }) // how long is it good for elsewhere?
	}
}

// up are all nodes that are.
func (w *soldier) up() (peers []*peer) {
	for _, p := range w.rig.peers {
		if p.alive() {
			peers = append(peers, p)
		}
	}
	return peers
}

// govern lifts limits of the day, and renews sessions before they end.
func (w *soldier) govern() {
	p := w.some()
	if p == nil {
		return
	}
	h := w.ledger.holders[busyHolders+w.chance.IntN(dayHolders)]
	if w.chance.IntN(20) == 0 {
		w.ledger.raise(p, h, dayLimit)
	}
	for _, h := range w.ledger.holders {
		if time.Since(h.signed) > signedMax {
			_ = w.ledger.signIn(w.c, p, h) // a node may be away: soon again
		}
	}
}

// besieged asks one node for a code and tries it at all nodes at once: it opens one session, whatever happens meanwhile (K2).
func (w *soldier) besieged() {
	p := w.some()
	if p == nil {
		return
	}
	w.ledger.mu.Lock()
	w.ledger.trials++
	number := w.ledger.trials
	w.ledger.mu.Unlock()
	email := fmt.Sprintf("trial-%d-%d@example.com", w.seed%1000, number)
	c := newCaller(w.rig.from(1000 + 5*number))
	defer c.close()
	code, got, err := p.askCode(c, email)
	w.ledger.mu.Lock()
	w.ledger.came("codes", p, &got, err)
	w.ledger.mu.Unlock()
	if code == "" {
		return
	}
	var opened atomic.Int32
	rush(slices.Concat(w.up(), w.up()), func(p *peer) {
		token, got, err := p.openSession(c, email, code)
		w.ledger.mu.Lock()
		defer w.ledger.mu.Unlock()
		if w.ledger.came("sessions", p, &got, err); token != "" && opened.Add(1) == 2 {
			w.ledger.wrong(accepted, "a code of %s opened two sessions", email)
		}
	})
}
