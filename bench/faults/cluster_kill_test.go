//go:build faults

package faults

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"
)

// besiege loads a cluster and strikes it so often as a variable says, or with CLUSTER_SIDES so many clusters, each with a share of the
// faults: they wait for elections most of the time. go test runs as many at once as -parallel says. A strike counts its faults.
func besiege(t *testing.T, variable string, usual int, parts bool, strike func(g *campaign, chance *rand.Rand)) {
	t.Helper()
	t.Parallel()
	faults, plain := countFrom(t, variable, usual), program(t)
	sides := min(faults, countFrom(t, "CLUSTER_SIDES", 1))
	for side := range sides {
		t.Run(fmt.Sprintf("cluster %d", side+1), func(t *testing.T) {
			t.Parallel()
			var net *street
			if parts {
				net = newStreet(t, 3)
			}
			g := newCampaign(t, plain, net)
			for g.faults < (faults+sides-1-side)/sides && g.ledger.broken() == 0 && !t.Failed() {
				strike(g, g.chance())
				if g.faults%10 == 0 {
					progress(t, "%v", g)
				}
			}
			g.finish()
			figure(t, "%v", g)
		})
	}
}

// String is what a figure says of a campaign.
func (g *campaign) String() string {
	text := fmt.Sprintf("%d faults, %d of them %s; until the first write after each: %s; ", g.faults, g.special, g.specials, quantiles(g.silences))
	if len(g.parted.ways) > 0 {
		text = fmt.Sprintf("%d cuts in %d ways; %v; ", g.faults, len(g.parted.ways), &g.parted)
	}
	return text + g.ledger.String()
}

// TestFaultsCluster_LeaderKilled kills the node through which writes go, under load, again and again.
func TestFaultsCluster_LeaderKilled(t *testing.T) {
	besiege(t, "CLUSTER_LEADERS", 5, false, func(g *campaign, chance *rand.Rand) {
		leader := g.rig.awaitLeader()
		wait(upTo(chance, time.Second))
		g.faults++
		g.special, g.specials = g.special+1, "of the leader"
		fault := g.ledger.now()
		leader.kill()
		g.written(fault)
		leader.launch()
		leader.ready(true)
	})
}

// TestFaultsCluster_NodesKilled kills any node under load, and starts it again while another one may just have come back; now and then two at
// once, so that for a while nothing can be written.
func TestFaultsCluster_NodesKilled(t *testing.T) {
	besiege(t, "CLUSTER_KILLS", 10, false, func(g *campaign, chance *rand.Rand) {
		wait(upTo(chance, time.Second))
		first := chance.IntN(3)
		victims := []*peer{g.rig.peers[first]}
		g.specials = "of two nodes at once"
		if chance.IntN(8) == 0 {
			victims = append(victims, g.rig.peers[(first+1)%3])
			g.special++
		}
		fault := g.ledger.now()
		for _, p := range victims {
			g.faults++
			p.kill()
		}
		wait(upTo(chance, 2*time.Second))
		for _, p := range victims {
			p.launch()
		}
		for _, p := range victims {
			p.ready(chance.IntN(2) == 0 || len(victims) > 1)
		}
		g.written(fault)
	})
}

// TestFaultsCluster_NodesPaused stops the clock of a node, leader or not, for longer than an election takes, and lets it go on as if nothing had
// been: it may neither take a change in as a leader that it is no more nor spend what it leased a minute ago.
func TestFaultsCluster_NodesPaused(t *testing.T) {
	besiege(t, "CLUSTER_PAUSES", 3, false, func(g *campaign, chance *rand.Rand) {
		victim := g.rig.awaitLeader()
		g.specials = "of the leader"
		if chance.IntN(2) == 0 {
			victim = g.rig.peers[victim.number%3]
		} else {
			g.special++
		}
		g.faults++
		fault := g.ledger.now()
		victim.pause(true)
		wait(time.Second + upTo(chance, 15*time.Second))
		victim.pause(false)
		g.written(fault)
		victim.ready(true)
		wait(upTo(chance, 3*time.Second))
	})
}

// pause stops or continues a process. While it stands nothing new is asked of it.
func (p *peer) pause(on bool) {
	p.up.Store(!on)
	if on {
		p.life.Load().send(syscall.SIGSTOP)
	} else {
		p.life.Load().send(syscall.SIGCONT)
	}
}
