package actors

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// panicInjector says over which messages an actor panics, by chance.
type panicInjector struct {
	mu        sync.Mutex
	random    *rand.Rand
	reading   int  // one in so many messages whose panic costs a request; 0 = none
	changing  int  // one in so many messages whose panic stops the node, once; 0 = none
	forgetful bool // planted: the actor of an account is started again empty, as the library does it by itself

	requests int            // that a panic cost
	crowds   int            // the same, of requests to several actors at once
	stops    int            // of the node
	kinds    map[string]int // messages that were hit
}

func (s *panicInjector) shouldPanic(r mailbox.Actor, l mailbox.Message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	fatal := r.FailsNode(l)
	if _, end := l.(*mailbox.NodeFailed); end || fatal && s.stops > 0 {
		return false
	}
	odds := s.reading
	if fatal {
		odds = s.changing
	}
	if odds == 0 || s.random.IntN(odds) > 0 {
		return false
	}
	s.kinds[fmt.Sprintf("%T over %T", r, l)]++
	switch l.(type) {
	case *accounts.Refund: // its result is not used
	case *accounts.ListRequest: // asked of all shards, and one error is reported
		s.crowds++
	default:
		if fatal {
			s.stops++
		} else {
			s.requests++
		}
	}
	return true
}

// panickingActor stands between a mailbox and its actor.
type panickingActor struct {
	mailbox.Actor
	*panicInjector
}

// Receive is mailbox.Actor. A one-way message is also hit when its work is done: half of what it was there for.
func (s *panickingActor) Receive(l mailbox.Message) {
	if shard, is := s.Actor.(*accounts.ShardActor); is {
		for _, one := range shard.Accounts {
			s.wrap(&one.Ref)
		}
	}
	if !s.shouldPanic(s.Actor, l) {
		s.Actor.Receive(l)
		return
	}
	account, is := s.Actor.(*accounts.AccountActor)
	if is && s.forgetful {
		startAgain(account)
		l.Reject(accounts.Internal(nil))
		return
	}
	if !l.IsRequest() {
		s.Actor.Receive(l)
	}
	panic("planted")
}

// startAgain is what the library's own supervisor makes of a panic: the same actor with nothing in it but what it was
// made of.
func startAgain(a *accounts.AccountActor) {
	record := a.Account.Record()
	a.Account = account.New(a.ID)
	a.Account.Apply(&account.Created{Account: a.ID, Email: record.Email, At: record.CreatedAt}, account.ClockReading{})
	for _, key := range record.Keys {
		a.Account.Apply(&account.KeyCreated{Account: a.ID, Key: key}, account.ClockReading{})
	}
	a.RejectQueued(accounts.Internal(nil))
	a.Granting, a.Changes = false, 0
}

// wrap puts a saboteur in front of an actor that does nothing at the moment. False: it is busy.
func (s *panicInjector) wrap(to *mailbox.Ref) bool {
	held, state := withinBubble[sync.Mutex](to, "mu"), withinBubble[mailbox.Actor](to, "actor")
	held.Lock()
	defer held.Unlock()
	if *withinBubble[bool](to, "running") {
		return false
	}
	inner := *state
	if before, already := inner.(*panickingActor); already {
		inner = before.Actor
	}
	*state = &panickingActor{inner, s}
	return true
}

func (s *panicInjector) wrapAll(n *node) {
	k, t := &n.kinds, &n.accounts.Kinds
	for _, kind := range []*mailbox.Kind{&k.currency, &t.Registrar, &t.Shard, &k.journal, &k.reader, &t.Anonymous} {
		for _, to := range kind.Refs() {
			for !s.wrap(to) {
				runtime.Gosched()
			}
		}
	}
}

// panicRun is a node whose actors panic, with the record of what was acknowledged.
type panicRun struct {
	*node
	random   *rand.Rand
	plan     *panicInjector
	members  []*survivor
	visitors int       // addresses used up
	entered  time.Time // when the accounts logged in
	shown    int       // newest publication that was acknowledged
	asked    int       // publications

	mu       sync.Mutex
	faults   []string
	internal int // answers of internal errors
	answers  int
}

type survivor struct {
	*testMember
	number   int
	admitted int
	slack    int // what stops may have cost it
	maybe    int // keys whose revocation was not answered
}

func (w *panicRun) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

// panicRunAccounts is how many accounts ask side by side; what one of them loses may cost no other one anything.
const panicRunAccounts = 4

func newPanicRun(t testing.TB, seed uint64) *panicRun {
	w := &panicRun{random: rand.New(rand.NewPCG(5, seed))}
	w.node = startNode(t, Config{
		QuotaPolicy:   account.QuotaPolicy{DefaultQuota: account.Quota{Day: 1_000_000, Minute: accounts.QuotaMinuteMax}},
		AccountShards: 2, SnapshotRecords: 60, WriteTimeout: accounts.AskTimeout,
	})
	observe(t, w.System, saying("bhd-site", noon, "USD", "58.00", sideOf(0), "bhd"))
	w.entered = w.clock.Read()
	for number := 1; number <= panicRunAccounts; number++ {
		w.members = append(w.members, &survivor{testMember: w.join(number, 1), number: number})
	}
	return w
}

