package actors

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/wal"
)

// reference is what the contract promises one account whatever happens: never more than its limits, and nothing that
// was acknowledged is gone. When a request is refused is the engine's affair, which has a model of that. True time is
// what really goes by, whatever clocks say.
type reference struct {
	number    int
	email     account.Email
	token     account.Digest
	keys      []referenceKey
	admitted  []time.Duration     // true times
	days      map[engine.Date]int // admitted
	quota     account.Quota
	suspended bool
}

type referenceKey struct {
	id      string
	digest  account.Digest
	revoked bool
}

func newReference(number int, m *testMember, quota account.Quota) *reference {
	return &reference{number: number, email: m.email, token: m.token, quota: quota, days: map[engine.Date]int{}}
}

// admit takes an admission in, and is what is wrong with it.
func (r *reference) admit(now time.Duration, day engine.Date) error {
	r.admitted = append(r.admitted, now)
	r.days[day]++
	minute := 0
	for _, at := range r.admitted {
		if now-at < account.MinuteSpan {
			minute++
		}
	}
	if minute > r.quota.Minute || r.days[day] > r.quota.Day {
		return fmt.Errorf("%d admitted within 60 s and %d on %s, at most %+v", minute, r.days[day], day, r.quota)
	}
	return nil
}

func (r *reference) active() int {
	count := 0
	for _, key := range r.keys {
		if !key.revoked {
			count++
		}
	}
	return count
}

// world is a node, its accounts by the book, and true time.
type world struct {
	*node
	accounts []*reference
	now      time.Duration // true
	granted  int
	refusals int
	ill      error // what the disk answers at the moment
	faults   int
}

// judge holds an admission against the reference.
func (w *world) judge(r *reference, key referenceKey, grant account.Admission, err error) error {
	bad := key.revoked || r.suspended
	switch {
	case w.suffered(err):
		return nil
	case err != nil:
		return fmt.Errorf("admission: %w", err)
	case grant.Account == 0 && !bad:
		return fmt.Errorf("a good key is of no account: %+v", grant)
	case grant.Account != 0 && (grant.Account != uint64(r.number) || bad):
		return fmt.Errorf("a bad key is let in: %+v", grant)
	case grant.Account == 0:
		return nil
	case grant.Admitted:
		w.granted++
		return r.admit(w.now, grant.At.Day)
	case grant.DenyCode != engine.CodeQuotaExceeded && grant.DenyCode != engine.CodeRateLimited:
		return fmt.Errorf("refused with %q", grant.DenyCode)
	}
	w.refusals++
	return nil
}

// inspect holds everything that can be asked about an account against the reference.
func (w *world) inspect(r *reference) error {
	record, verdict, err := w.ShowAccount(uint64(r.number))
	if err != nil {
		return err
	}
	day := engine.DateOf(verdict.Day.Reset) - 1
	if spent := verdict.Day.Limit - verdict.Day.Remaining; spent < min(r.quota.Day, r.days[day]) {
		return fmt.Errorf("account %d has spent %d on %s, %d were admitted", r.number, spent, day, r.days[day])
	}
	if record.Email != r.email.ID() || record.SuspendedAt.IsZero() == r.suspended || len(record.Keys) != len(r.keys) {
		return fmt.Errorf("account %d: %+v, want %+v", r.number, record, r)
	}
	for i, key := range record.Keys {
		if key.ID != r.keys[i].id || key.Digest != r.keys[i].digest || key.Active() == r.keys[i].revoked {
			return fmt.Errorf("account %d: key %+v, want %+v", r.number, key, r.keys[i])
		}
	}
	return nil
}

// accountsInWorld is how many accounts live side by side in one run: each is a sequence of its own, and all
// go through the same restarts and crashes.
const accountsInWorld = 20

func newWorld(t *rapid.T) *world {
	w, lease := &world{}, rapid.SampledFrom([]int{1, 3, 16}).Draw(t, "lease")
	quota := account.Quota{Day: rapid.IntRange(5, 40).Draw(t, "day"), Minute: rapid.IntRange(2, 12).Draw(t, "minute")}
	w.node = prepareNode(t, Config{
		QuotaPolicy: account.QuotaPolicy{DefaultQuota: quota, LeaseSize: lease}, AccountShards: 2, AnonymousClientsMax: 64,
		Random:          rand.NewChaCha8([32]byte{}),
		SnapshotRecords: rapid.SampledFrom([]int{20, 1000}).Draw(t, "snapshots"),
	})
	for number := 1; number <= accountsInWorld; number++ {
		w.accounts = append(w.accounts, newReference(number, w.join(number, 0), quota))
	}
	return w
}

