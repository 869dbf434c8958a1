//go:build faults

package cmd

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestFaultsCluster_Members changes the members of a cluster under load, as docs/cluster.md says: from three to five,
// where two nodes may be lost at once, and to three others, where one may be lost. The checker finds every lost change,
// every stale read and every request beyond a quota.
func TestFaultsCluster_Members(t *testing.T) {
	g := newClusterTest(t, builtProgram(t), nil)
	g.stopLoad()
	place := t.TempDir()
	for i, host := range freeHosts(t, 2) {
		g.cluster.nodes = append(g.cluster.nodes, g.cluster.newNode(place, i+4, host))
	}
	all := g.cluster.nodes
	g.stop = make(chan struct{})
	g.over.Store(false)
	g.load()

	g.restart(all, all[:3])
	for _, p := range all[3:] {
		p.launch()
	}
	g.awaitCopies(all)
	g.kill(all[:2])
	g.awaitCopies(all)

	g.restart(all[2:], all[2:])
	for _, p := range all[:2] {
		p.stop()
	}
	removed := func() int { return strings.Count(all[2].process.Load().Output(), "ConfChangeRemoveNode") }
	if !comesTrue(healMax, func() bool { return removed() == 2 }) {
		t.Errorf("%d of two members were removed", removed())
	}
	g.kill(all[4:])
	g.stopLoad()
	g.cluster.nodes = all[2:]
	g.finish()
	figure(t, "three members, five, three others: %d restarts and kills; changes went on within %s after a kill; %v", g.faults, quantiles(g.writeGaps), g.checker)
}

// restart restarts nodes one after the other with a list of members.
func (g *clusterTest) restart(members, nodes []*clusterNode) {
	g.t.Helper()
	g.cluster.members = members
	for _, p := range nodes {
		p.stop()
		p.launch()
		p.ready(true)
		g.faults++
		g.awaitCopies(nil)
	}
}

// awaitCopies waits until some members, or all reachable nodes, have complete copies of the log.
func (g *clusterTest) awaitCopies(members []*clusterNode) {
	g.t.Helper()
	for _, p := range members {
		p.ready(true)
	}
	if !comesTrue(healMax, func() bool {
		s, ok := g.cluster.nodes[2].health()
		current, reachable := 0, 0
		for _, n := range s.Nodes {
			if n.Reachable {
				reachable++
			}
			if n.Current {
				current++
			}
		}
		return ok && current == reachable && current >= len(members)
	}) {
		g.t.Fatal("the nodes do not have complete copies of the log")
	}
}

// kill kills nodes at once, waits until changes go on without them, and starts them again.
func (g *clusterTest) kill(nodes []*clusterNode) {
	g.t.Helper()
	for _, p := range nodes {
		p.kill()
		g.faults++
	}
	g.awaitWrite(g.checker.now())
	for _, p := range nodes {
		p.launch()
		p.ready(true)
	}
}

// TestFaultsCluster_FullDisk fills the disk of one member. It reports disk=read_only and a majority, however
// long that lasts, and goes on when there is space, also if there was no space at all.
func TestFaultsCluster_FullDisk(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	r := prepareCluster(t, builtProgram(t), nil)
	p, c, number := r.nodes[2], newHTTPClient(""), 0
	noError(t, unix.Mount("tmpfs", p.data, "tmpfs", 0, "size=256m"))
	t.Cleanup(func() { _ = unix.Unmount(p.data, unix.MNT_DETACH) })
	r.startAll()
	set := func(p *clusterNode) (answer, error) {
		number++
		return p.admin.do(http.MethodPost, "http://node/rates", "", map[string]string{
			"institution": "bhd", "currency": "USD", "buy": fmt.Sprintf("58.%d", 10+number%80), "sell": "59.9",
		})
	}
	shows := func(state string) func() bool {
		return func() bool { return sampleHealth(c, p.url+"/readyz").states["disk"] == state }
	}
	fill(t, p.data, reservedBytes/2)
	if !comesTrue(healMax, shows("read_only")) {
		t.Fatal("the full disk is not shown")
	}
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); wait(lookPause) {
		if got, err := set(r.nodes[0]); err != nil || !got.good() {
			t.Fatal(got.failure("a change at another node", err))
		}
		if got, _ := set(p); got.code != "read_only" || !strings.Contains(got.body, "disk") {
			t.Fatalf("a change at the node: %d %s", got.status, got.body)
		}
		if states := sampleHealth(c, p.url+"/readyz").states; states["cluster"] != "ok" || states["disk"] != "read_only" {
			t.Fatalf("conditions %v", states)
		}
	}
	freeSpace(t, p.data)
	if !comesTrue(healMax, func() bool { got, err := set(p); return err == nil && got.good() && shows("ok")() }) {
		t.Fatal("with space the node does not go on")
	}

	fill(t, p.data, 0) // not even raft can write
	for range 5 {
		if !comesTrue(healMax, func() bool { got, err := set(r.nodes[0]); return err == nil && got.good() }) {
			t.Fatal("the others do not go on")
		}
	}
	freeSpace(t, p.data)
	if !comesTrue(healMax, func() bool { got, err := set(p); return err == nil && got.good() && shows("ok")() }) {
		t.Fatal("with space the node does not go on a second time")
	}
	if !r.awaitSameRecords() {
		t.Error("the nodes do not come to the same record")
	}
}