// note judges an answer. Every request must have one; only a node that stops may refuse, and only a panic may be an
// internal error.
func (w *panicRun) note(what string, err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers++
	stopped := w.Err() != nil
	switch {
	case err == nil:
		return true
	case errors.Is(err, mailbox.ErrExpired):
		w.faults = append(w.faults, what+": the message is lost: "+err.Error())
	case isCode(err, engine.CodeInternalError):
		w.internal++
	case stopped && (isCode(err, engine.CodeReadOnly) || isCode(err, engine.CodeDataUnavailable)):
	case isCode(err, engine.CodeKeyLimitReached), isCode(err, engine.CodeRequestedTooSoon), isCode(err, engine.CodeRateLimited):
	default:
		w.faults = append(w.faults, fmt.Sprintf("%s: %v", what, err))
	}
	return false
}

func (w *panicRun) live(plan *panicInjector, requests int) {
	w.plan, w.internal = plan, 0
	plan.random, plan.kinds = rand.New(rand.NewPCG(w.random.Uint64(), 1)), map[string]int{}
	plan.wrapAll(w.node)
	var all sync.WaitGroup
	for _, s := range w.members {
		random := rand.New(rand.NewPCG(w.random.Uint64(), 2))
		all.Go(func() {
			for range requests {
				w.use(s, random)
			}
		})
	}
	random := rand.New(rand.NewPCG(w.random.Uint64(), 3))
	all.Go(func() {
		for range requests {
			w.operate(random)
		}
	})
	all.Wait()
	w.settleUp()
}

func (w *panicRun) use(s *survivor, random *rand.Rand) {
	switch kind := random.IntN(20); kind {
	case 0:
		_, err := w.Usage(s.token)
		w.note("usage", err)
	case 1:
		_, err := w.Keys(s.token)
		w.note("keys", err)
	case 2:
		_, _, err := w.ShowAccount(uint64(s.number))
		w.note("show", err)
	case 3:
		if key, _, err := w.CreateKey(s.token, "spare"); w.note("create", err) {
			if !w.note("revoke", w.RevokeKey(s.token, key.ID)) {
				s.maybe++
			}
		}
	default:
		grant, err := w.Admit(account.Caller{Key: s.keys[0], HasKey: true})
		if w.note("admit", err) && (!grant.Admitted || grant.Account != uint64(s.number)) {
			w.fail("account %d is answered %+v", s.number, grant)
		} else if err == nil {
			s.admitted++
		}
	}
}

// operate does one thing that is not about an account: publications, readers, visitors, sweeps.
func (w *panicRun) operate(random *rand.Rand) {
	switch random.IntN(6) {
	case 0:
		w.asked++
		w.clock.advance(time.Second)
		_, err := w.Observe([]engine.Refresh{saying("bhd-site", w.clock.Read(), "USD", "58.00", sideOf(w.asked), "bhd")})
		if w.note("publish", err) {
			w.shown = w.asked
		}
	case 1:
		page, err := w.Ranking(usdRanking())
		if w.note("ranking", err) && numberOf(page.Items[0].Sell.String()) < w.shown {
			w.fail("publication %d was acknowledged, and %s is shown", w.shown, page.Items[0].Sell)
		}
	case 2:
		page, err := w.Rates(engine.RatesQuery{PageRequest: engine.PageRequest{Limit: 10}})
		if w.note("rates", err) && numberOf(page.Items[0].Sell.String()) < w.shown {
			w.fail("publication %d was acknowledged, and the rates of all currencies show %s", w.shown, page.Items[0].Sell)
		}
	case 3:
		w.visitors++
		w.note("code", w.RequestCode(mustEmail(w.t, fmt.Sprintf("visitor%d@example.com", w.visitors)), requester(5000+w.visitors)))
	case 4:
		_, err := w.ListAccounts()
		w.note("list", err)
	case 5:
		_, err := w.Admit(account.Caller{Address: client(9000 + random.IntN(1<<20))})
		w.note("unknown message", err)
	}
}

