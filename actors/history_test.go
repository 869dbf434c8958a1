package actors

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

const (
	histories        = 50
	historiesCrashed = 20 // of them, with a crash in the middle
	historyClients   = 8
	historyRequests  = 12 // of each client
	historyLimit     = 60 // a day: less than the 96 that are asked for
	historyLease     = 4  // the largest
)

type operation struct {
	kind action
	key  int
}

type action int

const (
	actAdmit action = iota
	actRevoke
	actCrash
)

// result is how it came out; unanswered is what a crash leaves.
type result int

const (
	unanswered result = iota
	done
	refusedQuota
	refusedKey
)

// quotaState is the state of the model: what is charged and which keys are revoked.
type quotaState struct {
	spent   int
	revoked [2]bool
}

// quotaModel is one account with two keys as the contract describes it. A crash may charge up to one lease.
func quotaModel() porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{quotaState{}} },
		Step: func(state, input, output any) []any {
			return nextStates(state.(quotaState), input.(operation), output.(result))
		},
	}
	return model.ToModel()
}

func nextStates(s quotaState, d operation, e result) []any {
	charged, without := s, s
	charged.spent++
	without.revoked[d.key] = true
	switch {
	case d.kind == actCrash:
		var all []any
		for lost := range historyLease + 1 {
			after := s
			after.spent = min(historyLimit, s.spent+lost)
			all = append(all, after)
		}
		return all
	case d.kind == actRevoke && e == unanswered:
		return []any{s, without}
	case d.kind == actRevoke:
		return []any{without}
	case e == unanswered && (s.revoked[d.key] || s.spent >= historyLimit):
		return []any{s}
	case e == unanswered:
		return []any{s, charged}
	case e == done && !s.revoked[d.key] && s.spent < historyLimit:
		return []any{charged}
	case e == refusedKey && s.revoked[d.key], e == refusedQuota && !s.revoked[d.key] && s.spent >= historyLimit:
		return []any{s}
	}
	return nil
}

type recorder struct {
	ticks atomic.Int64
	mu    sync.Mutex
	all   []porcupine.Operation
}

func (r *recorder) note(client int, in, out any, call, back int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, porcupine.Operation{ClientId: client, Input: in, Output: out, Call: call, Return: back})
}

func (r *recorder) noted() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

// run is one client's part of a history. Answers after the crash do not count.
func (r *recorder) run(number int, asked caller, random *rand.Rand, crashed *atomic.Bool, until int64) {
	for i := range historyRequests {
		d := operation{actAdmit, random.IntN(2)}
		if number == 0 && i == historyRequests/2 {
			d.kind = actRevoke
		}
		call := r.ticks.Add(1)
		var e result
		if d.kind == actRevoke {
			e = asked.revoke(d.key)
		} else {
			e = asked.admit(d.key)
		}
		if crashed != nil && crashed.Load() {
			r.note(number, d, unanswered, call, until)
			return
		}
		r.note(number, d, e, call, r.ticks.Add(1))
	}
}

type caller struct {
	s *System
	m *testMember
}

func (a caller) admit(key int) result {
	grant, err := a.s.Admit(account.Caller{Key: a.m.keys[key], HasKey: true})
	switch {
	case isCode(err, engine.CodeRevokedKey):
		return refusedKey
	case err != nil:
		return unanswered
	case grant.Admitted:
		return done
	case grant.DenyCode == engine.CodeQuotaExceeded:
		return refusedQuota
	}
	return unanswered
}

func (a caller) revoke(key int) result {
	if err := a.s.RevokeKey(a.m.token, a.m.ids[key]); err != nil {
		return unanswered
	}
	return done
}

func startWithKeysRequired(t testing.TB, day, minute, lease int) *node {
	n := startNode(t, Config{QuotaPolicy: account.QuotaPolicy{DefaultQuota: account.Quota{Day: day, Minute: minute}, LeaseSize: lease}})
	if _, err := n.Announce(noon.Add(account.KeyNoticeMin), "luis"); err != nil {
		t.Fatal(err)
	}
	n.pass(account.KeyNoticeMin)
	return n
}

