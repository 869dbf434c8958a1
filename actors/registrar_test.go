package actors

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

// hold keeps every batch back until the returned function is called; reached is closed when one waits.
func (n *node) hold() (release func(), reached chan struct{}) {
	open, reached := make(chan struct{}), make(chan struct{})
	var first sync.Once
	n.journal.before = func([][]byte) error {
		first.Do(func() { close(reached) })
		<-open
		return nil
	}
	return sync.OnceFunc(func() { close(open) }), reached
}

// Neither the refusal of a code nor anything else is told before it is durable.
func TestK2_WrongTriesAreDurableBeforeTheyAreAnswered(t *testing.T) {
	n := startNode(t, Config{})
	email := mustEmail(t, "ana@example.com")
	if err := n.RequestCode(email, client(1)); err != nil {
		t.Fatal(err)
	}
	release, reached := n.hold()
	var answered atomic.Bool
	refused := make(chan error, 1)
	go func() {
		_, _, err := n.OpenSession(email, "wrong", client(1))
		answered.Store(true)
		refused <- err
	}()
	<-reached
	if answered.Load() {
		t.Error("answered before the try is durable")
	}
	before := n.journal.Last()
	release()
	if err := <-refused; !isCode(err, engine.CodeInvalidCode) {
		t.Errorf("%v", err)
	}
	if n.journal.Last() != before+1 {
		t.Error("the try is not in the log")
	}
}

// A letter leaves only when it is durable that a code was asked for; when that fails none leaves.
func TestK1_LettersFollowTheLog(t *testing.T) {
	n := startNode(t, Config{})
	email := mustEmail(t, "ana@example.com")
	n.journal.before = func([][]byte) error { return fmt.Errorf("planted: %w", wal.ErrNoSpace) }
	if err := n.RequestCode(email, client(1)); !isCode(err, engine.CodeReadOnly) || n.mail.count() != 0 {
		t.Errorf("%v, %d letters", err, n.mail.count())
	}
	n.journal.before = nil
	n.pass(time.Minute)
	if err := n.RequestCode(email, client(1)); err != nil || n.mail.count() != 1 {
		t.Errorf("%v, %d letters", err, n.mail.count())
	}
	if err := n.RequestCode(email, client(1)); !isCode(err, engine.CodeRequestedTooSoon) || n.mail.count() != 1 {
		t.Errorf("at once again: %v, %d letters", err, n.mail.count())
	}
	n.pass(time.Minute)
	n.mail.refuse = &engine.Error{Code: engine.CodeOverloaded, Message: "the queue is full"}
	if err := n.RequestCode(email, client(1)); !isCode(err, engine.CodeOverloaded) {
		t.Errorf("a full queue: %v", err)
	}
}

// Codes are void after a restart; sessions and brakes are not.
func TestK2_CodesAreOfOneProcess(t *testing.T) {
	n := startNode(t, Config{})
	email := mustEmail(t, "ana@example.com")
	if err := n.RequestCode(email, client(1)); err != nil {
		t.Fatal(err)
	}
	n.restart()
	if _, _, err := n.OpenSession(email, n.mail.code(email), client(1)); !isCode(err, engine.CodeInvalidCode) {
		t.Errorf("a code of the last process: %v", err)
	}
	if err := n.RequestCode(email, client(1)); !isCode(err, engine.CodeRequestedTooSoon) {
		t.Errorf("the pause between codes is forgotten: %v", err)
	}
}

// Of many who know the right code one gets in.
func TestS2_OneCodeOpensOneSession(t *testing.T) {
	n := startNode(t, Config{})
	for round := range 10 {
		email := mustEmail(t, fmt.Sprintf("user%d@example.com", round))
		if err := n.RequestCode(email, client(round)); err != nil {
			t.Fatal(err)
		}
		var opened atomic.Int64
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				switch _, _, err := n.OpenSession(email, n.mail.code(email), client(100*round+i)); {
				case err == nil:
					opened.Add(1)
				case !isCode(err, engine.CodeInvalidCode):
					t.Error(err)
				}
			})
		}
		all.Wait()
		if opened.Load() != 1 {
			t.Errorf("one code opened %d sessions", opened.Load())
		}
	}
	if got := n.census(); got != 10 {
		t.Errorf("%d accounts, want 10", got)
	}
}

