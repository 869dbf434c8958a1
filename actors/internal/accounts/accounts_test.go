package accounts

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// twoClocks are a wall clock that steps and a monotonic one that does not.
type twoClocks struct {
	wall      time.Time
	monotonic time.Duration
}

func (c *twoClocks) clock() *monotonicClock {
	return newMonotonicClock(func() time.Time { return c.wall }, func() time.Duration { return c.monotonic })
}

func TestQ4Clock_MonotonicTimeGoesOnFromTheLog(t *testing.T) {
	c := &twoClocks{wall: noon, monotonic: 7 * time.Hour}
	clock := c.clock()
	clock.resume(time.Hour)
	if got := clock.start(); got.Monotonic != time.Hour || !got.Wall.Equal(noon) {
		t.Errorf("at the start %+v", got)
	}
	c.wall, c.monotonic = c.wall.Add(-40*24*time.Hour), c.monotonic+time.Second
	if got := clock.Now(); got.Monotonic != time.Hour+time.Second || !got.Wall.Equal(c.wall) {
		t.Errorf("a second and a step of the wall clock later %+v", got)
	}
}

func TestQ4Clock_MonotonicTimeNeverGoesBack(t *testing.T) {
	c := &twoClocks{wall: noon}
	for name, clock := range map[string]*monotonicClock{
		"by the monotonic clock": c.clock(),
		"by the wall clock":      newMonotonicClock(func() time.Time { return c.wall }, nil),
	} {
		clock.resume(time.Hour)
		last := time.Hour
		for _, step := range []time.Duration{time.Second, -time.Minute, time.Second, -time.Hour, 2 * time.Hour} {
			c.wall, c.monotonic = c.wall.Add(step), c.monotonic+step
			if now := clock.Now().Monotonic; now < last {
				t.Errorf("%s: from %s back to %s", name, last, now)
			} else {
				last = now
			}
		}
	}
}

// A wall clock with a monotonic reading, as that of a node, needs no other clock.
func TestQ4Clock_ReadingOfTheWallClock(t *testing.T) {
	began := time.Now() //nolint:forbidigo // a time with a monotonic reading
	wall := began
	clock := newMonotonicClock(func() time.Time { return wall }, nil)
	clock.resume(time.Hour)
	wall = began.Add(time.Minute)
	if got := clock.Now().Monotonic; !clock.steady || got != time.Hour+time.Minute {
		t.Errorf("steady %t, %s", clock.steady, got)
	}
}

// noon is an ordinary Wednesday in Santo Domingo.
var noon = time.Date(2026, 6, 17, 16, 0, 0, 0, time.UTC)

// keyOf is the digest of an account's key.
func keyOf(id uint64) (d account.Digest) {
	binary.LittleEndian.PutUint64(d[:], id<<32|id+1)
	return d
}

// newAccount is an account with a key.
func newAccount(t testing.TB, id uint64) *account.Account {
	t.Helper()
	email, err := account.ParseEmail(fmt.Sprintf("somebody.%d@example.com", id))
	if err != nil {
		t.Fatal(err)
	}
	a := account.New(id)
	a.Apply(&account.Created{Account: id, Email: email.ID(), At: noon}, account.ClockReading{})
	a.Apply(&account.KeyCreated{Account: id, Key: account.KeyRecord{ID: "key_1", Name: "production", Hint: "abcd", Digest: keyOf(id), CreatedAt: noon}}, account.ClockReading{})
	return a
}

// A key has one actor: two accounts never share a fingerprint.
func TestActorsOfKeys(t *testing.T) {
	x, actor, other := newKeyIndex(), &mailbox.Ref{}, &mailbox.Ref{}
	for _, digest := range []account.Digest{keyOf(1), {}} {
		if x.lookup(digest) != nil || !x.add(digest, actor) || x.add(digest, other) || !x.add(digest, actor) {
			t.Error("a fingerprint has two owners, or none")
		}
		if x.lookup(digest) != actor {
			t.Error("the actor is lost")
		}
	}
}

