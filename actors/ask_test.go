package actors

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// toy is an actor that answers what its behave function says.
type toy struct {
	behave  func(l letter)
	fatal   bool
	aborted atomic.Int64
}

func (t *toy) receive(l letter)    { t.behave(l) }
func (t *toy) vital(letter) bool   { return t.fatal }
func (t *toy) abort(*engine.Error) { t.aborted.Add(1) }
func double(n int) int             { return 2 * n }
func isCode(err error, c engine.Code) bool {
	var e *engine.Error
	return errors.As(err, &e) && e.Code == c
}

type doubling = question[int, int]

// toyStage is a stage whose failures the test wants to see, or none.
func toyStage(t testing.TB, limit int) (*stage, *atomic.Int64) {
	t.Helper()
	failures := &atomic.Int64{}
	s := newStage(limit, 2, func(error) { failures.Add(1) })
	t.Cleanup(s.close)
	return s, failures
}

func spawnToy(t testing.TB, s *stage, toy *toy) *ref {
	t.Helper()
	r, err := s.spawn("toy", toy)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// outcomes counts how questions ended.
type outcomes struct{ answered, overflown, expired, crashed, stopped, wrong atomic.Int64 }

func (o *outcomes) count(n, answer int, err error) {
	switch {
	case err == nil && answer == double(n):
		o.answered.Add(1)
	case err == nil:
		o.wrong.Add(1)
	case errors.Is(err, errOverflow):
		o.overflown.Add(1)
	case errors.Is(err, errExpired):
		o.expired.Add(1)
	case errors.Is(err, errStopped):
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

// storm asks from many goroutines at once, until the actor is stopped under them, and counts the ends. A
// question that is completed twice gives a later question a wrong answer, because they share a pool.
func storm(t *testing.T, askers, each int, behave func(l letter)) *outcomes {
	t.Helper()
	s, failures := toyStage(t, 6)
	actor := spawnToy(t, s, &toy{behave: behave})
	patient := newAsks[int, int](time.Minute)
	hasty := &asks[int, int]{deadline: 50 * time.Microsecond}
	hasty.pool.New = func() any { return &doubling{done: make(chan struct{}, 1), home: &hasty.pool} }
	var o outcomes
	var group sync.WaitGroup
	var end sync.Once
	for asker := range askers {
		group.Add(1)
		go func() {
			defer group.Done()
			random := rand.New(rand.NewPCG(7, uint64(asker)))
			for i := range each {
				from, n := patient, asker*each+i
				if random.IntN(3) == 0 {
					from = hasty
				}
				if i%64 == 0 && o.total() > int64(askers*each)*19/20 {
					end.Do(actor.stop)
				}
				answer, err := from.ask(actor, n)
				o.count(n, answer, err)
			}
		}()
	}
	group.Wait()
	if failures.Load() > 0 {
		t.Errorf("the actor failed %d times", failures.Load())
	}
	return &o
}

// moody answers, panics, or takes longer than the hasty wait.
func moody(l letter) {
	q := l.(*doubling)
	switch n := q.query; {
	case n%31 == 0:
		panic("moody")
	case n%257 == 0:
		timer := time.NewTimer(200 * time.Microsecond)
		<-timer.C
	}
	q.reply(double(q.query), nil)
}

func TestEveryQuestionIsAnsweredOnce(t *testing.T) {
	const askers = 12
	each := cases(20_000, 40_000)
	o := storm(t, askers, each, moody)
	t.Log(o)
	if o.total() != int64(askers*each) || o.wrong.Load() > 0 {
		t.Errorf("%d of %d questions ended, %d wrongly", o.total(), askers*each, o.wrong.Load())
	}
	for what, n := range map[string]*atomic.Int64{
		"answered": &o.answered, "overflow": &o.overflown, "expired": &o.expired, "crashed": &o.crashed, "stopped": &o.stopped,
	} {
		if n.Load() == 0 {
			t.Errorf("no question ended as %s: the storm does not reach it", what)
		}
	}
}

// The storm fails with an actor that answers twice: the node stops.
func TestEveryQuestionIsAnsweredOnce_Control(t *testing.T) {
	s, failures := toyStage(t, 10)
	actor := spawnToy(t, s, &toy{behave: func(l letter) {
		l.(*doubling).reply(0, nil)
		l.(*doubling).reply(0, nil)
	}})
	q := newAsks[int, int](time.Minute).pool.Get().(*doubling)
	actor.send(q)
	if failures.Load() != 1 {
		t.Errorf("%d failures, want 1", failures.Load())
	}
	<-actor.mailbox.finished
}

// numbered is a fact or a question of a sender's series.
type numbered struct {
	fact
	sender, n int
}

func TestLettersOfOneSenderStayInOrder(t *testing.T) {
	const senders, each = 8, 20_000
	s, failures := toyStage(t, 1<<16)
	next, questions := make([]int, senders), newAsks[numbered, int](time.Minute)
	late := 0
	actor := spawnToy(t, s, &toy{behave: func(l letter) {
		m, ok := l.(*numbered)
		if !ok {
			q := l.(*question[numbered, int])
			m = &q.query
			defer q.reply(0, nil)
		}
		if m.n != next[m.sender] {
			late++
		}
		next[m.sender] = m.n + 1
	}})
	var group sync.WaitGroup
	for sender := range senders {
		group.Add(1)
		go func() {
			defer group.Done()
			for n := range each {
				if n%16 == 15 { // which also keeps the facts bounded, as real senders do
					if _, err := questions.ask(actor, numbered{sender: sender, n: n}); err != nil {
						t.Error(err)
					}
					continue
				}
				actor.send(&numbered{sender: sender, n: n})
			}
		}()
	}
	group.Wait()
	actor.stop()
	for sender, n := range next {
		if n != each {
			t.Errorf("sender %d: %d letters of %d came", sender, n, each)
		}
	}
	if late > 0 || failures.Load() > 0 {
		t.Errorf("%d letters out of order, %d failures", late, failures.Load())
	}
}

// hold is a question that keeps the actor busy until the test lets it go.
type hold = question[chan struct{}, int]

// occupied is an actor whose goroutine is held by a question; letters to it queue up.
func occupied(t *testing.T, s *stage, toy *toy) (r *ref, release func()) {
	t.Helper()
	gate, inside := make(chan struct{}), make(chan struct{})
	rest := toy.behave
	toy.behave = func(l letter) {
		if h, ok := l.(*hold); ok {
			close(inside)
			<-h.query
			h.reply(0, nil)
			return
		}
		rest(l)
	}
	r = spawnToy(t, s, toy)
	h := once[chan struct{}, int](gate)
	var group sync.WaitGroup
	group.Add(1)
	go func() {
		defer group.Done()
		r.send(h)
	}()
	<-inside
	return r, func() {
		close(gate)
		group.Wait()
	}
}

func answering(l letter) {
	if q, ok := l.(*doubling); ok {
		q.reply(double(q.query), nil)
	}
}

func TestFullMailboxRefusesQuestionsAndTakesFacts(t *testing.T) {
	const limit = 10
	s, failures := toyStage(t, limit)
	facts, all := 0, make(chan struct{})
	actor, release := occupied(t, s, &toy{behave: func(l letter) {
		if _, ok := l.(*numbered); ok {
			if facts++; facts == factsMax {
				close(all)
			}
		}
		answering(l)
	}})
	var queued []*doubling
	for n := range limit {
		q := once[int, int](n)
		actor.send(q)
		queued = append(queued, q)
	}
	one := once[int, int](99)
	actor.send(one)
	if _, err := one.await(); !errors.Is(err, errOverflow) {
		t.Errorf("question %d: %v, want %v", limit+1, err, errOverflow)
	}
	for range factsMax {
		actor.send(&numbered{})
	}
	if failures.Load() != 0 {
		t.Errorf("facts within their room fail the node")
	}
	actor.send(&numbered{})
	if failures.Load() != 1 {
		t.Errorf("a fact without room: %d failures, want 1", failures.Load())
	}
	release()
	<-all
	for n, q := range queued {
		if answer, err := q.await(); err != nil || answer != double(n) {
			t.Errorf("queued question %d: %d, %v", n, answer, err)
		}
	}
	actor.stop()
}

func TestStoppedActorSettlesEverything(t *testing.T) {
	s, _ := toyStage(t, 100)
	toy := &toy{behave: answering}
	actor, release := occupied(t, s, toy)
	var queued []*doubling
	for n := range 50 {
		q := once[int, int](n)
		actor.send(q)
		queued = append(queued, q)
	}
	actor.root.Stop(actor.pid) // before all letters, behind the one that is being worked on
	release()
	<-actor.mailbox.finished
	late := once[int, int](0)
	actor.send(late)
	for _, q := range append(queued, late) {
		if _, err := q.await(); !errors.Is(err, errStopped) {
			t.Fatalf("a question to a stopped actor: %v, want %v", err, errStopped)
		}
	}
	if toy.aborted.Load() != 1 {
		t.Errorf("the actor was told %d times to give up what it keeps, want once", toy.aborted.Load())
	}
}

func TestAbandonedQuestionIsSkipped(t *testing.T) {
	s, _ := toyStage(t, 100)
	var worked atomic.Int64
	actor, release := occupied(t, s, &toy{behave: func(l letter) {
		worked.Add(1)
		answering(l)
	}})
	hasty := newAsks[int, int](time.Nanosecond)
	for n := range 20 {
		if _, err := hasty.ask(actor, n); !errors.Is(err, errExpired) {
			t.Fatalf("a question to a busy actor: %v, want %v", err, errExpired)
		}
	}
	release()
	actor.stop()
	if worked.Load() != 0 {
		t.Errorf("the actor worked on %d questions that nobody waits for", worked.Load())
	}
}

func TestAskerDoesNotServeOthersForEver(t *testing.T) {
	s, _ := toyStage(t, 100)
	var actor *ref
	var end atomic.Bool
	over := make(chan struct{})
	actor = spawnToy(t, s, &toy{behave: func(l letter) {
		answering(l)
		if end.Load() {
			close(over)
			return
		}
		actor.send(&numbered{}) // there is always one more
	}})
	if answer, err := newAsks[int, int](time.Minute).ask(actor, 21); err != nil || answer != 42 {
		t.Errorf("%d, %v", answer, err)
	}
	end.Store(true)
	<-over
	actor.stop()
}

func TestPanic(t *testing.T) {
	for _, vital := range []bool{false, true} {
		t.Run(fmt.Sprintf("vital=%v", vital), func(t *testing.T) {
			s, failures := toyStage(t, 100)
			state := 0
			toy := &toy{fatal: vital, behave: func(l letter) {
				q := l.(*doubling)
				if q.query < 0 {
					panic("planted")
				}
				state++
				q.reply(state, nil)
			}}
			actor := spawnToy(t, s, toy)
			questions := newAsks[int, int](time.Minute)
			for range 3 {
				if _, err := questions.ask(actor, 1); err != nil {
					t.Fatal(err)
				}
			}
			q := once[int, int](-1)
			actor.send(q)
			_, err := q.await()
			want, stops := engine.CodeInternalError, int64(0)
			if vital {
				want, stops = engine.CodeReadOnly, 1
			}
			if !isCode(err, want) || failures.Load() != stops || toy.aborted.Load() != stops {
				t.Errorf("%v, %d failures, %d aborts; want %s, %d, %d", err, failures.Load(), toy.aborted.Load(), want, stops, stops)
			}
			if answer, err := questions.ask(actor, 1); err != nil || answer != 4 {
				t.Errorf("after the panic: %d, %v; want the state to be kept", answer, err)
			}
			actor.stop()
		})
	}
}
