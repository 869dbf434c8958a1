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

// callersSpan is the time from a failure to its end. watchedAfter is the time for which callers are watched after it.
const (
	callersSpan  = 20 * time.Second
	watchedAfter = 15 * time.Second
	readEvery    = 20 * time.Millisecond
	changeEvery  = 50 * time.Millisecond
)

// callerStats is what the callers of some nodes see during a failure.
type callerStats struct {
	mu                  sync.Mutex
	reads, failed       int
	slowest             time.Duration // of reads
	firstFail, lastFail time.Duration // when reads failed, since the failure
	gap                 time.Duration // longest time without an acknowledged change, at any of the nodes
	refused             int           // changes that were answered with 503 read_only
	codes               map[string]int
}

func (s *callerStats) String() string {
	reads := fmt.Sprintf("%d of %d failed, slowest %d ms", s.failed, s.reads, s.slowest.Milliseconds())
	if s.failed > 0 {
		reads += fmt.Sprintf(", from %.1f to %.1f s: %v", s.firstFail.Seconds(), s.lastFail.Seconds(), s.codes)
	}
	changes := fmt.Sprintf("wait %.1f s", s.gap.Seconds())
	if s.refused > 0 {
		changes += fmt.Sprintf(", %d refused", s.refused)
	}
	return "keyed reads: " + reads + "; changes: " + changes
}

// watchCallers sends keyed reads and changes to some nodes until stop is closed. The key has a quota that is never
// reached.
func (g *clusterTest) watchCallers(nodes []*clusterNode, key string, stop <-chan struct{}) (s *callerStats, done *sync.WaitGroup) {
	s, done = &callerStats{codes: map[string]int{}}, &sync.WaitGroup{}
	begun := time.Now()
	for _, p := range nodes {
		c := newHTTPClient("")
		done.Go(func() {
			var sending sync.WaitGroup
			every(readEvery, stop, func() bool {
				sending.Go(func() { s.read(c, p, key, begun) })
				return true
			})
			sending.Wait()
			c.close()
		})
		done.Go(func() {
			last := time.Now()
			every(changeEvery, stop, func() bool {
				_, got := g.checker.set(&p.endpoint, g.probeSeries(p))
				s.mu.Lock()
				defer s.mu.Unlock()
				if s.gap = max(s.gap, time.Since(last)); got.good() {
					last = time.Now()
				} else if got.code == "read_only" {
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

// TestFaultsCluster_Callers measures what callers see of each failure, for the table in docs/cluster.md: callers of the
// nodes that a load balancer still uses, and of a node that is cut off.
func TestFaultsCluster_Callers(t *testing.T) {
	g := newClusterTest(t, program(t), newVirtualNetwork(t, 4))
	g.stopLoad()
	c, a := newHTTPClient(""), g.checker.newAccount("caller@example.com", unreachedLimit, clusterMinute)
	defer c.close()
	g.signUp(100, a)
	key, got := g.checker.newKey(c, g.endpoint(0), a)
	if key.secret == "" {
		t.Fatal(got.failure("make a key", nil))
	}
	g.cluster.awaitSameRecords()
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
		s, done := g.watchCallers(watched, key.secret, stop)
		wait(3 * time.Second)
		failure.fail(victim)
		wait(callersSpan)
		failure.end(victim)
		victim.ready(true)
		wait(watchedAfter)
		close(stop)
		done.Wait()
		figure(t, "%s: %v", failure.name, s)
	}
	g.conclude()
}