func (w *world) step(t *rapid.T) {
	r := w.accounts[rapid.IntRange(0, len(w.accounts)-1).Draw(t, "account")]
	switch action := rapid.IntRange(0, 20).Draw(t, "action"); action {
	case 0:
		w.makeKey(t, r)
	case 1:
		w.revoke(t, r)
	case 2:
		w.operate(t, r)
	case 3:
		w.pass(rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, 30 * time.Second, time.Minute, 6 * time.Hour, 25 * time.Hour}).Draw(t, "pass"))
	case 4:
		w.clock.advance(rapid.SampledFrom([]time.Duration{
			time.Second, -time.Second, 61 * time.Second, -61 * time.Second, time.Hour, -time.Hour, 25 * time.Hour, -25 * time.Hour, 960 * time.Hour, -960 * time.Hour,
		}).Draw(t, "clock step"))
	case 5:
		w.end(t, rapid.Bool().Draw(t, "crash"))
	case 6:
		if _, err := w.ListAccounts(); err != nil {
			t.Fatal(err)
		}
	case 7:
		_, _, err := w.OpenSession(r.email, "wrong", requester(1000+r.number))
		if !isCode(err, engine.CodeInvalidCode) && !isCode(err, engine.CodeRateLimited) {
			t.Fatalf("a wrong code: %v", err)
		}
	case 8:
		w.fail(t, r)
	default:
		w.ask(t, r)
	}
	must(t, w.inspect(r))
}

// fail has the disk refuse everything for a while, and then take it again; or fail once, which stops the node.
func (w *world) fail(t *rapid.T, r *reference) {
	w.faults++
	full := rapid.Bool().Draw(t, "full")
	w.ill = errPlanted
	if full {
		w.ill = wal.ErrNoSpace
	}
	w.fault(w.ill)
	for range rapid.IntRange(1, 4).Draw(t, "in vain") {
		rapid.SampledFrom([]func(*rapid.T, *reference){w.makeKey, w.revoke, w.operate, w.ask}).Draw(t, "what")(t, r)
	}
	met := w.fault(nil)
	w.ill = nil
	if met && !full {
		<-w.Done() // also a write of a quota lease, which no request waits for, stops the node
		w.end(t, true)
	} else if err := w.Err(); err != nil {
		t.Fatalf("a full disk, or none, stopped the node: %v", err)
	}
}

var errPlanted = errors.New("planted")

// suffered reports that an error is the disk's, which is ill: nothing has happened then.
func (w *world) suffered(err error) bool {
	return w.ill != nil && (isCode(err, engine.CodeReadOnly) || isCode(err, engine.CodeInternalError))
}

func (w *world) pass(d time.Duration) {
	w.node.pass(d)
	w.now += d
}

func (w *world) ask(t *rapid.T, r *reference) {
	if len(r.keys) == 0 {
		w.makeKey(t, r)
	}
	if len(r.keys) == 0 {
		return
	}
	key := r.keys[rapid.IntRange(0, len(r.keys)-1).Draw(t, "key")]
	refund := rapid.IntRange(0, 9).Draw(t, "refund") == 0
	for range rapid.IntRange(1, 8).Draw(t, "requests") {
		grant, err := w.Admit(account.Caller{Key: key.digest, HasKey: true})
		must(t, w.judge(r, key, grant, err))
		if refund && grant.Admitted && grant.Account != 0 {
			w.Refund(grant)
			r.days[grant.At.Day]--
			r.admitted = r.admitted[:len(r.admitted)-1]
		}
	}
}

// session is a session of the account, if one is to be had.
func (w *world) session(r *reference) bool {
	if _, err := w.Keys(r.token); err == nil {
		return true
	}
	from := client(r.number)
	if w.RequestCode(r.email, account.Requester{Address: from}) != nil {
		return false
	}
	token, _, err := w.OpenSession(r.email, w.mail.code(r.email), account.Requester{Address: from})
	r.token = token.Digest()
	return err == nil
}

