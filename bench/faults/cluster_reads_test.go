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

const (
	readSlowest    = 250 * time.Millisecond // no keyed read may take longer, whatever happens to one node
	usedAccounts   = 30
	wakingAccounts = 30
	usedPause      = 3 * time.Second // 20 requests a minute of 60
	wakingPause    = 20 * time.Second
	hungryPause    = 250 * time.Millisecond // four times the quota
	readsBefore    = 40 * time.Second
	readsAfter     = 20 * time.Second
	readsLimit     = 60 // of a minute
)

// keyedReads are the keyed reads of one kind of account: how many there were, and those that failed.
type keyedReads struct {
	mu      sync.Mutex
	count   int
	failed  map[string]int // by status and code
	slowest time.Duration
}

func (r *keyedReads) note(got *answer, err error, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	r.slowest = max(r.slowest, took)
	switch {
	case err != nil:
		r.failed["no answer"]++
	case !got.good():
		r.failed[fmt.Sprint(got.status, " ", got.code)]++
	}
}

// String formats the figures.
func (r *keyedReads) String() string {
	total := 0
	for _, count := range r.failed {
		total += count
	}
	text := fmt.Sprintf("%d of %d failed, slowest %.3f s", total, r.count, r.slowest.Seconds())
	if total > 0 {
		text += fmt.Sprintf(" (%v)", r.failed)
	}
	return text
}

// readTest reads with keys while a node is killed.
type readTest struct {
	cluster *nodeCluster
	keys    []string
	stop    chan struct{}
	done    sync.WaitGroup

	used, waking keyedReads
	mu           sync.Mutex
	hungry       []interval // admitted requests of the account that asks for more than its quota
}

// read asks the node that the client used last, and goes on to the next one only on a connection error.
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

// client reads with one key until the test ends.
func (g *readTest) client(number int, first, pause time.Duration, note func(*answer, error, interval)) {
	g.done.Go(func() {
		c, at, began := newHTTPClient(""), number, time.Now()
		defer c.close()
		timer := time.NewTimer(first)
		defer timer.Stop()
		for {
			select {
			case <-g.stop:
				return
			case <-timer.C:
			}
			timer.Reset(pause)
			sent := time.Since(began)
			got, err := g.read(c, &at, g.keys[number])
			note(&got, err, interval{from: sent, to: time.Since(began)})
		}
	})
}

// killed measures keyed reads while one node is killed: accounts in use, accounts that wake during the outage, and one
// that asks for more than its quota.
func (g *readTest) killed(t *testing.T, victim *clusterNode) {
	t.Helper()
	g.stop, g.hungry = make(chan struct{}), nil
	g.used.failed, g.waking.failed = map[string]int{}, map[string]int{}
	for i := range usedAccounts {
		g.client(i, usedPause*time.Duration(i)/usedAccounts, usedPause, func(got *answer, err error, i interval) { g.used.note(got, err, i.to-i.from) })
	}
	for i := range wakingAccounts {
		first := readsBefore - wakingPause + 6*time.Second*time.Duration(i)/wakingAccounts
		g.client(usedAccounts+i, first, wakingPause, func(got *answer, err error, i interval) { g.waking.note(got, err, i.to-i.from) })
	}
	began := time.Now()
	for range 2 {
		g.client(usedAccounts+wakingAccounts, 0, hungryPause, func(got *answer, _ error, i interval) {
			if got.good() {
				g.mu.Lock()
				defer g.mu.Unlock()
				g.hungry = append(g.hungry, i)
			}
		})
	}
	wait(readsBefore)
	victim.kill()
	wait(readsAfter)
	close(g.stop)
	g.done.Wait()
	_ = began
	figure(t, "accounts in use: %v; that wake: %v; of an account that asks for more, at most %d in a minute of %d", &g.used, &g.waking, g.busiestMinute(), readsLimit)
}

// busiestMinute is the largest number of requests of the hungry account that were certainly admitted within a minute.
func (g *readTest) busiestMinute() (most int) {
	slices.SortFunc(g.hungry, func(a, b interval) int { return int(a.from - b.from) })
	for i := range g.hungry {
		count := 0
		for _, other := range g.hungry[i:] {
			if other.to < g.hungry[i].from+time.Minute {
				count++
			}
		}
		most = max(most, count)
	}
	return most
}

func TestFaultsCluster_KeyedReads(t *testing.T) {
	g := &readTest{cluster: prepareCluster(t, program(t), nil)}
	g.cluster.flags = nil
	g.keys = writeDataDir(t, g.cluster.nodes[0].data, usedAccounts+wakingAccounts+1)
	g.cluster.startAll()
	for _, kind := range []string{"leader", "follower"} {
		leader := g.cluster.awaitLeader()
		victim := leader
		if kind == "follower" {
			victim = g.cluster.nodes[leader.number%3]
		}
		progress(t, "the %s, node %d, will be killed", kind, victim.number)
		g.used, g.waking = keyedReads{}, keyedReads{}
		g.killed(t, victim)
		g.cluster.startAll()
	}
}
