package actors

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
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

// Neither the refusal of a code nor another answer is given before it is durable.
func TestK2_WrongTriesAreDurableBeforeTheyAreAnswered(t *testing.T) {
	n := startNode(t, Config{})
	email := mustEmail(t, "ana@example.com")
	if err := n.RequestCode(email, requester(1)); err != nil {
		t.Fatal(err)
	}
	release, reached := n.hold()
	var answered atomic.Bool
	refused := make(chan error, 1)
	go func() {
		_, _, err := n.OpenSession(email, "wrong", requester(1))
		answered.Store(true)
		refused <- err
	}()
	<-reached
	if answered.Load() {
		t.Error("answered before the try is durable")
	}
	release()
	if err := <-refused; !isCode(err, engine.CodeInvalidCode) {
		t.Errorf("%v", err)
	}
}

// An e-mail is sent only when the request for a code is durable; when that fails none is sent.
func TestK1_EmailsFollowTheLog(t *testing.T) {
	n := startNode(t, Config{})
	email := mustEmail(t, "ana@example.com")
	n.fault(fmt.Errorf("planted: %w", wal.ErrNoSpace))
	if err := n.RequestCode(email, requester(1)); !isCode(err, engine.CodeReadOnly) || n.mail.count() != 0 {
		t.Errorf("%v, %d emails", err, n.mail.count())
	}
	n.fault(nil)
	n.pass(time.Minute)
	if err := n.RequestCode(email, requester(1)); err != nil || n.mail.count() != 1 {
		t.Errorf("%v, %d emails", err, n.mail.count())
	}
	if err := n.RequestCode(email, requester(1)); !isCode(err, engine.CodeRequestedTooSoon) || n.mail.count() != 1 {
		t.Errorf("at once again: %v, %d emails", err, n.mail.count())
	}
	n.pass(time.Minute)
	n.mail.refuse = &engine.Error{Code: engine.CodeOverloaded, Message: "the queue is full"}
	if err := n.RequestCode(email, requester(1)); !isCode(err, engine.CodeOverloaded) {
		t.Errorf("a full queue: %v", err)
	}
}

// A try beyond the limits takes the same way as a wrong one: through the log.
func TestS3_ThrottledTriesAreInTheLog(t *testing.T) {
	n := startNode(t, Config{})
	email := mustEmail(t, "ana@example.com")
	for i := range 40 {
		before := n.journal.Last()
		if _, _, err := n.OpenSession(email, "wrong", requester(i)); !isCode(err, engine.CodeInvalidCode) {
			t.Fatalf("try %d: %v", i, err)
		}
		if n.journal.Last() != before+1 {
			t.Errorf("try %d left %d records", i, n.journal.Last()-before)
		}
	}
	last := n.journal.records[len(n.journal.records)-1]
	if event, err := new(record.Decoder).Event(last); err != nil {
		t.Error(err)
	} else if _, refused := event.(*record.CodeRefused); !refused {
		t.Errorf("the last of 40 wrong tries is %T", event)
	}
}

// With leases of one every admission is durable before it is answered, and a crash costs nothing.
func TestL1_LeaseOfOneIsExact(t *testing.T) {
	n := startNode(t, Config{QuotaPolicy: account.QuotaPolicy{LeaseSize: 1, DefaultQuota: account.Quota{Minute: 1000}}})
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

// The minute of a client goes on over a clean stop, by monotonic time: requests from before count until they are 60
// seconds old, and no longer.
func TestQ4_MonotonicTimeGoesOnAfterACleanStop(t *testing.T) {
	n := startNode(t, Config{QuotaPolicy: account.QuotaPolicy{DefaultQuota: account.Quota{Day: 100, Minute: 5}, LeaseSize: 16}})
	key := n.join(1, 1).keys[0]
	if got := n.admitted(key, 6); got != 5 {
		t.Fatalf("%d of 6 admitted", got)
	}
	n.restart()
	n.pass(30 * time.Second)
	if got := n.admitted(key, 1); got != 0 {
		t.Error("a request is admitted 30 seconds after five before the stop")
	}
	n.pass(30 * time.Second)
	if got := n.admitted(key, 6); got != 5 {
		t.Errorf("%d of 6 admitted a minute after the stop", got)
	}
}

// A wall clock that was set back while no node ran gives no day twice.
func TestQ4_ClockSetBackBeforeTheStart(t *testing.T) {
	for name, end := range map[string]func(*node){"stop": (*node).restart, "crash": (*node).crash} {
		n := startNode(t, Config{QuotaPolicy: account.QuotaPolicy{DefaultQuota: account.Quota{Day: 20, Minute: 1000}, LeaseSize: 16}})
		key := n.join(1, 1).keys[0]
		if got := n.admitted(key, 21); got != 20 {
			t.Fatalf("%s: %d of 21 admitted", name, got)
		}
		n.clock.advance(-25 * time.Hour)
		end(n)
		n.monotonic.advance(2 * time.Minute)
		if grant := n.admit(key); grant.Admitted || !grant.Day.Reset.Equal(engine.NextMidnight(noon)) {
			t.Errorf("%s: with the clock of yesterday %+v", name, grant)
		}
	}
}

func TestL1_CleanStopCostsNothing(t *testing.T) {
	n := startNode(t, Config{QuotaPolicy: account.QuotaPolicy{DefaultQuota: account.Quota{Minute: 1000}}})
	busy, aside := n.join(1, 1), n.join(2, 1)
	if got := n.admitted(busy.keys[0], 5) + n.admitted(aside.keys[0], 7); got != 12 {
		t.Fatalf("%d of 12 admitted", got)
	}
	n.pass(2 * time.Minute)
	n.admitted(busy.keys[0], 1)
	n.restart()
	if a, b := n.spent(busy.token), n.spent(aside.token); a != 6 || b != 7 {
		t.Errorf("after a clean stop %d and %d are spent, want 6 and 7", a, b)
	}
	n.admitted(busy.keys[0], 1)
	n.crash()
	if a, b := n.spent(busy.token), n.spent(aside.token); a != 6+account.LeaseSizeDefault || b != 7 {
		t.Errorf("after a crash %d and %d are spent, want %d and 7", a, b, 6+account.LeaseSizeDefault)
	}
}
