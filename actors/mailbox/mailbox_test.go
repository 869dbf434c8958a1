package mailbox

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

type testActor struct {
	behave  func(l Message)
	fatal   bool
	aborted atomic.Int64
}

func (t *testActor) Receive(l Message)       { t.behave(l) }
func (t *testActor) FailsNode(Message) bool  { return t.fatal }
func (t *testActor) RejectAll(*engine.Error) { t.aborted.Add(1) }
func double(n int) int                       { return 2 * n }
func isCode(err error, c engine.Code) bool {
	var e *engine.Error
	return errors.As(err, &e) && e.Code == c
}

type doubling = Request[int, int]

func newTestSystem(t testing.TB, limit int) (*System, *atomic.Int64) {
	t.Helper()
	failures := &atomic.Int64{}
	s := NewSystem(Config{
		Limit: limit, Workers: 2, Fail: func(error) { failures.Add(1) },
		Failed: func(cause error) *engine.Error { return &engine.Error{Code: engine.CodeReadOnly, Cause: cause} },
	})
	t.Cleanup(s.Close)
	return s, failures
}

func spawnTestActor(t testing.TB, s *System, toy *testActor) *Ref {
	t.Helper()
	r, err := s.Spawn("toy", &Kind{}, toy)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type outcomes struct{ answered, overflown, expired, crashed, stopped, wrong atomic.Int64 }

func (o *outcomes) count(n, answer int, err error) {
	switch {
	case err == nil && answer == double(n):
		o.answered.Add(1)
	case err == nil:
		o.wrong.Add(1)
	case errors.Is(err, ErrOverloaded):
		o.overflown.Add(1)
	case errors.Is(err, ErrExpired):
		o.expired.Add(1)
	case errors.Is(err, ErrStopped):
		o.stopped.Add(1)
	case isCode(err, engine.CodeInternalError):
		o.crashed.Add(1)
	default:
		o.wrong.Add(1)
	}
}

func (o *outcomes) total() int64 {
	return o.answered.Load() + o.overflown.Load() + o.expired.Load() + o.crashed.Load() + o.stopped.Load() + o.wrong.Load()
}

func (o *outcomes) String() string {
	return fmt.Sprintf("answered %d, overflow %d, expired %d, crashed %d, stopped %d, wrong %d", o.answered.Load(),
		o.overflown.Load(), o.expired.Load(), o.crashed.Load(), o.stopped.Load(), o.wrong.Load())
}

// runLoad asks from many goroutines at once, until the actor is stopped under them, and counts the ends. A
// request that is completed twice gives a later request a wrong answer, because they share a pool.
func runLoad(t *testing.T, callers, each int, behave func(l Message)) *outcomes {
	t.Helper()
	s, failures := newTestSystem(t, 6)
	actor := spawnTestActor(t, s, &testActor{behave: behave})
	var patient, hasty RequestPool[int, int]
	var o outcomes
	var group sync.WaitGroup
	var end sync.Once
	for caller := range callers {
		group.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(caller)))
			for i := range each {
				from, deadline, n := &patient, time.Minute, caller*each+i
				if random.IntN(3) == 0 {
					from, deadline = &hasty, 50*time.Microsecond
				}
				if i%64 == 0 && o.total() > int64(callers*each)*19/20 {
					end.Do(actor.Stop)
				}
				answer, err := from.Ask(actor, n, deadline)
				o.count(n, answer, err)
			}
		})
	}
	group.Wait()
	if failures.Load() > 0 {
		t.Errorf("the actor failed %d times", failures.Load())
	}
	return &o
}

// failingSometimes answers, panics, or takes longer than the hasty wait.
func failingSometimes(l Message) {
	q := l.(*doubling)
	switch n := q.Query; {
	case n%31 == 0:
		panic("moody")
	case n%257 == 0:
		timer := time.NewTimer(200 * time.Microsecond)
		<-timer.C
	}
	q.Reply(double(q.Query), nil)
}

func TestEveryRequestIsAnsweredOnce(t *testing.T) {
	const callers = 12
	each := 20_000
	if os.Getenv("SWEEP") == "whole" { // as make check asks
		each = 40_000
	}
	o := runLoad(t, callers, each, failingSometimes)
	t.Log(o)
	if o.total() != int64(callers*each) || o.wrong.Load() > 0 {
		t.Errorf("%d of %d requests ended, %d wrongly", o.total(), callers*each, o.wrong.Load())
	}
	for what, n := range map[string]*atomic.Int64{
		"answered": &o.answered, "overflow": &o.overflown, "expired": &o.expired, "crashed": &o.crashed, "stopped": &o.stopped,
	} {
		if n.Load() == 0 {
			t.Errorf("no request ended as %s: the storm does not reach it", what)
		}
	}
}

