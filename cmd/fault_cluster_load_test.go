//go:build faults

package cmd

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	clusterReaders    = 6
	clusterWriters    = 4 // of rates, each with its own series
	clusterKeyWriters = 2 // creating and revoking keys
	// minuteLimitAccounts always reach their limit per minute; the others reach that of a day, which is raised again
	// and again.
	minuteLimitAccounts, dayLimitAccounts = 2, 2
	minuteLimit, dayLimit                 = 15, 40
	unreachedLimit                        = 1_000_000 // of a day, never reached
	// faultsForAll is a number of faults that leaves time for everything, also for what happens every few seconds.
	faultsForAll = 20
	// readerPause and writerPause keep the load small: these tests are about faults, and the nodes share a machine.
	readerPause, writerPause, keyWriterPause = 40 * time.Millisecond, 150 * time.Millisecond, 400 * time.Millisecond
)

// clusterTest is a cluster under load, with its checker, whose nodes are killed or cut off.
type clusterTest struct {
	t       *testing.T
	cluster *nodeCluster
	checker *checker
	seed    uint64
	stop    chan struct{}
	over    atomic.Bool
	done    sync.WaitGroup

	faults       int
	chosenFaults int // of the kind chosenKind
	chosenKind   string
	writeGaps    []time.Duration // from a fault to the first write after it
	clocksDiffer bool            // by more than a lease of the task to collect allows
	partitions   partitionStats
}

// newClusterTest starts a cluster, signs up accounts at its nodes and starts the load.
func newClusterTest(t *testing.T, program string, s *virtualNetwork, clocks ...*wallClock) *clusterTest {
	t.Helper()
	g := &clusterTest{t: t, cluster: newNodeCluster(t, program, s, clocks...), checker: newChecker(limits{}), seed: newSeed(t), stop: make(chan struct{})}
	g.partitions.ways = map[string]int{}
	g.checker.publishing(clusterWriters + 2*len(g.cluster.nodes))
	for i := range minuteLimitAccounts + dayLimitAccounts {
		day, minute := unreachedLimit, minuteLimit
		if i >= minuteLimitAccounts {
			day, minute = dayLimit, clusterMinute
		}
		g.signUp(i, g.checker.newAccount(fmt.Sprintf("holder-%d@example.com", i), day, minute))
	}
	for _, one := range g.checker.series {
		if _, got := g.checker.set(g.endpoint(0), one); !got.good() {
			t.Fatal(got.failure("set the first rate", nil))
		}
	}
	if !g.cluster.awaitSameRecords() {
		t.Fatal("the nodes do not come to the same record")
	}
	g.load()
	return g
}

// endpoint returns a node as clients see it.
func (g *clusterTest) endpoint(index int) *endpoint {
	return &g.cluster.nodes[index%len(g.cluster.nodes)].endpoint
}

// signUp signs up an account at one node and sets its limits through another.
func (g *clusterTest) signUp(number int, a *trackedAccount) {
	g.t.Helper()
	c := newHTTPClient(g.cluster.clientAddress(number))
	defer c.close()
	noError(g.t, g.checker.signIn(g.cluster.mail, c, g.endpoint(number), a))
	var got answer
	var err error
	if !comesTrue(healMax, func() bool { // the other node may not know the account yet
		got, err = g.checker.limit(g.endpoint(number+1), a, a.day)
		return err == nil && got.good()
	}) {
		g.t.Fatal(got.failure("limit "+a.email, err))
	}
}

// clientAddress is the source address of client n; on a virtual network, where clients have one address, the default.
func (r *nodeCluster) clientAddress(n int) string {
	if r.network != nil {
		return ""
	}
	return clientAddress(n)
}

// load starts all clients, which go on through every fault until stopLoad.
func (g *clusterTest) load() {
	g.t.Cleanup(g.stopLoad)
	number := uint64(0)
	begin := func(count int, pause time.Duration, each func(w *loadClient)) {
		for range count {
			number++
			w := g.client(number)
			g.done.Go(func() {
				defer w.c.close()
				for g.pause(w, pause) {
					each(w)
				}
			})
		}
	}
	begin(clusterReaders, readerPause, func(w *loadClient) { w.read(w.own[w.chance.IntN(len(w.own))], 5, 12) })
	for writer := range clusterWriters {
		begin(1, writerPause, func(w *loadClient) {
			if m := w.anyNode(); m != nil {
				w.set(m, w.series[writer])
			}
		})
	}
	begin(clusterKeyWriters, keyWriterPause, (*loadClient).changeKeys)
	begin(1, 500*time.Millisecond, g.renewLimits)
	begin(1, 5*time.Second, g.guessCode)
}

// stopLoad stops the load and waits for it.
func (g *clusterTest) stopLoad() {
	if !g.over.Swap(true) {
		close(g.stop)
	}
	g.done.Wait()
}

// conclude stops the load, starts every node and checks everything.
func (g *clusterTest) conclude() {
	g.t.Helper()
	g.stopLoad()
	g.cluster.startAll()
	g.checkAtRest()
	g.checker.report(g.t)
}

// finish is conclude after faults under load, of which there must have been at least one.
func (g *clusterTest) finish() {
	g.t.Helper()
	g.conclude()
	done := []string{"rates", "reads", "keyed reads", "keys"}
	if g.faults >= faultsForAll {
		done = append(done, "revocations", "limits", "codes", "sessions")
	}
	for _, what := range done {
		if g.checker.count(what, acknowledged) == 0 {
			g.t.Errorf("no %s were ever acknowledged", what)
		}
	}
}

