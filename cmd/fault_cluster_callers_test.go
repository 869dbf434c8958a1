//go:build faults

package cmd

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"runtime"
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

const (
	// readTimeMax is how long a read with a key may take, whatever happens to one node.
	readTimeMax = 250 * time.Millisecond
	// Accounts in use read 20 times a minute, a third of their quota. Those that wake have returned their leases when they
	// read again. The hungry one asks for eight times its quota.
	usedAccounts, usedPause       = 60, 3 * time.Second
	wakingAccounts, wakingPause   = 240, 24 * time.Second
	hungryClients, hungryPause    = 2, 250 * time.Millisecond
	hungryAccount                 = usedAccounts + wakingAccounts
	readsMinute                   = 60
	readsBefore, readsWithoutNode = 12 * time.Second, 6 * time.Second
)

// keyedReads are the reads of one kind of accounts.
type keyedReads struct {
	mu     sync.Mutex
	took   []time.Duration
	failed map[string]int // by status and code
}

func (r *keyedReads) note(got *answer, err error, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.took = append(r.took, took)
	switch {
	case err != nil:
		r.failed["no answer"]++
	case !got.good():
		r.failed[fmt.Sprint(got.status, " ", got.code)]++
	}
}

// String formats the figures.
func (r *keyedReads) String() string {
	failed := 0
	for count := range maps.Values(r.failed) {
		failed += count
	}
	return fmt.Sprintf("%d of %d failed %v, %s", failed, len(r.took), r.failed, quantiles(r.took))
}

// readTest reads with keys while nodes are killed.
type readTest struct {
	cluster *nodeCluster
	keys    []string
	began   time.Time
	stop    chan struct{}
	done    sync.WaitGroup

	used, waking keyedReads
	mu           sync.Mutex
	admitted     []interval // requests of the hungry account
}

func newReadTest(t *testing.T, program string) *readTest {
	t.Helper()
	g := &readTest{cluster: prepareCluster(t, program, nil), stop: make(chan struct{}), began: time.Now()}
	g.used.failed, g.waking.failed = map[string]int{}, map[string]int{}
	g.cluster.flags = nil
	g.keys = writeDataDir(t, g.cluster.nodes[0].data, hungryAccount+1)
	g.cluster.startAll()
	t.Cleanup(g.end)
	for i := range usedAccounts {
		g.client(i, usedPause, g.used.note)
	}
	for i := range wakingAccounts {
		g.client(usedAccounts+i, wakingPause, g.waking.note)
	}
	for range hungryClients {
		g.client(hungryAccount, hungryPause, nil)
	}
	return g
}

func (g *readTest) end() {
	select {
	case <-g.stop:
	default:
		close(g.stop)
	}
	g.done.Wait()
}

// client reads with a key until the test ends, at the node that it used last. It goes on to the next node only when a
// connection fails.
func (g *readTest) client(account int, pause time.Duration, note func(*answer, error, time.Duration)) {
	g.done.Go(func() {
		c, at := newHTTPClient(clientAddress(account)), account
		defer c.close()
		timer := time.NewTimer(upTo(rand.New(rand.NewPCG(uint64(account), 0)), pause))
		defer timer.Stop()
		for {
			select {
			case <-g.stop:
				return
			case <-timer.C:
			}
			timer.Reset(pause)
			sent := time.Since(g.began)
			got, err := g.read(c, &at, g.keys[account])
			i := interval{from: sent, to: time.Since(g.began)}
			switch {
			case note != nil:
				note(&got, err, i.to-i.from)
			case err == nil && got.good():
				g.mu.Lock()
				g.admitted = append(g.admitted, i)
				g.mu.Unlock()
			}
		}
	})
}

func (g *readTest) read(c *httpClient, at *int, key string) (got answer, err error) {
	for range g.cluster.nodes {
		m := g.cluster.nodes[*at%len(g.cluster.nodes)]
		if got, err = c.do(http.MethodGet, m.url+"/v1/rates/best?currency=USD&operation=buy", key, nil); err == nil {
			return got, nil
		}
		*at++
	}
	return got, err
}

// kill kills the leader or a follower under load, and starts it again.
func (g *readTest) kill(leads bool) {
	wait(readsBefore)
	victim := g.cluster.awaitLeader()
	if !leads {
		victim = g.cluster.nodes[victim.number%3]
	}
	victim.kill()
	wait(readsWithoutNode)
	victim.launch()
	victim.ready(true)
}