// TestL1_UnknownReturnStaysSpent: what a return may yet give back is not spent, what it never will is.
func TestL1_UnknownReturnStaysSpent(t *testing.T) {
	policy := account.QuotaPolicy{DefaultQuota: account.DefaultQuota(), LeaseSize: account.LeaseSizeDefault}
	now := account.ClockReading{Wall: noon}
	for err, charged := range map[*engine.Error]int{commitlog.ErrOutcomeUnknown: account.LeaseSizeDefault, commitlog.ErrNotLeader: 0} {
		state := newAccount(t, 1)
		state.Apply(state.NextLease(keyOf(1), now, policy, 1), now)
		a := &AccountActor{Account: state, stopping: true, stopped: mailbox.ErrStopped}
		a.written(&eventWrite{event: state.Return(now), err: err})
		if left := state.Usage(now, policy).Day.Remaining; left != account.DayLimitDefault-charged {
			t.Errorf("%v: %d of the day remain, want all but %d", err, left, charged)
		}
	}
}

// TestPendingChangesAreBounded: further changes of the account are refused as overload.
func TestPendingChangesAreBounded(t *testing.T) {
	a := &AccountActor{shard: &ShardActor{parent: &Accounts{config: Config{PendingWritesMax: 2}}}, Changes: 2}
	m := mailbox.NewRequest[changeQuery, struct{}](changeQuery{})
	a.change(m)
	if _, err := m.Wait(time.Second); !errors.Is(err, mailbox.ErrOverloaded) {
		t.Errorf("a third change: %v", err)
	}
}

// TestK2_AReplayGivesSessionsTheirTime: events of another node's clock, which is ahead, do not end a session.
func TestK2_AReplayGivesSessionsTheirTime(t *testing.T) {
	now := account.ClockReading{Wall: noon, Monotonic: 1000 * time.Hour}
	a := newAccount(t, 1)
	opened := &account.SessionOpened{Account: 1, Email: a.Record().Email, Token: keyOf(1), Expires: noon.Add(time.Minute), Monotonic: time.Hour}
	r := (&Accounts{SharedCodes: true}).NewReplay()
	for _, event := range []any{opened, &account.CodeFailed{Email: a.Record().Email, Monotonic: now.Monotonic}} {
		if err := r.Apply(event); err != nil {
			t.Fatal(err)
		}
	}
	r.finish(1, now)
	if id, err := r.Registry.Session(keyOf(1), now); id != 1 || err != nil {
		t.Errorf("the session is of account %d: %v", id, err)
	}
}

// silentActor answers nothing.
type silentActor struct{}

func (silentActor) Receive(mailbox.Message)        {}
func (silentActor) FailsNode(mailbox.Message) bool { return false }
func (silentActor) RejectAll(*engine.Error)        {}

// TestL1_AReturnWithoutAnAnswerIsUnknown: the leader does not say that nothing was written.
func TestL1_AReturnWithoutAnAnswerIsUnknown(t *testing.T) {
	system := mailbox.NewSystem(mailbox.Config{Limit: 1, Workers: 1, Fail: func(err error) { t.Error(err) }})
	defer system.Close()
	shard := &mailbox.Ref{}
	system.Init(shard, &mailbox.Kind{Name: "shard"}, silentActor{})
	ask, err := record.Encode(&account.Returned{Account: 1, Day: engine.DateOf(noon), Unspent: 1, Node: 2})
	if err != nil {
		t.Fatal(err)
	}
	leader := &Accounts{Shards: []*mailbox.Ref{shard}, config: Config{WriteTimeout: time.Nanosecond}}
	if err := leader.Grant([][]byte{ask})[0]; !errors.Is(err, commitlog.ErrOutcomeUnknown) {
		t.Errorf("the result is %v", err)
	}
}

// TestL6_AbandonedAdmissionIsRefunded: a caller that no longer waits is not charged.
func TestL6_AbandonedAdmissionIsRefunded(t *testing.T) {
	policy := account.QuotaPolicy{DefaultQuota: account.DefaultQuota(), LeaseSize: account.LeaseSizeDefault}
	now, state := account.ClockReading{Wall: noon}, newAccount(t, 1)
	state.Apply(state.NextLease(keyOf(1), now, policy, 1), now)
	result, _ := state.Admit(keyOf(1), now, policy)
	m := mailbox.NewRequest[account.Digest, account.Admission](keyOf(1))
	_, _ = m.Wait(time.Nanosecond)
	(&AccountActor{ID: 1, Account: state}).reply(m, result, now)
	if left := state.Usage(now, policy).Day.Remaining; !result.Admitted || left != account.DayLimitDefault {
		t.Errorf("%d of the day remain", left)
	}
}
