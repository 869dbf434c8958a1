//go:build faults

package cmd

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

const (
	callersBefore = 15 * time.Second // from the start of the callers to the failure
	callersSpan   = 15 * time.Second // from the failure to its end
	callersAfter  = 10 * time.Second
	callerCount   = 24              // callers, each with a key: a network gets 25 login codes in an hour
	callerEvery   = 3 * time.Second // of one caller: within the quota of 60 a minute
	changeEvery   = 50 * time.Millisecond
)

// callerStats is what the callers of some nodes see during a failure.
type callerStats struct {
	mu                  sync.Mutex
	reads, failed       int
	slowest             time.Duration // of reads
	firstFail, lastFail time.Duration // when reads failed, since the failure
	gap                 time.Duration // longest time without an acknowledged change, at any of the nodes
	refused             int           // changes that were answered with 503 no_majority
	codes               map[string]int
}

func (s *callerStats) String() string {
	reads := fmt.Sprintf("%d of %d failed, slowest %d ms", s.failed, s.reads, s.slowest.Milliseconds())
	if s.failed > 0 {
		reads += fmt.Sprintf(", %.1f to %.1f s after it: %v", s.firstFail.Seconds(), s.lastFail.Seconds(), s.codes)
	}
	changes := fmt.Sprintf("wait %.1f s", s.gap.Seconds())
	if s.refused > 0 {
		changes += fmt.Sprintf(", %d refused", s.refused)
	}
	return "keyed reads: " + reads + "; changes: " + changes
}

// watchCallers sends keyed reads and changes to some nodes in turn until stop is closed.
func (g *clusterTest) watchCallers(nodes []*clusterNode, keys []string, stop <-chan struct{}) (s *callerStats, done *sync.WaitGroup) {
	s, done = &callerStats{codes: map[string]int{}}, &sync.WaitGroup{}
	begun := time.Now().Add(callersBefore)
	for i, key := range keys {
		done.Go(func() {
			c, turn := newHTTPClient(""), i
			defer c.close()
			wait(callerEvery * time.Duration(i) / callerCount)
			every(callerEvery, stop, func() bool {
				turn++
				s.read(c, nodes[turn%len(nodes)], key, begun)
				return true
			})
		})
	}
	for _, p := range nodes {
		done.Go(func() {
			last := time.Now()
			every(changeEvery, stop, func() bool {
				_, got := g.checker.set(&p.endpoint, g.probeSeries(p))
				s.mu.Lock()
				defer s.mu.Unlock()
				if s.gap = max(s.gap, time.Since(last)); time.Now().Before(begun) {
					s.gap = 0
				}
				if got.good() {
					last = time.Now()
				} else if got.code == "no_majority" {
					s.refused++
				}
				return true
			})
		})
	}
	return s, done
}

func (s *callerStats) read(c *httpClient, p *clusterNode, key string, begun time.Time) {
	from := time.Now()
	got, err := c.do(http.MethodGet, p.url+"/v1/rates/best?currency=USD&operation=buy", key, nil)
	if from.Before(begun) { // leases of accounts that were idle
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	s.slowest = max(s.slowest, time.Since(from))
	if err == nil && got.status == http.StatusOK {
		return
	}
	if s.lastFail = time.Since(begun); s.failed == 0 {
		s.firstFail = s.lastFail
	}
	s.failed++
	s.codes[fmt.Sprintf("%d %s", got.status, got.code)]++
}

// callerKeys makes accounts with the usual quota, and a key of each.
func (g *clusterTest) callerKeys() (keys []string) {
	c := newHTTPClient("")
	defer c.close()
	for i := range callerCount {
		a := g.checker.newAccount(fmt.Sprintf("caller-%d@example.com", i), 1000, 60)
		g.signUp(100+i, a)
		key, got := g.checker.newKey(c, g.endpoint(100+i), a)
		if key.secret == "" {
			g.t.Fatal(got.failure("make a key", nil))
		}
		keys = append(keys, key.secret)
	}
	g.cluster.awaitSameRecords()
	return keys
}

// TestFaultsCluster_Callers measures what callers see of each failure, for the table in docs/cluster.md: callers of the
// nodes that a load balancer still uses, and of a node that is cut off.
func TestFaultsCluster_Callers(t *testing.T) {
	g := newClusterTest(t, builtProgram(t), newVirtualNetwork(t, 4))
	g.stopLoad()
	keys := g.callerKeys()
	isolate := func(p *clusterNode, do func(from, to int)) {
		for _, other := range g.cluster.nodes {
			if other != p {
				do(p.number, other.number)
				do(other.number, p.number)
			}
		}
	}
	kill := func(p *clusterNode) { p.kill() }
	start := func(p *clusterNode) { p.launch() }
	cut := func(p *clusterNode) { isolate(p, g.cluster.network.drop) }
	join := func(p *clusterNode) { isolate(p, g.cluster.network.restore) }
	for _, failure := range []struct {
		name       string
		leader, at bool // the leading node fails; its own callers are watched
		fail, end  func(*clusterNode)
	}{
		{"the leading node is killed", true, false, kill, start},
		{"another node is killed", false, false, kill, start},
		{"the leading node is stopped (SIGTERM)", true, false, func(p *clusterNode) { p.stop() }, start},
		{"the leading node hangs (SIGSTOP)", true, false, func(p *clusterNode) { p.pause(true) }, func(p *clusterNode) { p.pause(false) }},
		{"the leading node is cut off", true, false, cut, join},
		{"the same, at the node that is cut off", true, true, cut, join},
		{"another node is cut off", false, false, cut, join},
		{"the same, at the node that is cut off", false, true, cut, join},
	} {
		victim := g.cluster.awaitLeader()
		if !failure.leader {
			victim = g.cluster.nodes[victim.number%3]
		}
		watched := slices.DeleteFunc(slices.Clone(g.cluster.nodes), func(p *clusterNode) bool { return (p == victim) != failure.at })
		stop := make(chan struct{})
		s, done := g.watchCallers(watched, keys, stop)
		wait(callersBefore)
		failure.fail(victim)
		wait(callersSpan)
		failure.end(victim)
		victim.ready(true)
		wait(callersAfter)
		close(stop)
		done.Wait()
		figure(t, "%s: %v", failure.name, s)
	}
	g.conclude()
}