// oneHistory lets the clients loose on a node, with a crash in the middle or without; lazy is the planted
// lie of the journal.
func oneHistory(t *testing.T, seed uint64, lease int, crash, lazy bool) []porcupine.Operation {
	n := startWithKeysRequired(t, historyLimit, 1000, lease)
	m := n.join(1, 2)
	n.journal.setLazy(lazy)
	r := &recorder{}
	const infinity = math.MaxInt64 / 2
	var crashed atomic.Bool
	phase := func(asked caller, of int, crashed *atomic.Bool, until int64) *sync.WaitGroup {
		var clients sync.WaitGroup
		for number := range historyClients {
			random := rand.New(rand.NewPCG(seed, uint64(of*historyClients+number)))
			clients.Go(func() { r.run(number, asked, random, crashed, until) })
		}
		return &clients
	}
	if !crash {
		phase(caller{n.System, m}, 0, nil, infinity).Wait()
		return r.all
	}
	until := int64(infinity / 2)
	clients := phase(caller{n.System, m}, 0, &crashed, until)
	for target := 1 + int(seed%(historyClients*historyRequests/2)); r.noted() < target; {
		runtime.Gosched()
	}
	crashed.Store(true)
	image := n.journal.crashed()
	clients.Wait()
	n.stop()
	r.note(historyClients, operation{kind: actCrash}, done, until+1, until+2)
	n.boot(image)
	r.ticks.Store(until + 3)
	phase(caller{n.System, m}, 1, nil, infinity).Wait()
	return r.all
}

// Every history of both keys, revocations and crashes is one that a single counter could have given.
func TestQ1_HistoriesAreLinearizable(t *testing.T) {
	checkHistories(t, histories, historiesCrashed)
}

func checkHistories(t *testing.T, count, withCrash int) {
	t.Helper()
	answered, lost := 0, 0
	for seed := range uint64(count) {
		all := oneHistory(t, seed, 1+int(seed%historyLease), seed < uint64(withCrash), false)
		for _, op := range all {
			if op.Output == unanswered {
				lost++
			} else {
				answered++
			}
		}
		if got := porcupine.CheckOperationsTimeout(quotaModel(), all, time.Minute); got != porcupine.Ok {
			t.Fatalf("history %d is %s:\n%+v", seed, got, all)
		}
	}
	t.Logf("FIGURE %d histories, %d of them with a crash: %d operations answered, %d not", count, withCrash, answered, lost)
	if lost == 0 || answered == 0 {
		t.Error("no crash interrupted a request, or no request was answered")
	}
}

// A journal that acknowledges before it keeps gives a lease, or a revoked key, twice. With leases of one the
// last request that was answered is the one that is lost.
func TestQ1_Control_LeaseThatIsNotDurableIsIllegal(t *testing.T) {
	for seed := range uint64(4 * histories) {
		all := oneHistory(t, seed, 1, true, true)
		if porcupine.CheckOperationsTimeout(quotaModel(), all, time.Minute) == porcupine.Illegal {
			t.Logf("caught in history %d", seed)
			return
		}
	}
	t.Error("a journal that acknowledges before it keeps is not caught")
}

// 8 clients with both keys of one account, 2,000 requests on a limit of 1,000.
func TestQ1_ExactlyTheLimitIsAdmitted(t *testing.T) { exactlyTheLimit(t, 1, account.LeaseSizeDefault) }

func exactlyTheLimit(t *testing.T, leases ...int) {
	for _, lease := range leases {
		n := startNode(t, Config{QuotaPolicy: account.QuotaPolicy{DefaultQuota: account.Quota{Minute: accounts.QuotaMinuteMax}, LeaseSize: lease}})
		m := n.join(1, 2)
		var clients sync.WaitGroup
		var counts [refusedKey + 1]atomic.Int64
		for number := range 8 {
			clients.Go(func() {
				for range 250 {
					counts[caller{n.System, m}.admit(number%2)].Add(1)
				}
			})
		}
		clients.Wait()
		if admitted, refused := counts[done].Load(), counts[refusedQuota].Load(); admitted != account.DayLimitDefault || refused != 2000-admitted {
			t.Errorf("lease %d: %d admitted, %d refused", lease, admitted, refused)
		}
		n.crash()
		if asked := (caller{n.System, m}); asked.admit(0) != refusedQuota || asked.admit(1) != refusedQuota {
			t.Errorf("lease %d: admitted after the crash", lease)
		}
	}
}

// Fifty creations side by side make two keys, and none more after a crash.
func TestK5_S7_ThirdKeyUnderParallelCreations(t *testing.T) {
	n := startNode(t, Config{})
	m := n.join(1, 0)
	var creators sync.WaitGroup
	var made, refused atomic.Int64
	for range 50 {
		creators.Go(func() {
			switch _, _, err := n.CreateKey(m.token, "x"); {
			case err == nil:
				made.Add(1)
			case isCode(err, engine.CodeKeyLimitReached):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	creators.Wait()
	n.crash()
	keys, err := n.Keys(m.token)
	if made.Load() != 2 || refused.Load() != 48 || err != nil || len(keys) != 2 {
		t.Errorf("%d made, %d refused; %d keys, %v", made.Load(), refused.Load(), len(keys), err)
	}
	must(t, n.RevokeKey(m.token, keys[0].ID))
	if _, _, err := n.CreateKey(m.token, "third"); err != nil {
		t.Errorf("after a revocation: %v", err)
	}
}
