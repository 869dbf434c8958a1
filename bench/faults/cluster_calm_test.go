//go:build faults

package faults

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// visibleMax is how soon what one node has acknowledged is on all nodes, while nothing is broken.
const visibleMax = time.Second

// shown waits until a node says so, and returns how long that took from a moment on.
func (l *fleetLedger) shown(p *peer, what string, since time.Duration, is func() bool) time.Duration {
	if !soon(healMax, is) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.wrong(lost, "%s is not on node %d after %v", what, p.number, healMax)
	}
	return l.now() - since
}

// value is the number of a series that a node shows.
func (p *peer) value(c *caller, s *series) int {
	got, err := c.do(http.MethodGet, p.url+"/v1/rates?currency=USD&institution="+s.institution, "", nil)
	var shown page
	if err != nil || got.into(&shown) != nil || len(shown.Data) != 1 {
		return 0
	}
	number, _ := numberOf(shown.Data[0].Buy)
	return number
}

// knows reports whether a key is good at a node.
func (p *peer) knows(c *caller, secret string) bool {
	got, err := c.do(http.MethodGet, p.url+"/v1/account/usage", secret, nil)
	return err == nil && got.status == http.StatusOK
}

// TestFaultsCluster_Visible measures how soon all nodes show what one of them has acknowledged, while all are up: rates, new keys, and
// that a key is revoked.
func TestFaultsCluster_Visible(t *testing.T) {
	g := newCampaign(t, program(t), nil)
	g.quiet()
	c, l := newCaller(""), g.ledger
	defer c.close()
	h := l.holders[0]
	for _, k := range h.keys {
		if k.outcome == acknowledged && k.revoked == nil {
			l.endKey(c, g.rig.peers[0], h, k)
		}
	}
	var mu sync.Mutex
	took := map[string][]time.Duration{}
	everywhere := func(what string, since time.Duration, is func(p *peer) bool) {
		rush(g.rig.peers, func(p *peer) {
			span := l.shown(p, what, since, func() bool { return is(p) })
			mu.Lock()
			defer mu.Unlock()
			took[what] = append(took[what], span)
		})
	}
	for i := range countFrom(t, "CLUSTER_SIGHTS", 30) {
		p := g.rig.peers[i%3]
		number, got := l.set(p, l.series[i%len(l.series)])
		if !got.good() {
			t.Fatal(got.trouble("set a rate", nil))
		}
		everywhere("a rate", l.now(), func(p *peer) bool { return p.value(c, l.series[i%len(l.series)]) == number })
		l.newKey(c, p, h)
		k := h.keys[len(h.keys)-1]
		everywhere("a key", l.now(), func(p *peer) bool { return p.knows(c, k.secret) })
		l.endKey(c, p, h, k)
		everywhere("a revocation", l.now(), func(p *peer) bool { return !p.knows(c, k.secret) })
	}
	g.rig.startAll()
	l.settle(g.rig)
	l.report(t)
	for _, what := range []string{"a rate", "a key", "a revocation"} {
		if most := slices.Max(took[what]); most > visibleMax {
			t.Errorf("%s was on all nodes after %v, want %v", what, most, visibleMax)
		}
		figure(t, "%s is on every node after %s (%d looks, each at least a request of its own)", what, quantiles(took[what]), len(took[what]))
	}
}

// TestFaultsCluster_OneRule tries to break on three nodes at once what is promised of all together: one session for a code, five tries for it,
// two active keys, and the limits of the day and the minute to the last request (L1, L2, K2, K5).
func TestFaultsCluster_OneRule(t *testing.T) {
	t.Parallel()
	g := newCampaign(t, program(t), nil)
	g.quiet()
	rounds := countFrom(t, "CLUSTER_ROUNDS", 15)
	for round := range rounds {
		g.crackCode(round)
		g.crackKeys(round)
	}
	g.crackLimits(75 * time.Second) // more than a minute: what is void by then is given out again
	g.ledger.settle(g.rig)
	g.ledger.report(t)
	figure(t, "%d rounds in which three nodes are asked at once: %v", rounds, g.ledger)
}