// The storm fails with an actor that answers twice: the node stops.
func TestEveryRequestIsAnsweredOnce_Control(t *testing.T) {
	s, failures := newTestSystem(t, 10)
	actor := spawnTestActor(t, s, &testActor{behave: func(l Message) {
		l.(*doubling).Reply(0, nil)
		l.(*doubling).Reply(0, nil)
	}})
	_, _ = new(RequestPool[int, int]).Ask(actor, 0, time.Minute)
	if failures.Load() != 1 {
		t.Errorf("%d failures, want 1", failures.Load())
	}
	actor.Stop()
}

// numbered is a one-way message or a request of a sender's series.
type numbered struct {
	OneWay
	sender, n int
}

func TestMessagesOfOneSenderStayInOrder(t *testing.T) {
	const senders, each = 8, 20_000
	s, failures := newTestSystem(t, 1<<16)
	next, requests := make([]int, senders), new(RequestPool[numbered, int])
	late := 0
	actor := spawnTestActor(t, s, &testActor{behave: func(l Message) {
		m, ok := l.(*numbered)
		if !ok {
			q := l.(*Request[numbered, int])
			m = &q.Query
			defer q.Reply(0, nil)
		}
		if m.n != next[m.sender] {
			late++
		}
		next[m.sender] = m.n + 1
	}})
	var group sync.WaitGroup
	for sender := range senders {
		group.Go(func() {
			for n := range each {
				if n%16 == 15 { // which also keeps the one-way messages bounded, as real senders do
					if _, err := requests.Ask(actor, numbered{sender: sender, n: n}, time.Minute); err != nil {
						t.Error(err)
					}
					continue
				}
				actor.Send(&numbered{sender: sender, n: n})
			}
		})
	}
	group.Wait()
	actor.Stop()
	for sender, n := range next {
		if n != each {
			t.Errorf("sender %d: %d messages of %d came", sender, n, each)
		}
	}
	if late > 0 || failures.Load() > 0 {
		t.Errorf("%d messages out of order, %d failures", late, failures.Load())
	}
}

// block is a request that keeps the actor busy until the test lets it go.
type block = Request[chan struct{}, int]

// occupied is an actor whose goroutine is held by a request; messages to it queue up.
func occupied(t *testing.T, s *System, toy *testActor) (r *Ref, release func()) {
	t.Helper()
	gate, inside := make(chan struct{}), make(chan struct{})
	rest := toy.behave
	toy.behave = func(l Message) {
		if h, ok := l.(*block); ok {
			close(inside)
			<-h.Query
			h.Reply(0, nil)
			return
		}
		rest(l)
	}
	r = spawnTestActor(t, s, toy)
	h := NewRequest[chan struct{}, int](gate)
	var group sync.WaitGroup
	group.Go(func() { r.Send(h) })
	<-inside
	return r, func() {
		close(gate)
		group.Wait()
	}
}

func answering(l Message) {
	if q, ok := l.(*doubling); ok {
		q.Reply(double(q.Query), nil)
	}
}

func sendDoublings(to *Ref, count int) (sent []*doubling) {
	for n := range count {
		q := NewRequest[int, int](n)
		to.Send(q)
		sent = append(sent, q)
	}
	return sent
}

func TestFullMailboxRefusesRequestsAndTakesOneWayMessages(t *testing.T) {
	const limit = 10
	s, failures := newTestSystem(t, limit)
	taken, all := 0, make(chan struct{})
	actor, release := occupied(t, s, &testActor{behave: func(l Message) {
		if _, ok := l.(*numbered); ok {
			if taken++; taken == ReserveDefault {
				close(all)
			}
		}
		answering(l)
	}})
	queued := sendDoublings(actor, limit)
	one := NewRequest[int, int](99)
	actor.Send(one)
	if _, err := one.Await(); !errors.Is(err, ErrOverloaded) {
		t.Errorf("request %d: %v, want %v", limit+1, err, ErrOverloaded)
	}
	for range ReserveDefault {
		actor.Send(&numbered{})
	}
	if failures.Load() != 0 {
		t.Errorf("one-way messages within their room fail the node")
	}
	actor.Send(&numbered{})
	if failures.Load() != 1 {
		t.Errorf("a one-way message without room: %d failures, want 1", failures.Load())
	}
	release()
	<-all
	for n, q := range queued {
		if answer, err := q.Await(); err != nil || answer != double(n) {
			t.Errorf("queued request %d: %d, %v", n, answer, err)
		}
	}
	actor.Stop()
}

