package actors

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/engine/account"
)

// clusterQuota is an account that is asked for on all nodes, and what the contract says of it.
type clusterQuota struct {
	*testCluster
	mu        sync.Mutex
	key       account.Digest
	reference *reference
	now       time.Duration // true
	wrong     string
	fresh     int // admitted since the last look
}

func newClusterQuota(t panicStops, seed uint64, quota account.Quota) *clusterQuota {
	f := startCluster(t, 3, seed, Config{QuotaPolicy: account.QuotaPolicy{DefaultQuota: quota}})
	_, key := f.nodes[0].loginWithKey()
	for _, s := range f.nodes {
		countAccounts(t, s.System) // after the message about the key: until then its callers are anonymous
	}
	return &clusterQuota{testCluster: f, key: key, reference: newReference(1, &testMember{}, quota)}
}

func (q *clusterQuota) ask(times int, nodes ...*clusterNode) {
	var working sync.WaitGroup
	for _, s := range nodes {
		for range times {
			working.Go(func() { q.judge(s.Admit(account.Caller{Key: q.key, HasKey: true, Address: client(0)})) })
		}
	}
	working.Wait()
}

func (q *clusterQuota) judge(grant account.Admission, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err == nil && grant.Admitted {
		q.fresh++
		err = q.reference.admit(q.now, grant.At.Day)
	}
	if err != nil {
		q.wrong = err.Error()
	}
}

func (q *clusterQuota) wait(d time.Duration) {
	q.now += d
	q.pass(d)
}

// play asks for minutes on all nodes, one after the other and at once, while the leader changes.
func (q *clusterQuota) play() string {
	for round := range 40 {
		if q.wrong != "" {
			break
		}
		nodes := q.nodes
		if round%4 == 2 {
			q.log.elect(q.nodes[round/4%len(q.nodes)].node)
		}
		if round%3 == 0 {
			nodes = q.nodes[round%len(q.nodes):][:1]
		}
		q.ask(1+round%9, nodes...)
		q.wait(time.Duration(round%13) * time.Second)
		if round%5 == 4 {
			q.rounds()
		}
	}
	return q.wrong
}

// rounds has all nodes return what they rest from.
func (f *testCluster) rounds() {
	for _, s := range f.nodes {
		for _, shard := range s.accounts.Shards {
			shard.Send(&accounts.CheckReturns{})
		}
		countAccounts(f.t, s.System)
		for _, shard := range s.accounts.Shards {
			shard.Send(&accounts.Flush{})
		}
		countAccounts(f.t, s.System)
	}
}

// spent is what a node knows to be spent of the day of the first account.
func (s *clusterNode) spent() int {
	_, verdict, err := s.ShowAccount(1)
	if err != nil {
		s.fleet.t.Fatal(err)
	}
	return verdict.Day.Limit - verdict.Day.Remaining
}

// TestShared_L2_NeverTooMuch asks for one account on three nodes, one after the other and at once, for minutes: no 60
// seconds and no day hold more than the limits, on all nodes together, and no caller gets an error.
func TestShared_L2_NeverTooMuch(t *testing.T) {
	for seed := range uint64(6) {
		q := newClusterQuota(t, seed, account.Quota{Day: 200, Minute: 40})
		if wrong := q.play(); wrong != "" {
			t.Errorf("seed %d: %s", seed, wrong)
		}
		if len(q.reference.admitted) < 100 {
			t.Errorf("seed %d: no more than %d were admitted", seed, len(q.reference.admitted))
		}
		q.stop()
	}
}

// TestShared_L2_Control_LeasesOfOthers hides from each node what the others lease.
func TestShared_L2_Control_LeasesOfOthers(t *testing.T) {
	q := newClusterQuota(t, 1, account.Quota{Day: 200, Minute: 40})
	defer q.stop()
	q.log.with(func() {
		for _, s := range q.nodes {
			s.node.deaf = func(event any) bool {
				lease, ok := event.(*account.Leased)
				return ok && lease.Node != s.node.id
			}
		}
	})
	if q.play() == "" {
		t.Error("the check did not notice that each node gave the whole quota")
	}
}

// TestShared_L1_RestingNodesReturn leases on one node and asks on another one: what the first one rests from, the
// second one gets.
func TestShared_L1_RestingNodesReturn(t *testing.T) {
	q := newClusterQuota(t, 1, account.Quota{Day: 60, Minute: 60})
	defer q.stop()
	for range 4 {
		q.ask(5, q.nodes[0])
		q.wait(2 * time.Second)
	}
	q.fresh = 0
	q.wait(account.LeaseSpan + 2*account.MinuteSpan)
	before := len(q.reference.admitted)
	for q.nodes[1].spent() != before { // a lease may be on its way yet, which is waited for
		q.rounds()
		runtime.Gosched()
	}
	q.ask(60, q.nodes[1])
	if q.fresh != 60-before || q.wrong != "" {
		t.Errorf("node 2 admitted %d of the %d that are left: %s", q.fresh, 60-before, q.wrong)
	}
}