// settleUp holds the node against the record, and starts it again when it has stopped.
func (w *panicRun) settleUp() {
	w.plan.mu.Lock()
	w.plan.reading, w.plan.changing = 0, 0
	requests, crowds, stops := w.plan.requests, w.plan.crowds, w.plan.stops
	w.plan.mu.Unlock()
	if stops > 0 {
		select {
		case <-w.Done():
		case <-time.NewTimer(time.Minute).C:
		}
	}
	if stopped := w.Err() != nil; stopped != (stops > 0) {
		w.fail("%d panics over changes, and the node says %v", stops, w.Err())
	}
	if w.internal < requests || stops == 0 && w.internal > requests+crowds {
		w.fail("%d panics over requests, %d internal errors", requests, w.internal)
	}
	if stops > 0 {
		w.stop()
		w.boot(w.journal.crashed())
		for _, s := range w.members {
			s.slack += 2 * account.LeaseGrownMax // the quota is large
		}
	}
	for _, s := range w.members {
		w.settleMember(s)
	}
	if page, err := w.Ranking(usdRanking()); err != nil || numberOf(page.Items[0].Sell.String()) < w.shown {
		w.fail("publication %d was acknowledged, afterwards: %+v, %v", w.shown, page, err)
	}
}

// settleMember wants what was counted to be counted still, and what was made to be there.
func (w *panicRun) settleMember(s *survivor) {
	record, verdict, err := w.ShowAccount(uint64(s.number))
	if err != nil {
		w.fail("account %d: %v", s.number, err)
		return
	}
	spent := verdict.Day.Limit - verdict.Day.Remaining
	if spent < s.admitted || spent > s.admitted+s.slack {
		w.fail("account %d: %d were admitted, %d are spent, %d may be lost", s.number, s.admitted, spent, s.slack)
	}
	active := 0
	for _, key := range record.Keys {
		if key.Active() {
			active++
		}
	}
	if first := record.Keys[slices.IndexFunc(record.Keys, func(k account.KeyRecord) bool { return k.ID == s.ids[0] })]; !first.Active() || active > account.KeysActiveMax {
		w.fail("account %d: %d active keys, the first %+v", s.number, active, first)
	}
	for _, key := range record.Keys { // those without an answer are tried again
		if key.Active() && key.ID != s.ids[0] {
			if err := w.RevokeKey(s.token, key.ID); err != nil {
				w.fail("account %d: revoke: %v", s.number, err)
			}
		}
	}
}

func checkPanics(t *testing.T, requests, stops int) {
	t.Helper()
	w := newPanicRun(t, 1)
	hit := map[string]int{}
	costs, ends := 0, 0
	for round := 0; (costs < requests || ends < stops) && len(w.faults) == 0; round++ {
		plan, requests := &panicInjector{reading: 6}, 100
		if costs >= requests || round%8 == 7 && ends < stops {
			plan, requests = &panicInjector{reading: 40, changing: 1 + w.random.IntN(60)}, 40
		}
		w.live(plan, requests)
		costs, ends = costs+plan.requests, ends+plan.stops
		for kind, count := range plan.kinds {
			hit[kind] += count
		}
		if round%200 == 199 {
			t.Logf("PROGRESS %d panics over requests, %d over changes", costs, ends)
		}
		w.pass(2 * time.Minute)
		w.renew()
	}
	for _, fault := range w.faults {
		t.Error(fault)
	}
	if costs < requests || ends < stops {
		t.Fatalf("%d panics over requests, %d over changes", costs, ends)
	}
	t.Logf("FIGURE %d panics over requests, %d over changes, at %d kinds of messages, in %d answers: no count fell, no message was lost",
		costs, ends, len(hit), w.answers)
}

// renew goes on to the next noon when the sessions have ended: an address gets only so many e-mails in a day, and no
// midnight must fall between a request and the look at its count.
func (w *panicRun) renew() {
	if w.clock.Read().Sub(w.entered) < account.SessionLifetime-5*time.Minute {
		return
	}
	w.pass(24*time.Hour - w.clock.Read().Sub(noon)%(24*time.Hour))
	w.asked++
	observe(w.t, w.System, saying("bhd-site", w.clock.Read(), "USD", "58.00", sideOf(w.asked), "bhd"))
	w.shown, w.entered = w.asked, w.clock.Read()
	for _, s := range w.members {
		s.token = login(w.t, w.System, w.mail, s.email, client(20_000+w.random.IntN(1<<20)))
		s.admitted, s.slack = 0, 0
	}
}

// A panic over any message, before its work or behind it, costs the request, or stops the node when something could
// be half changed. In both cases no count falls, nothing acknowledged is gone, and every request is answered.
func TestQ5_PanicsOverAnyMessage(t *testing.T) { checkPanics(t, 400, 12) }

// The library's own supervisor would start the actor again, empty: its counts fall.
func TestQ5_Control_EmptyRestart(t *testing.T) {
	w := newPanicRun(t, 2)
	for round := 0; round < 20 && len(w.faults) == 0; round++ {
		w.live(&panicInjector{reading: 10, forgetful: true}, 50)
	}
	if len(w.faults) == 0 {
		t.Error("an actor that is started again empty is not caught")
		return
	}
	t.Logf("caught: %s", w.faults[0])
}