func TestStoppedActorSettlesEverything(t *testing.T) {
	s, _ := newTestSystem(t, 100)
	toy, waiting := &testActor{behave: answering}, func(r *Ref) int64 { return r.kind.Stats().Waiting }
	actor, release := occupied(t, s, toy)
	queued := sendDoublings(actor, 50)
	if got := waiting(actor); got != int64(len(queued)) {
		t.Errorf("%d messages wait, want %d", got, len(queued))
	}
	actor.BeginStop() // before all messages, behind the one that is being worked on
	release()
	actor.Wait()
	if got := waiting(actor); got != 0 {
		t.Errorf("%d messages wait for an actor that is gone", got)
	}
	late := NewRequest[int, int](0)
	actor.Send(late)
	for _, q := range append(queued, late) {
		if _, err := q.Await(); !errors.Is(err, ErrStopped) {
			t.Fatalf("a request to a stopped actor: %v, want %v", err, ErrStopped)
		}
	}
	if toy.aborted.Load() != 1 {
		t.Errorf("the actor was asked %d times to give up what it keeps, want once", toy.aborted.Load())
	}
}

func TestAbandonedRequestIsSkipped(t *testing.T) {
	s, _ := newTestSystem(t, 100)
	var worked atomic.Int64
	actor, release := occupied(t, s, &testActor{behave: func(l Message) {
		worked.Add(1)
		answering(l)
	}})
	var hasty RequestPool[int, int]
	for n := range 20 {
		if _, err := hasty.Ask(actor, n, time.Nanosecond); !errors.Is(err, ErrExpired) {
			t.Fatalf("a request to a busy actor: %v, want %v", err, ErrExpired)
		}
	}
	release()
	actor.Stop()
	if worked.Load() != 0 {
		t.Errorf("the actor worked on %d requests that no caller waits for", worked.Load())
	}
}

func TestRequestPoolDoesNotServeOthersForEver(t *testing.T) {
	s, _ := newTestSystem(t, 100)
	var actor *Ref
	var end atomic.Bool
	over := make(chan struct{})
	actor = spawnTestActor(t, s, &testActor{behave: func(l Message) {
		answering(l)
		if end.Load() {
			close(over)
			return
		}
		actor.Send(&numbered{}) // there is always one more
	}})
	if answer, err := new(RequestPool[int, int]).Ask(actor, 21, time.Minute); err != nil || answer != 42 {
		t.Errorf("%d, %v", answer, err)
	}
	end.Store(true)
	<-over
	actor.Stop()
}

func TestPanic(t *testing.T) {
	for _, fatal := range []bool{false, true} {
		t.Run(fmt.Sprintf("fatal=%v", fatal), func(t *testing.T) {
			s, failures := newTestSystem(t, 100)
			state := 0
			toy := &testActor{fatal: fatal, behave: func(l Message) {
				q := l.(*doubling)
				if q.Query < 0 {
					panic("planted")
				}
				state++
				q.Reply(state, nil)
			}}
			actor := spawnTestActor(t, s, toy)
			var requests RequestPool[int, int]
			for range 3 {
				if _, err := requests.Ask(actor, 1, time.Minute); err != nil {
					t.Fatal(err)
				}
			}
			q := NewRequest[int, int](-1)
			actor.Send(q)
			_, err := q.Await()
			want, stops := engine.CodeInternalError, int64(0)
			if fatal {
				want, stops = engine.CodeReadOnly, 1
			}
			if !isCode(err, want) || failures.Load() != stops || toy.aborted.Load() != stops {
				t.Errorf("%v, %d failures, %d aborts; want %s, %d, %d", err, failures.Load(), toy.aborted.Load(), want, stops, stops)
			}
			if answer, err := requests.Ask(actor, 1, time.Minute); err != nil || answer != 4 {
				t.Errorf("after the panic: %d, %v; want the state to be kept", answer, err)
			}
			actor.Stop()
		})
	}
}
