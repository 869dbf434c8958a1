//go:build faults

package faults

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// injectFaults loads a cluster and strikes it so often as a variable says, or with CLUSTER_SIDES so many clusters, each with a share of the
// faults: they wait for elections most of the time. go test runs as many at once as -parallel says. A strike counts its faults.
func injectFaults(t *testing.T, variable string, usual int, parts bool, strike func(g *clusterTest, chance *rand.Rand)) {
	t.Helper()
	t.Parallel()
	faults, plain := countFrom(t, variable, usual), program(t)
	sides := min(faults, countFrom(t, "CLUSTER_SIDES", 1))
	for side := range sides {
		t.Run(fmt.Sprintf("cluster %d", side+1), func(t *testing.T) {
			t.Parallel()
			var net *virtualNetwork
			if parts {
				net = newVirtualNetwork(t, 3)
			}
			g := newClusterTest(t, plain, net)
			for g.faults < (faults+sides-1-side)/sides && g.checker.violationCount() == 0 && !t.Failed() {
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
func (g *clusterTest) String() string {
	text := fmt.Sprintf("%d faults, %d of them %s; until the first write after each: %s; ", g.faults, g.chosenFaults, g.chosenKind, quantiles(g.writeGaps))
	if len(g.partitions.ways) > 0 {
		text = fmt.Sprintf("%d cuts in %d ways; %v; ", g.faults, len(g.partitions.ways), &g.partitions)
	}
	return text + g.checker.String()
}

// TestFaultsCluster_LeaderKilled kills the node through which writes go, under load, again and again.
func TestFaultsCluster_LeaderKilled(t *testing.T) {
	injectFaults(t, "CLUSTER_LEADERS", 5, false, func(g *clusterTest, chance *rand.Rand) {
		leader := g.cluster.awaitLeader()
		wait(upTo(chance, time.Second))
		g.faults++
		g.chosenFaults, g.chosenKind = g.chosenFaults+1, "of the leader"
		fault := g.checker.now()
		leader.kill()
		g.awaitWrite(fault)
		leader.launch()
		leader.ready(true)
	})
}

// TestFaultsCluster_NodesKilled kills any node under load; now and then two at once, so that for a while nothing can be written.
func TestFaultsCluster_NodesKilled(t *testing.T) {
	injectFaults(t, "CLUSTER_KILLS", 10, false, func(g *clusterTest, chance *rand.Rand) {
		wait(upTo(chance, time.Second))
		first := chance.IntN(3)
		victims := []*clusterNode{g.cluster.nodes[first]}
		g.chosenKind = "of two nodes at once"
		if chance.IntN(8) == 0 {
			victims = append(victims, g.cluster.nodes[(first+1)%3])
			g.chosenFaults++
		}
		fault := g.checker.now()
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
		g.awaitWrite(fault)
	})
}

// TestFaultsCluster_NodesPaused stops the clock of a node, leader or not, for longer than an election takes, and lets it go on as if nothing had
// been: it may neither take a change in as a leader that it is no more nor spend what it leased a minute ago.
func TestFaultsCluster_NodesPaused(t *testing.T) {
	injectFaults(t, "CLUSTER_PAUSES", 3, false, func(g *clusterTest, chance *rand.Rand) {
		victim := g.cluster.awaitLeader()
		g.chosenKind = "of the leader"
		if chance.IntN(2) == 0 {
			victim = g.cluster.nodes[victim.number%3]
		} else {
			g.chosenFaults++
		}
		g.faults++
		fault := g.checker.now()
		victim.pause(true)
		wait(time.Second + upTo(chance, 15*time.Second))
		victim.pause(false)
		g.awaitWrite(fault)
		victim.ready(true)
		wait(upTo(chance, 3*time.Second))
	})
}

// pause stops or continues a process. While it stands nothing new is asked of it.
func (p *clusterNode) pause(on bool) {
	p.up.Store(!on)
	if on {
		p.process.Load().send(syscall.SIGSTOP)
	} else {
		p.process.Load().send(syscall.SIGCONT)
	}
}

const (
	// refusedWithin is how soon a node that reaches too few others must refuse changes, and say so.
	refusedWithin = 5 * time.Second
	probePause    = 100 * time.Millisecond
	// refusalTimeMax is how long a refusal may take once the node knows.
	refusalTimeMax = time.Second
)

// generatedAt is a way in which a network breaks: each pair of from and to loses what the first node sends to the second.
type partition struct {
	name     string
	drops    [][2]int
	isolated []int // nodes that hear and reach nobody: they know. With one direction left only the log can tell
}

// partitionsOf are the ways to part three nodes of which one leads.
func partitionsOf(leader int, chance *rand.Rand) []partition {
	a, b := leader%3+1, (leader+1)%3+1
	if chance.IntN(2) == 0 {
		a, b = b, a
	}
	both := func(x, y int) [][2]int { return [][2]int{{x, y}, {y, x}} }
	return []partition{
		{"the leader alone", slices.Concat(both(leader, a), both(leader, b)), []int{leader}},
		{"a follower alone", slices.Concat(both(a, leader), both(a, b)), []int{a}},
		{"each from each", slices.Concat(both(leader, a), both(leader, b), both(a, b)), []int{leader, a, b}},
		{"the leader from one follower", both(leader, a), nil},
		{"the followers from each other", both(a, b), nil},
		{"the leader is not heard", [][2]int{{leader, a}, {leader, b}}, nil},
		{"the leader hears nobody", [][2]int{{a, leader}, {b, leader}}, nil},
		{"one follower does not hear the leader", [][2]int{{leader, a}}, nil},
		{"a follower is not heard", [][2]int{{a, leader}, {a, b}}, nil},
		{"a follower hears nobody", [][2]int{{leader, a}, {b, a}}, nil},
	}
}

// partitionStats is what was measured of cuts.
type partitionStats struct {
	mu      sync.Mutex
	ways    map[string]int
	refused []time.Duration // from a cut to the first refusal by a node that is alone
	shown   []time.Duration // until /readyz says so
	healed  []time.Duration // from the end of a cut until every node takes changes in
	reads   int             // answered by nodes that were alone
}

// TestFaultsCluster_CutOff parts the nodes of a cluster under load, in every way that three nodes can be parted.
func TestFaultsCluster_CutOff(t *testing.T) {
	needRoot(t)
	need(t, "iproute2", "ip")
	var ways atomic.Int64
	injectFaults(t, "CLUSTER_CUTS", 5, true, func(g *clusterTest, chance *rand.Rand) {
		kinds := partitionsOf(g.cluster.awaitLeader().number, chance)
		one := kinds[int(ways.Add(1)-1)%len(kinds)]
		g.faults++
		if g.partitions.ways == nil {
			g.partitions.ways = map[string]int{}
		}
		g.partitions.ways[one.name]++
		g.breakNetwork(&one, &g.partitions, chance)
	})
}

func (m *partitionStats) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprintf("a node that is alone refuses changes after %s, and says so after %s, and answered %d reads meanwhile; all take changes in again after %s",
		quantiles(m.refused), quantiles(m.shown), m.reads, quantiles(m.healed))
}

// subnet breaks the network, looks at the nodes that are alone, and mends it.
func (g *clusterTest) breakNetwork(c *partition, m *partitionStats, chance *rand.Rand) {
	g.t.Helper()
	fault := g.checker.now()
	for _, way := range c.drops {
		g.cluster.network.drop(way[0], way[1])
	}
	stop := make(chan struct{})
	var watching sync.WaitGroup
	for _, number := range c.isolated {
		p := g.cluster.nodes[number-1]
		watching.Go(func() { g.probe(c, p, fault, stop, m) })
		watching.Go(func() { g.readIsolated(c, p, fault, stop, m) })
	}
	hold := 3*time.Second + upTo(chance, 7*time.Second)
	if len(c.isolated) > 0 {
		hold += refusedWithin
	}
	wait(hold)
	close(stop) // a change that is sent from here on may be taken in
	watching.Wait()
	for _, way := range c.drops {
		g.cluster.network.restore(way[0], way[1])
	}
	mended := g.checker.now()
	for _, p := range g.cluster.nodes {
		if !eventually(healMax, func() bool { _, got := g.checker.set(&p.endpoint, g.probeSeries(p)); return got.good() }) {
			g.t.Errorf("cut %d, %s: node %d takes nothing in %v after its end:\n%s", g.faults, c.name, p.number, healMax, p.process.Load().tail(20))
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.healed = append(m.healed, g.checker.now()-mended)
}

// probeSeries is the series by which a node is probed: nobody else sets it.
func (g *clusterTest) probeSeries(p *clusterNode) *series {
	return g.checker.series[clusterWriters+p.number-1]
}

// every does something again and again until it is false or stop is closed.
func every(pause time.Duration, stop <-chan struct{}, do func() bool) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for do() {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
	}
}

// probe sends changes to a node that is alone until stop. Soon one must be refused, and from then on each, at once, and /readyz must say why.
func (g *clusterTest) probe(c *partition, p *clusterNode, fault time.Duration, stop <-chan struct{}, m *partitionStats) {
	ready := newHTTPClient("")
	defer ready.close()
	tells := func() bool { return sampleHealth(ready, p.url+"/readyz").states["cluster"] == "no_majority" }
	var sending sync.WaitGroup
	var refusal atomic.Int64
	every(probePause, stop, func() bool { // a new change whether the one before was answered or not
		sending.Go(func() {
			if _, got := g.checker.set(&p.endpoint, g.probeSeries(p)); got.code == "read_only" {
				refusal.CompareAndSwap(0, int64(g.checker.now()-fault))
			}
		})
		return refusal.Load() == 0 && g.checker.now()-fault < refusedWithin
	})
	g.t.Cleanup(sending.Wait) // those that were on their way wait for the end of the cut
	first := time.Duration(refusal.Load())
	told := eventually(refusedWithin-(g.checker.now()-fault), tells)
	m.mu.Lock()
	m.refused, m.shown = append(m.refused, first), append(m.shown, g.checker.now()-fault)
	m.mu.Unlock()
	if first == 0 || first > refusedWithin || !told {
		g.t.Errorf("cut %d, %s: node %d refuses changes after %v (0: never), and says so: %v\n%s", g.faults, c.name, p.number, first, told, p.process.Load().tail(20))
		return
	}
	every(probePause, stop, func() bool {
		from := g.checker.now()
		_, got := g.checker.set(&p.endpoint, g.probeSeries(p))
		took, says := g.checker.now()-from, tells()
		good := got.code == "read_only" && took <= refusalTimeMax && says
		if !good {
			g.t.Errorf("cut %d, %s: %v after the cut node %d answers a change with %d %s after %v, and says so: %v",
				g.faults, c.name, from-fault, p.number, got.status, got.code, took, says)
		}
		return good
	})
}

// readIsolated wants every read of a node that is alone answered.
func (g *clusterTest) readIsolated(c *partition, p *clusterNode, fault time.Duration, stop <-chan struct{}, m *partitionStats) {
	one := newHTTPClient("")
	defer one.close()
	every(probePause, stop, func() bool {
		got, err := one.do(http.MethodGet, p.url+"/v1/rates?currency=USD&limit=200", "", nil)
		good := err == nil && got.status == http.StatusOK
		if !good {
			g.t.Errorf("cut %d, %s: %v after the cut node %d answers a read with %d %s, %v", g.faults, c.name, g.checker.now()-fault, p.number, got.status, got.code, err)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.reads++
		return good
	})
}

// TestFaultsCluster_Control plants a bug that only several nodes show: they do not hear of leases of others. The ledger must find it without
// any other fault, or the nodes themselves.
func TestFaultsCluster_Control(t *testing.T) {
	t.Parallel()
	g := newClusterTest(t, buildMutant(t, "deaf-to-leases", "actors/internal/commitlog/follower.go", "*shard = append(*shard, e)",
		"if _, is := e.(*account.Leased); !is { *shard = append(*shard, e) }"), nil)
	g.stopLoad()
	for round := range g.checker.accounts {
		g.raceKeys(round)
	}
	g.raceLimits(15 * time.Second)
	died := 0
	for _, p := range g.cluster.nodes {
		if p.process.Load().exited() {
			died++
		}
	}
	if died == 0 {
		g.checkAtRest()
	}
	found := g.checker.violationCount(overGranted)
	if found == 0 && died == 0 {
		t.Errorf("nodes that do not hear of leases are not found out: %v", g.checker)
	}
	figure(t, "control, nodes that do not hear of leases: %d times over-granted, %d nodes stopped themselves", found, died)
	for _, p := range g.cluster.nodes {
		p.kill()
	}
}