func (w *world) makeKey(t *rapid.T, r *reference) {
	if !w.session(r) {
		return
	}
	key, secret, err := w.CreateKey(r.token, "")
	switch full := r.active() == account.KeysActiveMax; {
	case w.suffered(err):
	case r.suspended:
		if !isCode(err, engine.CodeAccountSuspended) {
			t.Fatalf("a new key of a suspended account: %v", err)
		}
	case full && !isCode(err, engine.CodeKeyLimitReached), !full && err != nil:
		t.Fatalf("%d keys are active: %v", r.active(), err)
	case !full:
		r.keys = append(r.keys, referenceKey{key.ID, secret.Digest(), false})
	}
}

func (w *world) revoke(t *rapid.T, r *reference) {
	if len(r.keys) == 0 || !w.session(r) {
		return
	}
	at := rapid.IntRange(0, len(r.keys)-1).Draw(t, "revoked")
	switch err := w.RevokeKey(r.token, r.keys[at].id); {
	case err == nil:
		r.keys[at].revoked = true
	case !w.suffered(err):
		t.Fatal(err)
	}
}

func (w *world) operate(t *rapid.T, r *reference) {
	id, after := uint64(r.number), *r
	var err error
	switch rapid.IntRange(0, 2).Draw(t, "operation") {
	case 0:
		err = w.SuspendAccount(id, "abuse", "luis")
		after.suspended = true
	case 1:
		err = w.RestoreAccount(id, "luis")
		after.suspended = false
	default:
		after.quota = account.Quota{Day: rapid.IntRange(1, 50).Draw(t, "day"), Minute: rapid.IntRange(1, 15).Draw(t, "minute")}
		err = w.SetAccountQuota(id, after.quota, "luis")
	}
	switch {
	case err == nil:
		*r = after
	case !w.suffered(err):
		t.Fatal(err)
	}
}

// end stops the node, cleanly or not, and starts it again some time later.
func (w *world) end(t *rapid.T, crash bool) {
	journal := w.ended(crash)
	down := rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, 10 * time.Hour}).Draw(t, "down")
	w.clock.advance(down)
	w.now += down
	w.boot(journal)
	for _, r := range w.accounts {
		if err := w.inspect(r); err != nil {
			t.Fatalf("after the start (crash %t): %v", crash, err)
		}
	}
}

// Q6: any run of accounts, keys, codes and quotas over restarts, crashes, failing disks and clock steps is one that
// the contract allows. TestFaultsQ6_AccountsFollowTheContract makes 100,000 sequences of it.
func TestQ6_AccountsFollowTheContract(t *testing.T) {
	c := &contractCheck{most: cases(30, 100)}
	rapid.Check(t, c.play)
	c.report(t)
}

type contractCheck struct {
	most int // worlds

	mu                               sync.Mutex
	worlds, granted, refused, faults int
}

func (c *contractCheck) report(t *testing.T) {
	t.Helper()
	t.Logf("FIGURE %d sequences in %d nodes: %d requests admitted, %d refused, %d times an ill disk",
		c.worlds*accountsInWorld, c.worlds, c.granted, c.refused, c.faults)
	if c.granted == 0 || c.refused == 0 || c.faults == 0 {
		t.Error("nothing was admitted, or nothing refused, or the disk was always well")
	}
}

