package actors

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/engine/account"
)

// fleetQuota is an account that is asked for on all nodes, and what the contract says of it.
type fleetQuota struct {
	*fleet
	mu        sync.Mutex
	key       account.Digest
	reference *reference
	now       time.Duration // true
	wrong     string
	fresh     int // admitted since the last look
}

func newFleetQuota(t fatalist, seed uint64, allowance account.Allowance) *fleetQuota {
	f := launch(t, 3, seed, Config{Terms: account.Terms{Allowance: allowance}})
	m := &member{email: mustEmail(t, "one@example.com")}
	m.token = f.nodes[0].login(m.email, client(1))
	_, secret, err := f.nodes[0].CreateKey(m.token, "")
	if err != nil {
		t.Fatal(err)
	}
	f.settled()
	for _, s := range f.nodes {
		s.census() // behind the letter about the key: until then who has it is a stranger
	}
	return &fleetQuota{fleet: f, key: secret.Digest(), reference: newReference(1, m, allowance)}
}

// ask is so many requests on each node at once.
func (q *fleetQuota) ask(times int, nodes ...*ship) {
	var working sync.WaitGroup
	for _, s := range nodes {
		for range times {
			working.Go(func() { q.judge(s.Admit(account.Caller{Key: q.key, HasKey: true, Address: client(0)})) })
		}
	}
	working.Wait()
}

func (q *fleetQuota) judge(grant account.Grant, err error) {
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

// wait lets true time go by.
func (q *fleetQuota) wait(d time.Duration) {
	q.now += d
	q.pass(d)
}

// play asks for minutes on all nodes by turns and at once.
func (q *fleetQuota) play() string {
	for round := range 40 {
		nodes := q.nodes
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
func (f *fleet) rounds() {
	for _, s := range f.nodes {
		for _, shard := range s.tenants.Shards.Refs {
			shard.Send(&accounts.Round{})
		}
		s.census()
		for _, shard := range s.tenants.Shards.Refs {
			shard.Send(&accounts.Wished{})
		}
		s.census()
	}
}

// spent is what a node knows to be spent of the day of the first account.
func (s *ship) spent() int {
	_, verdict, err := s.ShowAccount(1)
	if err != nil {
		s.fleet.t.Fatal(err)
	}
	return verdict.Day.Limit - verdict.Day.Remaining
}

func (s *ship) census() {
	if _, err := s.ListAccounts(); err != nil {
		s.fleet.t.Fatal(err)
	}
}

// TestShared_L2_NeverTooMuch asks for one account on three nodes, by turns and at once, for minutes: no 60 seconds and no day hold more than
// the limits, on all nodes together, and nobody gets an error.
func TestShared_L2_NeverTooMuch(t *testing.T) {
	for seed := range uint64(6) {
		q := newFleetQuota(t, seed, account.Allowance{Day: 200, Minute: 40})
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
	q := newFleetQuota(t, 1, account.Allowance{Day: 200, Minute: 40})
	defer q.stop()
	q.log.with(func() {
		for _, s := range q.nodes {
			s.node.deaf = true
		}
	})
	if q.play() == "" {
		t.Error("nobody noticed that each node gave the whole quota")
	}
}

// TestShared_L1_RestingNodesReturn leases on one node and asks on another one: what the first one rests from, the second one gets.
func TestShared_L1_RestingNodesReturn(t *testing.T) {
	q := newFleetQuota(t, 1, account.Allowance{Day: 60, Minute: 60})
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
