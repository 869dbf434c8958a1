//go:build faults

package faults

import (
	"strings"
	"testing"
	"time"
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
				for round := range g.ledger.accounts {
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
			g.settle()
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
		if p.alive() && p.life.Load().over() {
			count++
		}
	}
	return count
}
