//go:build faults

package cmd

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

// injectFaults loads a cluster and injects as many faults as a variable says. strike counts its faults.
func injectFaults(t *testing.T, variable string, usual int, network *virtualNetwork, strike func(g *clusterTest, chance *rand.Rand)) {
	t.Helper()
	g := newClusterTest(t, builtProgram(t), network)
	for g.faults < countFrom(t, variable, usual) && g.checker.violationCount() == 0 && !t.Failed() {
		strike(g, g.chance())
		if g.faults%10 == 0 {
			progress(t, "%v", g)
		}
	}
	g.finish()
	figure(t, "%v", g)
}

// String formats the figures.
func (g *clusterTest) String() string {
	text := fmt.Sprintf("%d faults, %d of them %s; until the first write after each: %s; ", g.faults, g.chosenFaults, g.chosenKind, quantiles(g.writeGaps))
	if len(g.partitions.ways) > 0 {
		text = fmt.Sprintf("%d cuts in %d ways; %v; ", g.faults, len(g.partitions.ways), &g.partitions)
	}
	return text + g.checker.String()
}

// firstWriteMax is the longest time from the death of the leader to the first write that is acknowledged.
const firstWriteMax = 450 * time.Millisecond

// TestFaultsCluster_LeaderKilled repeatedly kills the leader under load.
func TestFaultsCluster_LeaderKilled(t *testing.T) {
	t.Parallel()
	injectFaults(t, "CLUSTER_LEADERS", 5, nil, func(g *clusterTest, chance *rand.Rand) {
		leader := g.cluster.awaitLeader()
		wait(upTo(chance, time.Second))
		g.faults++
		g.chosenFaults, g.chosenKind = g.chosenFaults+1, "of the leader"
		fault := g.checker.now()
		leader.kill()
		g.awaitWrite(fault)
		if longest := slices.Max(append(g.writeGaps, 0)); longest > firstWriteMax {
			g.t.Errorf("the first write after the leader was killed took %v, want at most %v", longest, firstWriteMax)
		}
		leader.launch()
		leader.ready(true)
	})
}

// TestFaultsCluster_NodesKilled kills any node under load, sometimes two at once, so that for a while nothing can be
// written.
func TestFaultsCluster_NodesKilled(t *testing.T) {
	t.Parallel()
	injectFaults(t, "CLUSTER_KILLS", 10, nil, func(g *clusterTest, chance *rand.Rand) {
		count := 1
		g.chosenKind = "of two nodes at once"
		if chance.IntN(8) == 0 {
			count = 2
			g.chosenFaults++
		}
		g.killNodes(chance, count)
	})
}

// killNodes kills a number of nodes at once and starts them again.
func (g *clusterTest) killNodes(chance *rand.Rand, count int) {
	wait(upTo(chance, time.Second))
	first := chance.IntN(3)
	fault := g.checker.now()
	var victims []*clusterNode
	for i := range count {
		victims = append(victims, g.cluster.nodes[(first+i)%3])
		g.faults++
		victims[i].kill()
	}
	wait(upTo(chance, 2*time.Second))
	for _, p := range victims {
		p.launch()
	}
	for _, p := range victims {
		p.ready(chance.IntN(2) == 0 || count > 1)
	}
	g.awaitWrite(fault)
}

// TestFaultsCluster_NodesPaused repeatedly pauses a node under load.
func TestFaultsCluster_NodesPaused(t *testing.T) {
	t.Parallel()
	injectFaults(t, "CLUSTER_PAUSES", 3, nil, (*clusterTest).pauseNode)
}

// pauseNode stops the process of a node, leader or not, for longer than an election takes, and continues it: it must
// neither accept a change as a former leader nor spend what it leased a minute ago.
func (g *clusterTest) pauseNode(chance *rand.Rand) {
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
}

// pause stops or continues the process. No new requests are sent to it meanwhile.
func (p *clusterNode) pause(on bool) {
	p.up.Store(!on)
	now := p.lives[len(p.lives)-1]
	if on {
		now.pauses = append(now.pauses, [2]time.Time{time.Now()})
		p.process.Load().Send(syscall.SIGSTOP)
	} else {
		p.process.Load().Send(syscall.SIGCONT)
		now.pauses[len(now.pauses)-1][1] = time.Now()
	}
}

const (
	// refusedWithin is how soon a node without a majority must reject changes, and show it.
	refusedWithin = 5 * time.Second
	probePause    = 100 * time.Millisecond
	// refusalTimeMax is how long a rejection may take once the node knows.
	refusalTimeMax = time.Second
)

// partition is a way to break the network: each pair of from and to drops what the first node sends to the second.
type partition struct {
	name     string
	drops    [][2]int
	isolated []int // nodes that reach no other and know it; with one direction left only the log can tell
}

// partitionsOf returns the ways to partition three nodes, one of which leads.
func partitionsOf(leader int, chance *rand.Rand) []partition {
	a, b := leader%3+1, (leader+1)%3+1
	if chance.IntN(2) == 0 {
		a, b = b, a
	}
	both := func(x, y int) [][2]int { return [][2]int{{x, y}, {y, x}} }
	return []partition{
		{"only the leader", slices.Concat(both(leader, a), both(leader, b)), []int{leader}},
		{"only a follower", slices.Concat(both(a, leader), both(a, b)), []int{a}},
		{"each from each", slices.Concat(both(leader, a), both(leader, b), both(a, b)), []int{leader, a, b}},
		{"the leader from one follower", both(leader, a), nil},
		{"the followers from each other", both(a, b), nil},
		{"nothing from the leader", [][2]int{{leader, a}, {leader, b}}, nil},
		{"nothing to the leader", [][2]int{{a, leader}, {b, leader}}, nil},
		{"one follower does not hear the leader", [][2]int{{leader, a}}, nil},
		{"nothing from a follower", [][2]int{{a, leader}, {a, b}}, nil},
		{"nothing to a follower", [][2]int{{leader, a}, {b, a}}, nil},
	}
}

