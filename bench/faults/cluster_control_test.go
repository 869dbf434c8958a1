//go:build faults

package faults

import (
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// TestFaultsCluster_Control plants bugs that only several nodes show, each of which the ledger must find without any other fault: a node that
// does not hear of rates or of leases of others, and one that keeps what it decided before it heard of others.
func TestFaultsCluster_Control(t *testing.T) {
	t.Parallel()
	const follower, sharing = "actors/follower.go", "actors/sharing.go"
	for _, bug := range []struct {
		name, file, right, wrong string
		crack                    func(g *campaign)
		kind                     breach
	}{
		{
			"do not hear of rates", follower, "m.books[e.CurrencyCode()] = append(m.books[e.CurrencyCode()], e)", "_ = e",
			func(g *campaign) { wait(3 * time.Second) }, lost,
		},
		{
			"do not hear of leases", follower, "*shard = append(*shard, e)", "if _, is := e.(*engine.Leased); !is { *shard = append(*shard, e) }",
			func(g *campaign) {
				g.quiet()
				for round := range g.ledger.holders {
					g.crackKeys(round)
				}
				g.crackLimits(15 * time.Second)
			}, granted,
		},
		{
			"keep what is void", sharing, "return w.heard != s.told[w.from]", "return false",
			func(g *campaign) {
				g.quiet()
				for round := 0; round < 30 && g.ledger.broken() == 0 && g.died() == 0; round++ {
					g.crackKeys(round)
				}
			}, accepted,
		},
	} {
		g := newCampaign(t, mutant(t, strings.ReplaceAll(bug.name, " ", "-"), bug.file, bug.right, bug.wrong), nil)
		bug.crack(g)
		g.quiet()
		dead := g.died()
		if dead == 0 {
			g.ledger.settle(g.rig)
		}
		if found := g.ledger.broken(bug.kind); found == 0 && dead == 0 {
			t.Errorf("nodes that %s are not found out: %v", bug.name, g.ledger)
		} else {
			figure(t, "control, nodes that %s: %d breaches of the kind %q, %d nodes stopped themselves", bug.name, found, bug.kind, dead)
		}
		for _, p := range g.rig.peers {
			p.kill()
		}
	}
}

// died is how many nodes have ended although nobody has ended them.
func (g *campaign) died() (count int) {
	for _, p := range g.rig.peers {
		if p.alive() && p.process().over() {
			count++
		}
	}
	return count
}

// plainFleet is a ledger of one account with a limit of 3 a minute and 5 a day, and one series with three acknowledged values.
func plainFleet() (l *fleetLedger, h *holder, s *series, at []*peer) {
	l = newFleetLedger()
	at = []*peer{{number: 1}, {number: 2}}
	h = &holder{email: "ana@example.com", day: 5, minute: 3, days: map[engine.Date]int{}}
	s = &series{institution: "popular"}
	for i := range 3 {
		s.sets = append(s.sets, &setting{span: spanOf(10*i, 10*i+5), by: at[0], outcome: acknowledged})
	}
	l.holders, l.series = []*holder{h}, []*series{s}
	return l, h, s, at
}

// spanOf is from one second to another.
func spanOf(from, to int) span {
	return span{time.Duration(from) * time.Second, time.Duration(to) * time.Second}
}

// TestFaultsCluster_ControlLedger plants what no cluster may do straight into the ledger, and what it may.
func TestFaultsCluster_ControlLedger(t *testing.T) {
	show := func(l *fleetLedger, s *series, p *peer, from time.Duration, numbers ...int) {
		g := &glance{values: map[*series][]int{}}
		for _, number := range numbers {
			var one page
			one.Data = append(one.Data, struct{ InstitutionID, Currency, SourceID, Buy string }{Buy: valueOf(number)})
			l.saw(g, p, s, from, &one)
		}
	}
	key := func(from, to, end int) *heldKey {
		k := &heldKey{outcome: acknowledged, made: spanOf(from, to)}
		if end > 0 {
			k.asked, k.ended = 1, spanOf(end, end+1)
		}
		return k
	}
	cases := map[string]struct {
		want  breach
		plant func(l *fleetLedger, h *holder, s *series, at []*peer)
	}{
		"values in order":                  {"", func(l *fleetLedger, _ *holder, s *series, at []*peer) { show(l, s, at[1], 0, 0, 1, 2, 3) }},
		"an old value elsewhere, at first": {"", func(l *fleetLedger, _ *holder, s *series, at []*peer) { show(l, s, at[1], time.Hour, 1, 3) }},
		"an old value where a newer one was acknowledged": {risen, func(l *fleetLedger, _ *holder, s *series, at []*peer) {
			show(l, s, at[0], time.Hour, 2)
		}},
		"an old value after a newer one": {risen, func(l *fleetLedger, _ *holder, s *series, at []*peer) { show(l, s, at[1], 0, 3, 2) }},
		"a late one of which nobody knows": {"", func(l *fleetLedger, _ *holder, s *series, at []*peer) {
			s.sets[1].outcome = unknown
			show(l, s, at[1], 0, 1, 3, 2)
		}},
		"back and forth": {risen, func(l *fleetLedger, _ *holder, s *series, at []*peer) {
			s.sets[1].outcome = unknown
			show(l, s, at[1], 0, 3, 2, 3)
		}},
		"a value from nowhere": {strange, func(l *fleetLedger, _ *holder, s *series, at []*peer) { show(l, s, at[1], 0, 4) }},
		"three in a minute": {"", func(l *fleetLedger, h *holder, _ *series, _ []*peer) {
			h.stays = []span{spanOf(0, 1), spanOf(20, 30), spanOf(40, 41), spanOf(59, 61)}
			l.checkMinutes(h)
		}},
		"four in a minute": {granted, func(l *fleetLedger, h *holder, _ *series, _ []*peer) {
			h.stays = []span{spanOf(70, 71), spanOf(11, 12), spanOf(40, 41), spanOf(60, 61), spanOf(69, 70)}
			l.checkMinutes(h)
		}},
		"two keys, and one in between": {"", func(l *fleetLedger, h *holder, _ *series, _ []*peer) {
			h.keys = []*heldKey{key(0, 1, 5), key(0, 1, 0), key(4, 6, 0)}
			l.checkActive(h)
		}},
		"three keys": {accepted, func(l *fleetLedger, h *holder, _ *series, _ []*peer) {
			h.keys = []*heldKey{key(0, 1, 9), key(0, 1, 0), key(4, 6, 0)}
			l.checkActive(h)
		}},
		"a lost key": {lost, func(l *fleetLedger, h *holder, _ *series, at []*peer) {
			h.keys = []*heldKey{key(0, 1, 0)}
			l.compareKeys(at[0], h, nil)
		}},
		"a lost revocation": {lost, func(l *fleetLedger, h *holder, _ *series, at []*peer) {
			h.keys = []*heldKey{key(0, 1, 2)}
			h.keys[0].name, h.keys[0].revoked = "k", at[1]
			l.compareKeys(at[0], h, []listedKey{{Name: "k", Status: "active"}})
		}},
	}
	for name, c := range cases {
		l, h, s, at := plainFleet()
		c.plant(l, h, s, at)
		if found := l.broken(); c.want == "" && found > 0 || c.want != "" && l.broken(c.want) == 0 {
			t.Errorf("%s: found %q, want %q", name, l.words, c.want)
		}
	}
	figure(t, "control of the ledger of a cluster: %d situations, good and wrong, each seen as what it is", len(cases))
}