// busiestMinute returns the largest number of the hungry account's requests that were certainly admitted in one minute.
func (g *readTest) busiestMinute() (most int) {
	slices.SortFunc(g.admitted, func(a, b interval) int { return int(a.from - b.from) })
	for i := range g.admitted {
		count := 0
		for _, other := range g.admitted[i:] {
			if other.to < g.admitted[i].from+time.Minute {
				count++
			}
		}
		most = max(most, count)
	}
	return most
}

// failures returns what is wrong with the reads. An account without a lease at the node that it asks waits for the
// election of a leader, which takes longer on a busy machine: a few such reads may fail.
func (g *readTest) failures() (wrong []string) {
	for _, r := range []struct {
		reads   *keyedReads
		allowed int // one in so many may fail, or be slow
	}{{&g.used, 500}, {&g.waking, 50}} {
		bad := 0
		for _, took := range r.reads.took {
			if took > readTimeMax {
				bad++
			}
		}
		for _, count := range r.reads.failed {
			bad += count
		}
		if r.allowed*bad > len(r.reads.took) {
			wrong = append(wrong, r.reads.String())
		}
	}
	if most := g.busiestMinute(); most > readsMinute {
		wrong = append(wrong, fmt.Sprintf("%d requests of one account were admitted in a minute, of %d", most, readsMinute))
	}
	return wrong
}

// TestFaultsCluster_KeyedReads kills leaders and followers while callers read with keys, each within its quota: no
// read fails or takes long, and no account gets more than its quota.
func TestFaultsCluster_KeyedReads(t *testing.T) {
	g := newReadTest(t, builtProgram(t))
	for i := range countFrom(t, "CLUSTER_READS", 6) {
		g.kill(i%3 != 2)
	}
	g.end()
	figure(t, "accounts in use: %v; that wake: %v; at most %d in a minute of %d", &g.used, &g.waking, g.busiestMinute(), readsMinute)
	for _, wrong := range g.failures() {
		t.Error(wrong)
	}
}

// TestFaultsCluster_Busy keeps all processors busy beside a healthy cluster: none of 300 reads with keys fails.
func TestFaultsCluster_Busy(t *testing.T) {
	if g := busyReads(t, builtProgram(t)); len(g.used.took) < 300 || len(g.used.failed)+len(g.waking.failed) > 0 {
		t.Error("reads failed, or there were too few")
	}
}

// TestFaultsCluster_BusyControl plants a bug that TestFaultsCluster_Busy must find: a request hardly waits for a lease.
func TestFaultsCluster_BusyControl(t *testing.T) {
	impatient := buildWith(t, "impatient", plant{"actors/internal/accounts/accounts.go", "const leaseWaitMax = time.Second", "const leaseWaitMax = time.Microsecond"})
	if g := busyReads(t, impatient); len(g.used.failed)+len(g.waking.failed) == 0 {
		t.Error("requests that do not wait for a lease are not found out")
	}
}

func busyReads(t *testing.T, program string) *readTest {
	t.Helper()
	g := newReadTest(t, program)
	for range runtime.NumCPU() {
		spin := exec.Command("sh", "-c", "while :; do :; done")
		noError(t, spin.Start())
		defer func() { _ = spin.Process.Kill(); _ = spin.Wait() }()
	}
	wait(25 * time.Second)
	g.end()
	figure(t, "accounts in use: %v; that wake: %v", &g.used, &g.waking)
	return g
}

// TestFaultsCluster_KeyedReadsControl plants a bug that the test above must find: elections begin only when the leader
// has been silent, and nothing is leased ahead.
func TestFaultsCluster_KeyedReadsControl(t *testing.T) {
	t.Parallel()
	g := newReadTest(t, buildWith(t, "late-elections",
		plant{"actors/cluster/transport.go", "t.c.replica.connectionLost(h.Name)", ""},
		plant{"engine/account/lease.go", "if waiting == 0 && (", "if waiting == 0 && (true || "}))
	g.kill(true)
	g.kill(true)
	g.end()
	figure(t, "control, without the two: accounts in use: %v; that wake: %v", &g.used, &g.waking)
	if len(g.failures()) == 0 {
		t.Error("late elections are not found out")
	}
}