// partitionStats are measurements of partitions.
type partitionStats struct {
	mu      sync.Mutex
	ways    map[string]int
	refused []time.Duration // from a partition to the first rejection by an isolated node
	shown   []time.Duration // until /readyz shows it
	healed  []time.Duration // from the end of a partition until every node accepts changes
	reads   int             // answered by isolated nodes
}

// TestFaultsCluster_CutOff partitions the nodes of a cluster under load, in every way in which three nodes can be
// partitioned.
func TestFaultsCluster_CutOff(t *testing.T) {
	needRoot(t)
	need(t, "iproute2", "ip")
	t.Parallel()
	injectFaults(t, "CLUSTER_CUTS", 5, newVirtualNetwork(t, 3), func(g *clusterTest, chance *rand.Rand) { g.cutOff(chance, g.faults) })
}

// cutOff partitions the network in one of its ways.
func (g *clusterTest) cutOff(chance *rand.Rand, way int) {
	kinds := partitionsOf(g.cluster.awaitLeader().number, chance)
	one := kinds[way%len(kinds)]
	g.faults++
	g.partitions.ways[one.name]++
	g.breakNetwork(&one, &g.partitions, chance)
}

func (m *partitionStats) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprintf("an isolated node refuses changes after %s, and says so after %s, and answered %d reads meanwhile; all take changes in again after %s",
		quantiles(m.refused), quantiles(m.shown), m.reads, quantiles(m.healed))
}

// breakNetwork partitions the network, checks the isolated nodes, and heals it.
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
	close(stop) // a change sent from now on may be accepted
	watching.Wait()
	for _, way := range c.drops {
		g.cluster.network.restore(way[0], way[1])
	}
	mended := g.checker.now()
	for _, p := range g.cluster.nodes {
		if !comesTrue(healMax, func() bool { _, got := g.checker.set(&p.endpoint, g.probeSeries(p)); return got.good() }) {
			g.t.Errorf("cut %d, %s: node %d takes nothing in %v after its end:\n%s", g.faults, c.name, p.number, healMax, p.process.Load().Tail(20))
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.healed = append(m.healed, g.checker.now()-mended)
}

// probeSeries is the series that only probes of a node set.
func (g *clusterTest) probeSeries(p *clusterNode) *series {
	return g.checker.series[clusterWriters+p.number-1]
}

// every repeats do until it returns false or stop is closed.
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

// probe sends changes to an isolated node until stop. Soon one must be rejected, and from then on each, at once, and
// /readyz must show why.
func (g *clusterTest) probe(c *partition, p *clusterNode, fault time.Duration, stop <-chan struct{}, m *partitionStats) {
	ready := newHTTPClient("")
	defer ready.close()
	tells := func() bool { return sampleHealth(ready, p.url+"/readyz").states["cluster"] == "no_majority" }
	var sending sync.WaitGroup
	var refusal atomic.Int64
	every(probePause, stop, func() bool { // a new change even if the one before is unanswered
		sending.Go(func() {
			if _, got := g.checker.set(&p.endpoint, g.probeSeries(p)); got.code == "no_majority" {
				refusal.CompareAndSwap(0, int64(g.checker.now()-fault))
			}
		})
		return refusal.Load() == 0 && g.checker.now()-fault < refusedWithin
	})
	g.t.Cleanup(sending.Wait) // requests in progress wait for the end of the partition
	first := time.Duration(refusal.Load())
	shown := comesTrue(refusedWithin-(g.checker.now()-fault), tells)
	m.mu.Lock()
	m.refused, m.shown = append(m.refused, first), append(m.shown, g.checker.now()-fault)
	m.mu.Unlock()
	if first == 0 || first > refusedWithin || !shown {
		g.t.Errorf("cut %d, %s: node %d refuses changes after %v (0: never), and says so: %v\n%s", g.faults, c.name, p.number, first, shown, p.process.Load().Tail(20))
		return
	}
	every(probePause, stop, func() bool {
		from := g.checker.now()
		_, got := g.checker.set(&p.endpoint, g.probeSeries(p))
		took, says := g.checker.now()-from, tells()
		good := got.code == "no_majority" && took <= refusalTimeMax && says
		if !good {
			g.t.Errorf("cut %d, %s: %v after the cut node %d answers a change with %d %s after %v, and says so: %v",
				g.faults, c.name, from-fault, p.number, got.status, got.code, took, says)
		}
		return good
	})
}

// readIsolated requires every read of an isolated node to be answered.
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

// TestFaultsCluster_Control plants a bug that only several nodes show: they ignore each other's leases, as the leader
// does. The checker,
// or the nodes themselves, must find it without any other fault.
func TestFaultsCluster_Control(t *testing.T) {
	t.Parallel()
	g := newClusterTest(t, buildWith(t, "deaf-to-leases",
		plant{"actors/internal/commitlog/follower.go", "*shard = append(*shard, e)",
			"if lease, is := e.(*account.Leased); !is || lease.Node == f.log.Shared.Node() { *shard = append(*shard, e) }"},
		plant{"engine/account/lease.go", "others > 0 {\n\t\tgrant.Count", "others > 1<<40 {\n\t\tgrant.Count"}), nil)
	g.stopLoad()
	for round := range g.checker.accounts {
		g.raceKeys(round)
	}
	g.raceLimits(15 * time.Second)
	died := 0
	for _, p := range g.cluster.nodes {
		if p.process.Load().Exited() {
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