// crackCode spreads wrong tries over all nodes at once and then offers the right code; every other round the right one alone, everywhere at
// once. At least five wrong tries leave it void (K2).
func (g *campaign) crackCode(round int) {
	g.t.Helper()
	p, email := g.rig.peers[round%3], fmt.Sprintf("cracked-%d@example.com", round)
	c := newCaller(g.rig.from(100 + 5*round))
	defer c.close()
	code, got, err := p.askCode(c, email)
	if code == "" {
		g.t.Fatal(got.trouble("ask a code", err))
	}
	if !g.rig.level() { // a node that has not heard of the code yet does not count tries of it
		g.t.Fatal("the nodes do not come to the same record")
	}
	var refusedTries, opened atomic.Int32
	if round%2 == 0 {
		rush(slices.Concat(g.rig.peers, g.rig.peers), func(p *peer) {
			if _, got, err := p.openSession(c, email, wrongOf(code)); err == nil && got.status == http.StatusUnauthorized {
				refusedTries.Add(1)
			}
		})
	}
	rush(slices.Concat(g.rig.peers, g.rig.peers), func(p *peer) {
		token, got, err := p.openSession(c, email, code)
		g.ledger.mu.Lock()
		defer g.ledger.mu.Unlock()
		if g.ledger.came("sessions", p, &got, err); token != "" {
			opened.Add(1)
		}
	})
	g.ledger.mu.Lock()
	defer g.ledger.mu.Unlock()
	g.ledger.trials++
	switch sessions := opened.Load(); {
	case sessions > 1:
		g.ledger.wrong(accepted, "a code of %s opened %d sessions", email, sessions)
	case sessions == 1 && refusedTries.Load() >= 5:
		g.ledger.wrong(accepted, "a code of %s opened a session after %d wrong tries", email, refusedTries.Load())
	case sessions == 0 && round%2 == 1:
		g.ledger.wrong(lost, "the code of %s opened no session", email)
	}
}

// wrongOf is another code.
func wrongOf(code string) string {
	last := code[len(code)-1]
	return code[:len(code)-1] + string('0'+(last-'0'+1)%10)
}

// crackKeys asks all nodes for keys of one account at once, twice each, and revokes what it got.
func (g *campaign) crackKeys(round int) {
	c, h := newCaller(""), g.ledger.holders[round%len(g.ledger.holders)]
	defer c.close()
	for _, k := range slices.Clone(h.keys) {
		if k.outcome == acknowledged && k.revoked == nil {
			g.ledger.endKey(c, g.rig.peers[round%3], h, k)
		}
	}
	g.rig.level()
	rush(slices.Concat(g.rig.peers, g.rig.peers), func(p *peer) { g.ledger.newKey(c, p, h) })
	got := 0
	for _, k := range h.keys {
		if k.outcome == acknowledged && k.revoked == nil {
			got++
		}
	}
	if got != 2 {
		g.ledger.mu.Lock()
		defer g.ledger.mu.Unlock()
		g.ledger.wrong(accepted, "six wishes at three nodes gave %s %d keys, want 2", h.email, got)
	}
}

// crackLimits asks all nodes with keys of all accounts, as fast as they answer, until nearly every request is refused.
func (g *campaign) crackLimits(span time.Duration) {
	end := g.ledger.now() + span
	w := &soldier{campaign: g, chance: g.chance(), seen: map[*peer]*glance{}, c: newCaller("")}
	defer w.c.close()
	for g.ledger.now() < end {
		for _, h := range g.ledger.holders {
			g.ledger.mu.Lock()
			good, _, _ := h.pick(w.chance)
			g.ledger.mu.Unlock()
			rush(g.rig.peers, func(p *peer) { w.ask(p, h, good) })
		}
		wait(readerPause)
	}
	g.ledger.mu.Lock()
	defer g.ledger.mu.Unlock()
	for i, h := range g.ledger.holders {
		if i < busyHolders && len(h.stays) < h.minute/2 || i >= busyHolders && len(h.stays) < h.day/2 {
			g.ledger.wrong(forfeited, "%s was admitted %d times only", h.email, len(h.stays))
		}
	}
}