func (c *contractCheck) play(t *rapid.T) {
	c.mu.Lock()
	enough := c.worlds >= c.most
	c.mu.Unlock()
	if enough {
		return
	}
	w := newWorld(t)
	defer func() { w.stop() }()
	for range rapid.IntRange(40, 300).Draw(t, "steps") {
		w.step(t)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.worlds, c.granted, c.refused, c.faults = c.worlds+1, c.granted+w.granted, c.refused+w.refusals, c.faults+w.faults
}

// everything is the journal as if nothing had ever been dropped.
func (n *node) everything(image *memoryJournal) *memoryJournal {
	n.mu.Lock()
	defer n.mu.Unlock()
	return &memoryJournal{records: slices.Clone(n.all[:image.last()])}
}

// replayed is what a journal's records make of the accounts.
func replayed(t panicStops, c Config, journal commitlog.Journal) *accounts.Replay {
	t.Helper()
	c.Journal = journal
	c, err := c.complete()
	must(t, err)
	s := &System{config: c, log: &commitlog.Log{Config: commitlog.Config{Journal: journal}}}
	if s.accounts, err = accounts.New(s.accountsConfig()); err != nil {
		t.Fatal(err)
	}
	r := newReplayer(s)
	must(t, r.run())
	return r.accounts
}

// statesOf has the states of the accounts as a snapshot would store them.
func statesOf(r *accounts.Replay) map[uint64]string {
	states := map[uint64]string{}
	for id, account := range r.Accounts {
		state := account.State()
		states[id] = string(record.AppendAccount(nil, &state))
	}
	return states
}

// A snapshot and the records behind it tell the same as all records from the first.
func TestW9_SnapshotAndTailAreTheWholeReplay(t *testing.T) {
	left := cases(30, 100)
	rapid.Check(t, func(t *rapid.T) {
		if left == 0 {
			return
		}
		left--
		w := newWorld(t)
		defer func() { w.stop() }()
		for range rapid.IntRange(20, 100).Draw(t, "steps") {
			w.step(t)
		}
		image := w.journal.crashed()
		short := replayed(t, w.config, image)
		long := replayed(t, w.config, w.everything(image))
		got, want := short.Registry.Snapshot(), long.Registry.Snapshot()
		sameAddresses := reflect.DeepEqual(sortedAddresses(got), sortedAddresses(want))
		got.Addresses, want.Addresses = nil, nil
		if !sameAddresses || !reflect.DeepEqual(got, want) || short.KeyPolicy != long.KeyPolicy {
			t.Fatalf("%+v\nwant %+v", got, want)
		}
		if got, want := statesOf(short), statesOf(long); !reflect.DeepEqual(got, want) {
			t.Fatalf("accounts %x\nwant %x", got, want)
		}
	})
}

// contractChange is a change of account 1, which has one key, and whether the change has taken effect.
type contractChange struct {
	make func(n *node, m *testMember) error
	done func(n *node, m *testMember, record account.Record, usage account.QuotaResult) bool
}

func contractChanges() map[string]contractChange {
	type (
		record = account.Record
		usage  = account.QuotaResult
	)
	rejected := func(n *node, m *testMember, _ record, _ usage) bool { return n.admit(m.keys[0]).Account == 0 }
	return map[string]contractChange{
		"a key is created": {
			func(n *node, m *testMember) error { _, _, err := n.CreateKey(m.token, ""); return err },
			func(_ *node, _ *testMember, r record, _ usage) bool { return len(r.Keys) == 2 },
		},
		"a key is revoked":        {func(n *node, m *testMember) error { return n.RevokeKey(m.token, m.ids[0]) }, rejected},
		"an account is suspended": {func(n *node, _ *testMember) error { return n.SuspendAccount(1, "abuse", "luis") }, rejected},
		"a quota is set": {
			func(n *node, _ *testMember) error {
				return n.SetAccountQuota(1, account.Quota{Day: 7, Minute: 5}, "luis")
			},
			func(_ *node, _ *testMember, _ record, u usage) bool { return u.Day.Limit == 7 },
		},
	}
}

// TestQ6_EachChangeIsDurable plays one short sequence for each kind of change that TestQ6_AccountsFollowTheContract
// makes at random: a change has no effect before it is durable, and an acknowledged one survives a crash.
func TestQ6_EachChangeIsDurable(t *testing.T) {
	for name, change := range contractChanges() {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, Config{})
			m := n.join(1, 1)
			n.admit(m.keys[0]) // it has a lease, and needs no other one below
			want := func(what string, want bool) {
				t.Helper()
				record, usage, err := n.ShowAccount(1)
				must(t, err)
				if change.done(n, m, record, usage) != want {
					t.Errorf("%s: it has taken effect: %v", what, !want)
				}
			}
			n.fault(wal.ErrNoSpace)
			if err := change.make(n, m); !isCode(err, engine.CodeReadOnly) {
				t.Errorf("on a full disk: %v", err)
			}
			want("refused by a full disk", false)
			n.fault(errPlanted)
			if err := change.make(n, m); err == nil || n.Err() == nil {
				t.Errorf("on a failing disk: %v, and the node stops for %v", err, n.Err())
			}
			n.fault(nil)
			n.crash()
			want("after the write has failed", false)
			n.pass(2 * account.MinuteSpan) // an address gets one code a minute
			m.token = login(t, n.System, n.mail, m.email, client(2))
			must(t, change.make(n, m))
			want("acknowledged", true)
			n.crash()
			want("after a crash", true)
		})
		t.Run(name+", control", func(t *testing.T) {
			n := startNode(t, Config{})
			m := n.join(1, 1)
			n.journal.setLazy(true)
			must(t, change.make(n, m))
			n.crash()
			if record, usage, err := n.ShowAccount(1); err != nil || change.done(n, m, record, usage) {
				t.Errorf("a journal that acknowledges before it keeps is not caught: %v", err)
			}
		})
	}
}
