package actors

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// login opens a session of one@example.com on this node; every node knows it when it returns.
func (s *clusterNode) login() account.Digest {
	s.fleet.t.Helper()
	token := login(s.fleet.t, s.System, s.fleet.mail, mustEmail(s.fleet.t, "one@example.com"), client(1))
	s.fleet.settled()
	return token
}

// loginWithKey is login, and creates a key.
func (s *clusterNode) loginWithKey() (token, key account.Digest) {
	s.fleet.t.Helper()
	token = s.login()
	_, secret, err := s.CreateKey(token, "")
	must(s.fleet.t, err)
	s.fleet.settled()
	return token, secret.Digest()
}

// allAccounts does the same on all nodes at once, several times on each.
func (f *testCluster) allAccounts(times int, do func(s *clusterNode, time int)) {
	var working sync.WaitGroup
	for _, s := range f.nodes {
		for time := range times {
			working.Go(func() { do(s, time) })
		}
	}
	working.Wait()
}

func (s *clusterNode) records() []account.Record {
	s.fleet.t.Helper()
	list, err := s.ListAccounts()
	must(s.fleet.t, err)
	var all []account.Record
	for _, summary := range list {
		record, _, err := s.ShowAccount(summary.ID)
		must(s.fleet.t, err)
		all = append(all, record)
	}
	return all
}

// logins are the addresses and sessions of a node as the log knows them, without monotonic times: each node has its
// own.
func (s *clusterNode) logins() ([]account.AddressState, []account.SessionState) {
	ready := make(chan struct{})
	c := &commitlog.StateSnapshot{Done: func(*commitlog.StateSnapshot) { close(ready) }}
	c.Pending.Store(1)
	s.accounts.Registrar.Send(&commitlog.SnapshotRequest{Snapshot: c})
	<-ready
	addresses := sortedAddresses(c.Registry.Registry)
	for i := range addresses {
		addresses[i].NextCodeAt, addresses[i].LastEventAt = 0, 0
	}
	sessions := c.Registry.Registry.Sessions
	for i := range sessions {
		sessions[i].Until = 0
	}
	return addresses, sessions
}

// sortedAddresses is a copy of the addresses of a registry.
func sortedAddresses(state account.RegistryState) []account.AddressState {
	var list []account.AddressState
	for _, row := range state.Addresses {
		list = append(list, *row)
	}
	slices.SortFunc(list, func(a, b account.AddressState) int {
		x, y := a.Email.Digest(), b.Email.Digest()
		return slices.Compare(x[:], y[:])
	})
	return list
}

// differs is how the accounts of the nodes differ, "" when they do not.
func (f *testCluster) differs() string {
	f.settled()
	records := f.nodes[0].records()
	addresses, sessions := f.nodes[0].logins()
	for _, s := range f.nodes[1:] {
		if other := s.records(); !reflect.DeepEqual(records, other) {
			return fmt.Sprintf("node %d has other accounts than node 1:\n%+v\n%+v", s.node.id, other, records)
		}
		a, b := s.logins()
		if !reflect.DeepEqual(a, addresses) || !reflect.DeepEqual(b, sessions) {
			return fmt.Sprintf("node %d has other addresses than node 1:\n%+v\n%+v\n%+v\n%+v", s.node.id, a, addresses, b, sessions)
		}
	}
	return ""
}

// createKeys creates keys on all nodes at once, and is what is wrong then: the account must have exactly two, those
// that were acknowledged.
func (f *testCluster) createKeys(token account.Digest) string {
	var mu sync.Mutex
	var made []string
	var wrong string
	f.allAccounts(3, func(s *clusterNode, _ int) {
		key, _, err := s.CreateKey(token, "")
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			made = append(made, key.ID)
		case accounts.AsEngineError(err).Code != engine.CodeKeyLimitReached:
			wrong = fmt.Sprintf("node %d: %v", s.node.id, err)
		}
	})
	if wrong != "" {
		return wrong
	}
	if len(made) != account.KeysActiveMax {
		return fmt.Sprintf("%d keys were made", len(made))
	}
	if different := f.differs(); different != "" {
		return different
	}
	for _, key := range f.nodes[0].records()[0].Keys {
		if !slices.Contains(made, key.ID) {
			return fmt.Sprintf("the key %s was not acknowledged", key.ID)
		}
	}
	return ""
}

// TestShared_K5_TwoActiveKeys creates nine keys of an account on three nodes at once: exactly two are made, and every
// node knows the same.
func TestShared_K5_TwoActiveKeys(t *testing.T) {
	for seed := range uint64(cases(8, 20)) {
		f := startCluster(t, 3, seed, Config{})
		if wrong := f.createKeys(f.nodes[0].login()); wrong != "" {
			t.Fatalf("seed %d: %s", seed, wrong)
		}
		f.stop()
	}
}

// broken is a test of a fleet that ends by a panic, for controls.
type broken struct{ t *testing.T }

func (b broken) Helper()                   { b.t.Helper() }
func (b broken) Fatal(args ...any)         { panic(errors.New(fmt.Sprint(args...))) }
func (b broken) Fatalf(f string, a ...any) { panic(fmt.Errorf(f, a...)) }

