//go:build faults

package faults

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// joinMax is how soon a node that comes to a cluster with data answers its first request.
const joinMax = 5 * time.Second

// roller asks nodes in turn, and goes to the next one when nothing listens, as a balancer does; whatever else goes wrong has failed.
type roller struct {
	*campaign
	c      *caller
	asked  atomic.Int64
	moved  atomic.Int64         // requests that another node answered, because a connection was refused
	moving atomic.Pointer[peer] // the node that stops or starts: until it says that it is ready
	there  atomic.Int64         // requests that failed at the node that was stopping or starting
}

// turn asks one node after the other, from one on, for a rate or to set one, until one takes the connection.
func (r *roller) turn(from int, writes bool) {
	r.asked.Add(1)
	var got answer
	var err error
	for i := range r.rig.peers {
		p := r.rig.peers[(from+i)%len(r.rig.peers)]
		moved := r.moving.Load() == p
		if writes {
			_, got = r.ledger.set(&p.member, r.ledger.series[from%len(r.ledger.series)])
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
			r.there.Add(1)
			r.t.Logf("node %d, which stops or starts, answers %d %s, %v", p.number, got.status, got.code, err)
			return
		}
		break
	}
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()
	r.ledger.wrong(lost, "no node takes a request: %d %s, %v: %.200s", got.status, got.code, err, got.body)
}

// joins starts a guest with an empty directory beside nodes with data and wants its first good answer to a request with a key. In the end
// it must be as the others are.
func (g *campaign) joins() (took time.Duration) {
	g.t.Helper()
	c, a := newCaller(""), g.ledger.accounts[0]
	defer c.close()
	g.endKeys(c, g.at(0), a)
	key, _ := g.ledger.newKey(c, g.at(0), a)
	guest := g.rig.newPeer(g.t.TempDir(), len(g.rig.peers)+1, freeHosts(g.t, 1)[0])
	began := time.Now()
	n := guest.launch()
	if !soon(healMax, func() bool { return guest.knows(c, key.secret) && guest.value(c, g.ledger.series[0]) > 0 }) {
		g.t.Fatalf("the guest does not answer:\n%s", n.tail(30))
	}
	took = time.Since(began)
	guest.ready(true)
	g.rig.peers = append(g.rig.peers, guest)
	return took
}

// TestFaultsCluster_RollingRestart stops one node after the other in order and starts it again, while callers ask that go to another node
// only when a connection is refused: not one request may fail, and changes go on through the other nodes. Then a fourth one joins them.
func TestFaultsCluster_RollingRestart(t *testing.T) {
	g := newCampaign(t, program(t), nil)
	g.quiet()
	g.stop = make(chan struct{})
	r := &roller{campaign: g, c: newCaller("")}
	defer r.c.close()
	var done sync.WaitGroup
	for worker := range 4 {
		done.Go(func() {
			w := g.client(uint64(worker))
			for turn := worker; g.rest(w, readerPause/2); turn++ {
				r.turn(turn, worker == 0)
			}
		})
	}
	halt := sync.OnceFunc(func() { close(g.stop); done.Wait() })
	defer halt()
	var stops []time.Duration
	for range countFrom(t, "CLUSTER_ROLLS", 1) {
		for _, p := range g.rig.peers {
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
	joined := g.joins()
	if joined > joinMax {
		t.Errorf("the guest answered after %v, want %v", joined, joinMax)
	}
	g.conclude()
	if r.moved.Load() == 0 {
		t.Error("no connection was ever refused: the test has tested nothing")
	}
	figure(t, "%d restarts, each stop within %s: %d requests, %d of them answered by another node because the connection was refused, %d failed at the node that stopped or started; a guest answered after %v; %v",
		g.faults, quantiles(stops), r.asked.Load(), r.moved.Load(), r.there.Load(), joined.Round(time.Millisecond), g.ledger)
}