// Many logins go into few batches, whatever is under way.
func TestRegistrarGathers(t *testing.T) {
	n := startNode(t, Config{})
	release, reached := n.hold()
	appends := n.journal.appended()
	var all sync.WaitGroup
	var failed atomic.Int64
	ask := func(i int) {
		if err := n.RequestCode(mustEmail(t, fmt.Sprintf("user%d@example.com", i)), client(i)); err != nil {
			failed.Add(1)
		}
	}
	all.Go(func() { ask(0) })
	<-reached
	before := n.clock.looked()
	for i := range 200 {
		all.Go(func() { ask(i + 1) })
	}
	for n.clock.looked() < before+200 { // each login that is decided looks once
		runtime.Gosched()
	}
	release()
	all.Wait()
	if got := n.journal.appended() - appends; failed.Load() > 0 || n.mail.count() != 201 || got > 150 {
		t.Errorf("%d appends for 201 codes, %d failed, %d letters", got, failed.Load(), n.mail.count())
	}
}

// The node stops while somebody logs in: everybody is answered.
func TestLoginsOfANodeThatStopsAreAnswered(t *testing.T) {
	n := prepareNode(t, Config{})
	release, reached := n.hold()
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if err := n.RequestCode(mustEmail(t, fmt.Sprintf("user%d@example.com", i)), client(i)); err == nil {
				t.Error("a code on a node that failed")
			}
		})
	}
	<-reached
	n.fail(errors.New("planted"))
	release()
	all.Wait()
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}

// A try beyond the limits takes the same way as a wrong one: through the log.
func TestS3_ThrottledTriesAreInTheLog(t *testing.T) {
	n := startNode(t, Config{})
	email := mustEmail(t, "ana@example.com")
	for i := range 40 {
		before := n.journal.Last()
		if _, _, err := n.OpenSession(email, "wrong", client(i)); !isCode(err, engine.CodeInvalidCode) {
			t.Fatalf("try %d: %v", i, err)
		}
		if n.journal.Last() != before+1 {
			t.Errorf("try %d left %d records", i, n.journal.Last()-before)
		}
	}
	record := n.journal.records[len(n.journal.records)-1]
	if event, err := newDecoder().decodeEvent(record); err != nil {
		t.Error(err)
	} else if _, refused := event.(*codeRefused); !refused {
		t.Errorf("the last of 40 wrong tries is %T", event)
	}
}

func TestSuspensionIsInForceAtOnceAndDurable(t *testing.T) {
	n := startNode(t, Config{})
	m := n.join(1, 1)
	if err := n.SuspendAccount(1, "abuse", "luis"); err != nil {
		t.Fatal(err)
	}
	if grant := n.admit(m.keys[0]); grant.Account != 0 {
		t.Errorf("%+v", grant)
	}
	n.crash()
	record, _, err := n.ShowAccount(1)
	if err != nil || record.Reason != "abuse" || !record.SuspendedAt.Equal(noon) {
		t.Errorf("%+v, %v", record, err)
	}
	if grant := n.admit(m.keys[0]); grant.Account != 0 {
		t.Errorf("after a crash %+v", grant)
	}
}

// With leases of one every admission is durable before it is answered, and a crash costs nothing.
func TestL1_LeaseOfOneIsExact(t *testing.T) {
	n := startNode(t, Config{Terms: engine.Terms{Lease: 1, Allowance: engine.Allowance{Minute: 1000}}})
	m := n.join(1, 2)
	for i := range 30 {
		before := n.journal.Last()
		if n.admitted(m.keys[i%2], 1) != 1 || n.journal.Last() != before+1 {
			t.Fatalf("request %d is not in the log when it is answered", i)
		}
		if i%10 == 9 {
			n.crash()
			if spent := n.spent(m.token); spent != i+1 {
				t.Errorf("%d admitted, after a crash %d are spent", i+1, spent)
			}
		}
	}
	release, reached := n.hold()
	answered := make(chan bool, 1)
	go func() { answered <- n.admit(m.keys[0]).Admitted }()
	<-reached
	select {
	case <-answered:
		t.Error("answered before it is durable")
	default:
	}
	release()
	if !<-answered {
		t.Error("not admitted")
	}
}

// The lease is fetched before the last one is used up: who keeps asking never waits for the disk.
func TestL1_NextLeaseIsAskedForAhead(t *testing.T) {
	n := startNode(t, Config{})
	m := n.join(1, 1)
	n.admitted(m.keys[0], engine.LeaseDefault/2-1)
	release, reached := n.hold()
	if got := n.admitted(m.keys[0], engine.LeaseDefault/2+1); got != engine.LeaseDefault/2+1 {
		t.Errorf("%d admitted of what is left of the lease", got)
	}
	<-reached // the next one is under way
	release()
}