// visibleMax is how soon a change that one node acknowledged is visible on all nodes, without faults.
const visibleMax = time.Second

// value returns the number of a series that a node shows.
func (m *endpoint) value(c *httpClient, s *series) int {
	got, err := c.do(http.MethodGet, m.url+"/v1/rates?currency=USD&institution="+s.institution, "", nil)
	var shown page
	if err != nil || got.decode(&shown) != nil || len(shown.Data) != 1 {
		return 0
	}
	number, _ := numberOf(shown.Data[0].Buy)
	return number
}

// knows reports whether a node accepts a key.
func (m *endpoint) knows(c *httpClient, secret string) bool {
	got, err := c.do(http.MethodGet, m.url+"/v1/account/usage", secret, nil)
	return err == nil && got.status == http.StatusOK
}

// measureVisibility measures how soon all nodes show rates, keys and revocations that one of them acknowledged.
func (g *clusterTest) measureVisibility(count int) (took map[string][]time.Duration) {
	g.t.Helper()
	c, l, a := newHTTPClient(""), g.checker, g.checker.accounts[0]
	defer c.close()
	g.revokeKeys(c, g.endpoint(0), a)
	var mu sync.Mutex
	took = map[string][]time.Duration{}
	everywhere := func(what string, is func(m *endpoint) bool) {
		since := l.now()
		atOnce(g.cluster.endpoints(), func(m *endpoint) {
			comesTrue(healMax, func() bool { return is(m) })
			mu.Lock()
			defer mu.Unlock()
			if took[what] = append(took[what], l.now()-since); l.now()-since > visibleMax {
				g.t.Errorf("%s was on node %d after %v, want %v", what, m.number, l.now()-since, visibleMax)
			}
		})
	}
	for i := range count {
		m, s := g.endpoint(i), l.series[i%len(l.series)]
		number, _ := l.set(m, s)
		everywhere("a rate", func(m *endpoint) bool { return m.value(c, s) == number })
		k, _ := l.newKey(c, m, a)
		everywhere("a key", func(m *endpoint) bool { return m.knows(c, k.secret) })
		l.endKey(c, m, a, k)
		everywhere("a revocation", func(m *endpoint) bool { return !m.knows(c, k.secret) })
	}
	return took
}

// revokeKeys revokes the keys that an account certainly has.
func (g *clusterTest) revokeKeys(c *httpClient, m *endpoint, a *trackedAccount) {
	for _, k := range g.checker.active(a) {
		g.checker.endKey(c, m, a, k)
	}
}

// TestFaultsCluster_OneRule tries to break limits that hold across all nodes, on three nodes at once: one session for
// a code, five attempts for it, two active keys, and exact limits by day and minute (decisions L1, L2, K2 and K5).
// All nodes must soon show whatever one node accepted.
func TestFaultsCluster_OneRule(t *testing.T) {
	t.Parallel()
	g := newClusterTest(t, builtProgram(t), nil)
	g.stopLoad()
	for what, spans := range g.measureVisibility(countFrom(t, "CLUSTER_SIGHTS", 30)) {
		figure(t, "%s is on every node after %s (%d looks, each at least a request of its own)", what, quantiles(spans), len(spans))
	}
	rounds := max(countFrom(t, "CLUSTER_ROUNDS", 15), len(g.checker.accounts)) // each account needs keys
	for round := range rounds {
		// Every other round only the right code; at least five wrong tries invalidate it (decision K2).
		members := []*endpoint{g.endpoint(round), g.endpoint(round + 1), g.endpoint(round + 2)}
		g.guessCodeAtAll(fmt.Sprintf("cracked-%d@example.com", round), 100+5*round, members, 6*(1-round%2), true)
		g.raceKeys(round)
	}
	g.raceLimits(75 * time.Second) // more than a minute, so that lapsed leases are granted again
	g.conclude()
	figure(t, "%d rounds in which three nodes are asked at once: %v", rounds, g.checker)
}

// raceKeys requests keys of one account from all nodes at once, twice each, after its own are revoked.
func (g *clusterTest) raceKeys(round int) {
	c, a := newHTTPClient(""), g.checker.accounts[round%len(g.checker.accounts)]
	defer c.close()
	g.revokeKeys(c, g.endpoint(round), a)
	g.cluster.awaitSameRecords()
	all := g.cluster.endpoints()
	atOnce(slices.Concat(all, all), func(m *endpoint) { g.checker.newKey(c, m, a) })
	if got := len(g.checker.active(a)); got != 2 {
		g.violate(wronglyAccepted, "six wishes at three nodes gave %s %d keys, want 2", a.email, got)
	}
}

