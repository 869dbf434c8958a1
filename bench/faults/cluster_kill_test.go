//go:build faults

package faults

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// sideBySide runs so many clusters at once, each with a share of the faults. CLUSTER_SIDES sets how many; they wait for elections most
// of the time. go test runs as many at once as -parallel says.
func sideBySide(t *testing.T, faults int, run func(t *testing.T, faults int)) {
	t.Helper()
	sides := min(faults, countFrom(t, "CLUSTER_SIDES", 1))
	for side := range sides {
		t.Run(fmt.Sprintf("cluster %d", side+1), func(t *testing.T) {
			t.Parallel()
			run(t, (faults+sides-1-side)/sides)
		})
	}
}

// TestFaultsCluster_LeaderKilled kills the node through which writes go, under load, again and again.
func TestFaultsCluster_LeaderKilled(t *testing.T) {
	t.Parallel()
	count := countFrom(t, "CLUSTER_LEADERS", 5)
	plain := program(t)
	sideBySide(t, count, func(t *testing.T, kills int) {
		g := newCampaign(t, plain, nil)
		for range kills {
			leader := g.rig.awaitLeader()
			wait(upTo(g.chance(), time.Second))
			g.faults++
			fault := g.ledger.now()
			leader.kill()
			g.written(fault)
			leader.launch()
			leader.ready(true)
			g.tell(10)
			if g.ledger.broken() > 0 {
				break
			}
		}
		g.finish()
		figure(t, "%d leaders killed; without writes after each: %s; %v", g.faults, quantiles(g.silences), g.ledger)
	})
}

// tell says now and then how far it is.
func (g *campaign) tell(every int) {
	g.t.Helper()
	if g.faults%every == 0 {
		progress(g.t, "%d faults, without writes after each: %s; %v", g.faults, quantiles(g.silences), g.ledger)
	}
}

// TestFaultsCluster_NodesKilled kills any node under load, and starts it again while another one may just have come back; now and then two at
// once, so that for a while nobody can write.
func TestFaultsCluster_NodesKilled(t *testing.T) {
	t.Parallel()
	count := countFrom(t, "CLUSTER_KILLS", 10)
	plain := program(t)
	sideBySide(t, count, func(t *testing.T, kills int) {
		g, pairs := newCampaign(t, plain, nil), 0
		for g.faults < kills && g.ledger.broken() == 0 {
			chance := g.chance()
			wait(upTo(chance, time.Second))
			first := chance.IntN(3)
			victims := []*peer{g.rig.peers[first]}
			if chance.IntN(8) == 0 && g.faults+1 < kills {
				victims = append(victims, g.rig.peers[(first+1)%3])
				pairs++
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
			g.tell(25)
		}
		g.finish()
		figure(t, "%d nodes killed, %d times two at once; until the first write after each: %s; %v", g.faults, pairs, quantiles(g.silences), g.ledger)
	})
}

// TestFaultsCluster_NodesPaused stops the clock of a node, leader or not, for longer than an election takes, and lets it go on as if nothing had
// been: it may neither take a change in as a leader that it is no more nor spend what it leased a minute ago.
func TestFaultsCluster_NodesPaused(t *testing.T) {
	t.Parallel()
	count := countFrom(t, "CLUSTER_PAUSES", 3)
	plain := program(t)
	sideBySide(t, count, func(t *testing.T, pauses int) {
		g, leaders := newCampaign(t, plain, nil), 0
		for g.faults < pauses && g.ledger.broken() == 0 {
			victim, chance := g.rig.awaitLeader(), g.chance()
			if chance.IntN(2) == 0 {
				victim = g.rig.peers[victim.number%3]
			} else {
				leaders++
			}
			g.faults++
			fault := g.ledger.now()
			victim.pause(true)
			wait(time.Second + upTo(chance, 15*time.Second))
			victim.pause(false)
			g.written(fault)
			victim.ready(true)
			wait(upTo(chance, 3*time.Second))
			g.tell(10)
		}
		g.finish()
		figure(t, "%d nodes paused for 1 to 16 s, %d of them the leader; until the first write after each: %s; %v", g.faults, leaders, quantiles(g.silences), g.ledger)
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