// checkAtRest is the final check: no faults, all nodes up, no writes.
func (g *clusterTest) checkAtRest() {
	g.t.Helper()
	l := g.checker
	if !g.cluster.awaitSameRecords() {
		g.violate(unexplained, "the nodes do not come to the same record")
		return
	}
	for i, a := range l.accounts {
		if time.Since(a.sessionStart) < sessionAgeMax {
			continue
		}
		c := newHTTPClient(g.cluster.clientAddress(500 + i))
		var err error
		if !comesTrue(90*time.Second, func() bool { err = l.signIn(g.cluster.mail, c, g.endpoint(i), a); return err == nil }) {
			g.violate(lostWrite, "%v", err)
		}
		c.close()
	}
	g.cluster.awaitSameRecords() // so that all nodes know the sessions
	l.checkAll(g.cluster.endpoints()...)
	if !g.clocksDiffer {
		l.checkOwners(g.cluster.ownerships())
	}
}

// awaitWrite waits until a write is acknowledged that was sent after a fault, and records how long that took.
func (g *clusterTest) awaitWrite(fault time.Duration) {
	g.t.Helper()
	first := time.Duration(0)
	if !comesTrue(healMax, func() (is bool) { first, is = g.checker.writtenAfter(fault); return is }) {
		g.t.Errorf("nothing was written for %v after fault %d", healMax, g.faults)
		return
	}
	g.writeGaps = append(g.writeGaps, first-fault)
}

// chance is the random source of the faults.
func (g *clusterTest) chance() *rand.Rand {
	return rand.New(rand.NewPCG(g.seed, 1<<32+uint64(g.faults)))
}

// quantiles formats the median, the 99th percentile and the maximum of some durations.
func quantiles(spans []time.Duration) string {
	if len(spans) == 0 {
		return "none"
	}
	sorted := slices.Sorted(slices.Values(spans))
	at := func(part int) float64 { return sorted[min(len(sorted)-1, len(sorted)*part/100)].Seconds() }
	return fmt.Sprintf("p50 %.3f s, p99 %.3f s, max %.3f s", at(50), at(99), at(100))
}

// countFrom reads a count from an environment variable.
func countFrom(t *testing.T, variable string, usual int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	count, err := strconv.Atoi(text)
	if err != nil || count < 1 {
		t.Fatalf("%s is %q: want a number from 1 on", variable, text)
	}
	return count
}

// client makes a load client.
func (g *clusterTest) client(number uint64) *loadClient {
	chance := rand.New(rand.NewPCG(g.seed, number))
	up := func() (members []*endpoint) {
		for _, i := range chance.Perm(len(g.cluster.nodes)) {
			if g.cluster.nodes[i].alive() {
				members = append(members, g.endpoint(i))
			}
		}
		return members
	}
	return newLoadClient(g.checker, newHTTPClient(""), chance, up, g.checker.accounts)
}

// pause waits for about a duration; false if the load is to end.
func (g *clusterTest) pause(w *loadClient, about time.Duration) bool {
	timer := time.NewTimer(about/2 + upTo(w.chance, about))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-g.stop:
		return false
	}
}

// renewLimits raises daily limits, and renews sessions before they expire.
func (g *clusterTest) renewLimits(w *loadClient) {
	m, a := w.anyNode(), w.own[w.chance.IntN(len(w.own))]
	if m == nil {
		return
	}
	if w.chance.IntN(10) == 0 && a.minute == clusterMinute {
		_, _ = w.limit(m, a, a.day+dayLimit) // the checker has recorded it
	}
	for _, a := range w.own {
		if time.Since(a.sessionStart) > sessionAgeMax {
			_ = w.signIn(g.cluster.mail, w.c, m, a) // a node may be down: retried soon
		}
	}
}

// guessCode requests a code from one node and tries it at all nodes at once: it opens one session, whatever happens
// meanwhile (decision K2).
func (g *clusterTest) guessCode(w *loadClient) {
	members := w.up()
	if len(members) > 0 {
		w.mu.Lock()
		number := w.codeTrials
		w.mu.Unlock()
		g.guessCodeAtAll(fmt.Sprintf("trial-%d-%d@example.com", g.seed%1000, number), 1000+5*number, members, 0, false)
	}
}

// guessCodeAtAll requests a code from one node, and tries wrong codes and the right one at all nodes at once, twice
// at each.
func (g *clusterTest) guessCodeAtAll(email string, from int, members []*endpoint, wrongTries int, calm bool) {
	l, c := g.checker, newHTTPClient(g.cluster.clientAddress(from))
	defer c.close()
	code, got, err := g.cluster.mail.askCode(c, members[0].url, email)
	l.mu.Lock()
	l.codeTrials++
	l.countOutcome("codes", members[0], &got, err)
	l.mu.Unlock()
	if code == "" || calm && !g.cluster.awaitSameRecords() { // a node that does not know the code yet does not count tries
		if calm {
			g.t.Error(got.failure("ask a code", err))
		}
		return
	}
	twice := slices.Concat(members, members)
	var tried, opened atomic.Int32
	atOnce(twice[:min(wrongTries, len(twice))], func(m *endpoint) {
		if _, got, err := openSession(c, m.url, email, wrong(code)); err == nil && got.status == http.StatusUnauthorized {
			tried.Add(1)
		}
	})
	atOnce(twice, func(m *endpoint) {
		token, got, err := openSession(c, m.url, email, code)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.countOutcome("sessions", m, &got, err); token != "" {
			opened.Add(1)
		}
	})
	l.countSessions(email, int(opened.Load()), int(tried.Load()), calm && wrongTries == 0)
}