// raceLimits sends requests with keys of all accounts to all nodes, as fast as they answer, until nearly all are
// rejected.
func (g *clusterTest) raceLimits(span time.Duration) {
	end := g.checker.now() + span
	w := g.client(1 << 33)
	defer w.c.close()
	for g.checker.now() < end {
		for _, a := range g.checker.accounts {
			good, _, _ := w.pickKeys(a)
			atOnce(g.cluster.endpoints(), func(m *endpoint) { w.askAny(m, a, good) })
		}
		wait(readerPause)
	}
	g.checker.mu.Lock()
	defer g.checker.mu.Unlock()
	for _, a := range g.checker.accounts {
		if a.admitted < min(a.minute, a.day)/2 {
			g.checker.violate(overForfeited, "%s was admitted %d times only", a.email, a.admitted)
		}
	}
}

// joinMax is how soon a node that joins a cluster with data answers its first request.
const joinMax = 5 * time.Second

// rollingClient sends requests to nodes in turn, and to the next one when a connection is refused, as a load balancer
// does; any other failure counts.
type rollingClient struct {
	*clusterTest
	c              *httpClient
	asked          atomic.Int64
	moved          atomic.Int64                // requests answered by another node, because a connection was refused
	moving         atomic.Pointer[clusterNode] // the node that stops or starts, until it is ready
	failedAtMoving atomic.Int64                // requests that failed at that node
}

// askInTurn reads or sets a rate, at one node after the other until one accepts the connection.
func (r *rollingClient) askInTurn(from int, writes bool) {
	r.asked.Add(1)
	var got answer
	var err error
	for i := range r.cluster.nodes {
		p := r.cluster.nodes[(from+i)%len(r.cluster.nodes)]
		moved := r.moving.Load() == p
		if writes {
			_, got = r.checker.set(&p.endpoint, r.checker.series[from%len(r.checker.series)])
		} else {
			got, err = r.c.do(http.MethodGet, p.url+"/v1/rates?currency=USD", "", nil)
		}
		switch {
		case err == nil && got.good():
			return
		case got.unsent():
			r.moved.Add(1)
			continue
		case moved || r.moving.Load() == p:
			r.failedAtMoving.Add(1)
			r.t.Logf("node %d, which stops or starts, answers %d %s, %v", p.number, got.status, got.code, err)
			return
		}
		break
	}
	r.violate(lostWrite, "no node takes a request: %d %s, %v: %.200s", got.status, got.code, err, got.body)
}

// replaceMachine empties the directory of a node and returns how soon the node answers a request with a key.
func (g *clusterTest) replaceMachine(p *clusterNode) (took time.Duration) {
	g.t.Helper()
	c, a := newHTTPClient(""), g.checker.accounts[0]
	defer c.close()
	g.revokeKeys(c, g.endpoint(0), a)
	key, _ := g.checker.newKey(c, g.endpoint(0), a)
	p.stop()
	noError(g.t, os.RemoveAll(p.data))
	noError(g.t, os.Mkdir(p.data, 0o700))
	began := time.Now()
	n := p.launch()
	if !comesTrue(healMax, func() bool { return p.knows(c, key.secret) && p.value(c, g.checker.series[0]) > 0 }) {
		g.t.Fatalf("the node does not answer:\n%s", n.Tail(30))
	}
	took = time.Since(began)
	p.ready(true)
	return took
}

// TestFaultsCluster_RollingRestart restarts one node after the other in order, with clients that use another node
// only when a connection is refused: no request may fail, and changes go on through the other nodes. Then one of them
// loses its directory.
func TestFaultsCluster_RollingRestart(t *testing.T) {
	g := newClusterTest(t, builtProgram(t), nil)
	g.stopLoad()
	g.stop = make(chan struct{})
	r := &rollingClient{clusterTest: g, c: newHTTPClient("")}
	defer r.c.close()
	var done sync.WaitGroup
	for worker := range 4 {
		done.Go(func() {
			w := g.client(uint64(worker))
			for turn := worker; g.pause(w, readerPause/2); turn++ {
				r.askInTurn(turn, worker == 0)
			}
		})
	}
	halt := sync.OnceFunc(func() { close(g.stop); done.Wait() })
	defer halt()
	var stops []time.Duration
	for range countFrom(t, "CLUSTER_ROLLS", 1) {
		for _, p := range g.cluster.nodes {
			r.moving.Store(p)
			began := time.Now()
			p.stop()
			stops = append(stops, time.Since(began))
			p.launch()
			p.ready(true)
			r.moving.Store(nil)
			g.faults++
		}
	}
	halt()
	joined := g.replaceMachine(g.cluster.nodes[2])
	if joined > joinMax {
		t.Errorf("the replaced node answered after %v, want %v", joined, joinMax)
	}
	g.conclude()
	if r.moved.Load() == 0 {
		t.Error("no connection was ever refused: the test has tested nothing")
	}
	figure(t, "%d restarts, each stop within %s: %d requests, %d of them answered by another node because the connection was refused, %d failed at the node that stopped or started; a replaced node answered after %v; %v",
		g.faults, quantiles(stops), r.asked.Load(), r.moved.Load(), r.failedAtMoving.Load(), joined.Round(time.Millisecond), g.checker)
}
