//go:build faults

package faults

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// visibleMax is how soon what one node has acknowledged is on all nodes, while nothing is broken.
const visibleMax = time.Second

// value is the number of a series that a node shows.
func (m *member) value(c *caller, s *series) int {
	got, err := c.do(http.MethodGet, m.url+"/v1/rates?currency=USD&institution="+s.institution, "", nil)
	var shown page
	if err != nil || got.into(&shown) != nil || len(shown.Data) != 1 {
		return 0
	}
	number, _ := numberOf(shown.Data[0].Buy)
	return number
}

// knows reports whether a key is good at a node.
func (m *member) knows(c *caller, secret string) bool {
	got, err := c.do(http.MethodGet, m.url+"/v1/account/usage", secret, nil)
	return err == nil && got.status == http.StatusOK
}

// TestFaultsCluster_Visible measures how soon all nodes show what one of them has acknowledged, while all are up: rates, new keys, and
// that a key is revoked.
func TestFaultsCluster_Visible(t *testing.T) {
	g := newCampaign(t, program(t), nil)
	g.quiet()
	c, l := newCaller(""), g.ledger
	defer c.close()
	a := l.accounts[0]
	g.endKeys(c, g.at(0), a)
	var mu sync.Mutex
	took := map[string][]time.Duration{}
	everywhere := func(what string, is func(m *member) bool) {
		since := l.now()
		rush(g.rig.members(), func(m *member) {
			if !soon(healMax, func() bool { return is(m) }) {
				t.Errorf("%s is not on node %d after %v", what, m.number, healMax)
			}
			mu.Lock()
			defer mu.Unlock()
			took[what] = append(took[what], l.now()-since)
		})
	}
	for i := range countFrom(t, "CLUSTER_SIGHTS", 30) {
		m, s := g.at(i), l.series[i%len(l.series)]
		number, got := l.set(m, s)
		if !got.good() {
			t.Fatal(got.trouble("set a rate", nil))
		}
		everywhere("a rate", func(m *member) bool { return m.value(c, s) == number })
		k, _ := l.newKey(c, m, a)
		everywhere("a key", func(m *member) bool { return m.knows(c, k.secret) })
		l.endKey(c, m, a, k)
		everywhere("a revocation", func(m *member) bool { return !m.knows(c, k.secret) })
	}
	g.conclude()
	for what, spans := range took {
		if most := slices.Max(spans); most > visibleMax {
			t.Errorf("%s was on all nodes after %v, want %v", what, most, visibleMax)
		}
		figure(t, "%s is on every node after %s (%d looks, each at least a request of its own)", what, quantiles(spans), len(spans))
	}
}

// endKeys revokes the keys that an account surely has.
func (g *campaign) endKeys(c *caller, m *member, a *account) {
	for _, k := range g.ledger.active(a) {
		g.ledger.endKey(c, m, a, k)
	}
}

// TestFaultsCluster_OneRule tries to break on three nodes at once what is promised of all together: one session for a code, five tries for it,
// two active keys, and the limits of the day and the minute to the last request (L1, L2, K2, K5).
func TestFaultsCluster_OneRule(t *testing.T) {
	t.Parallel()
	g := newCampaign(t, program(t), nil)
	g.quiet()
	rounds := max(countFrom(t, "CLUSTER_ROUNDS", 15), len(g.ledger.accounts)) // each of which needs keys
	for round := range rounds {
		// Every other round the right code alone; at least five wrong tries leave it void (K2).
		members := []*member{g.at(round), g.at(round + 1), g.at(round + 2)}
		g.crack(fmt.Sprintf("cracked-%d@example.com", round), 100+5*round, members, 6*(1-round%2), true)
		g.crackKeys(round)
	}
	g.crackLimits(75 * time.Second) // more than a minute: what is void by then is given out again
	g.conclude()
	figure(t, "%d rounds in which three nodes are asked at once: %v", rounds, g.ledger)
}

// crackKeys asks all nodes for keys of one account at once, twice each, after its own are revoked.
func (g *campaign) crackKeys(round int) {
	c, a := newCaller(""), g.ledger.accounts[round%len(g.ledger.accounts)]
	defer c.close()
	g.endKeys(c, g.at(round), a)
	g.rig.level()
	all := g.rig.members()
	rush(slices.Concat(all, all), func(m *member) { g.ledger.newKey(c, m, a) })
	if got := len(g.ledger.active(a)); got != 2 {
		g.ledger.mu.Lock()
		defer g.ledger.mu.Unlock()
		g.ledger.wrong(accepted, "six wishes at three nodes gave %s %d keys, want 2", a.email, got)
	}
}

// crackLimits asks all nodes with keys of all accounts, as fast as they answer, until nearly every request is refused.
func (g *campaign) crackLimits(span time.Duration) {
	end := g.ledger.now() + span
	w := g.client(1 << 33)
	defer w.c.close()
	for g.ledger.now() < end {
		for _, a := range g.ledger.accounts {
			good, _, _ := w.pick(a)
			rush(g.rig.members(), func(m *member) { w.askAny(m, a, good) })
		}
		wait(readerPause)
	}
	g.ledger.mu.Lock()
	defer g.ledger.mu.Unlock()
	for _, a := range g.ledger.accounts {
		if a.admitted < min(a.minute, a.day)/2 {
			g.ledger.wrong(forfeited, "%s was admitted %d times only", a.email, a.admitted)
		}
	}
}