// catches plays something with a planted bug and reports whether it was noticed.
func catches(t *testing.T, play func(t panicStops) (wrong string)) (noticed bool) {
	t.Helper()
	defer func() {
		if reason := recover(); reason != nil {
			t.Logf("caught: %.300v", reason)
			noticed = true
		}
	}()
	wrong := play(broken{t})
	t.Logf("caught: %.300s", wrong)
	return wrong != ""
}

// TestShared_Control_EveryNodeLeads is TestShared_K5_TwoActiveKeys on nodes that all decide.
func TestShared_Control_EveryNodeLeads(t *testing.T) {
	for seed := range uint64(20) {
		var f *testCluster
		noticed := catches(t, func(b panicStops) string {
			f = startCluster(b, 3, seed, Config{WriteTimeout: 1e9})
			token := f.nodes[0].login()
			f.log.with(func() { f.log.lax = true })
			return f.createKeys(token)
		})
		for _, s := range f.nodes {
			_ = s.Close() // it may have stopped
		}
		if noticed {
			return
		}
	}
	t.Error("the check did not notice that every node decided")
}

// TestShared_Control_OthersAreNotReceived hides from one node what the others write.
func TestShared_Control_OthersAreNotReceived(t *testing.T) {
	f := startCluster(t, 3, 1, Config{})
	defer f.stop()
	f.log.with(func() { f.nodes[2].node.deaf = func(any) bool { return true } })
	f.nodes[0].login()
	if f.differs() == "" {
		t.Error("the check did not notice that a node had no reports of the others")
	}
}

// TestShared_K2_OneCodeOneSession tries the code that one node has sent on three nodes at once, several times on
// each: one session is opened, and one account begun, whatever node was first.
func TestShared_K2_OneCodeOneSession(t *testing.T) {
	for seed := range uint64(cases(8, 20)) {
		f := startCluster(t, 3, seed, Config{})
		email := mustEmail(t, "one@example.com")
		must(t, f.nodes[seed%3].RequestCode(email, requester(1)))
		f.settled()
		f.log.elect(f.nodes[seed%3].node) // mostly another leader than that of the code
		code := f.mail.code(email)
		var opened atomic.Int64
		f.allAccounts(3, func(s *clusterNode, time int) {
			_, _, err := s.OpenSession(email, code, requester(int(s.node.id)*10+time))
			switch {
			case err == nil:
				opened.Add(1)
			case accounts.AsEngineError(err).Code != engine.CodeInvalidCode:
				t.Errorf("node %d: %v", s.node.id, err)
			}
		})
		if n := opened.Load(); n != 1 {
			t.Errorf("seed %d: one code opened %d sessions", seed, n)
		}
		f.spread()
		if n := len(f.nodes[0].records()); n != 1 {
			t.Errorf("seed %d: %d accounts were begun", seed, n)
		}
		f.stop()
	}
}

// TestShared_K2_FiveTriesInAll tries wrong codes on three nodes at once. Behind four of them the right one opens a
// session on any node, behind five it does on none.
func TestShared_K2_FiveTriesInAll(t *testing.T) {
	for seed := range uint64(cases(8, 20)) {
		for _, wrong := range []int{account.CodeTriesMax - 1, account.CodeTriesMax} {
			f := startCluster(t, 3, seed, Config{})
			email := mustEmail(t, "one@example.com")
			if err := f.nodes[0].RequestCode(email, requester(1)); err != nil {
				t.Fatal(err)
			}
			f.settled()
			code := f.mail.code(email)
			var next atomic.Int64
			f.allAccounts(wrong, func(s *clusterNode, _ int) {
				if next.Add(1) > int64(wrong) {
					return
				}
				if _, _, err := s.OpenSession(email, notCode(code), requester(2)); accounts.AsEngineError(err).Code != engine.CodeInvalidCode {
					t.Errorf("node %d: a wrong code: %v", s.node.id, err)
				}
			})
			f.settled()
			_, _, err := f.nodes[seed%3].OpenSession(email, code, requester(3))
			if opens := wrong < account.CodeTriesMax; opens != (err == nil) {
				t.Errorf("seed %d: behind %d wrong tries the right code: %v", seed, wrong, err)
			}
			f.spread()
			f.stop()
		}
	}
}

func notCode(code string) string {
	if code[0] == '0' {
		return "1" + code[1:]
	}
	return "0" + code[1:]
}

// TestShared_NewAccountsAtOnce has three nodes begin accounts at once: no two have the same number, and all nodes
// know them all.
func TestShared_NewAccountsAtOnce(t *testing.T) {
	f := startCluster(t, 3, 1, Config{})
	defer f.stop()
	f.allAccounts(4, func(s *clusterNode, time int) {
		email := mustEmail(t, fmt.Sprintf("user%d-%d@example.com", s.node.id, time))
		from := client(int(s.node.id)*10 + time)
		if err := s.RequestCode(email, account.Requester{Address: from}); err != nil {
			t.Errorf("node %d: request a code: %v", s.node.id, err)
			return
		}
		if _, _, err := s.OpenSession(email, f.mail.code(email), account.Requester{Address: from}); err != nil {
			t.Errorf("node %d: open a session: %v", s.node.id, err)
		}
	})
	f.spread()
	if n := len(f.nodes[2].records()); n != 12 {
		t.Errorf("%d accounts, want 12", n)
	}
}

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
	must(s.fleet.t, err)
	return verdict.Day.Limit - verdict.Day.Remaining
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
