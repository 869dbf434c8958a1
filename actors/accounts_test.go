package actors

import (
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/wal"
)

func key(digest account.Digest) account.Caller {
	return account.Caller{Key: digest, HasKey: true, Address: client(1)}
}

// callers are one of each kind, with the code that refuses them once keys are required.
func callers(t *testing.T, n *node) map[engine.Code]account.Caller {
	good, revoked, suspended := n.join(1, 1), n.join(2, 1), n.join(3, 1)
	must(t, n.RevokeKey(revoked.token, revoked.ids[0]))
	must(t, n.SuspendAccount(3, "abuse", "luis"))
	return map[engine.Code]account.Caller{
		"":                          key(good.keys[0]),
		engine.CodeMissingKey:       {Address: client(1)},
		engine.CodeInvalidKey:       {Address: client(1), HasMalformedKey: true},
		engine.CodeRevokedKey:       key(revoked.keys[0]),
		engine.CodeAccountSuspended: key(suspended.keys[0]),
	}
}

// An announcement whose caller no longer waits goes on, and writes to nothing that the caller reads (with -race).
func TestK7_AnnouncementOutlivesItsCaller(t *testing.T) {
	for range 20 {
		n := startNode(t, Config{WriteTimeout: time.Nanosecond})
		if policy, err := n.Announce(noon.Add(account.KeyNoticeMin), "luis"); err != nil && policy != (account.KeyPolicy{}) {
			t.Errorf("%+v, %v", policy, err)
		}
		n.stop()
	}
}

func TestK6_BadKeysAreAnonymousUntilKeysAreRequired(t *testing.T) {
	n := startNode(t, Config{})
	all := callers(t, n)
	all["unknown"] = key(keyOf(12345))
	for code, caller := range all {
		grant, err := n.Admit(caller)
		if err != nil || !grant.Admitted || (grant.Account != 0) != (code == "") {
			t.Errorf("%q: %+v, %v", code, grant, err)
		}
	}
	requiredAt := noon.Add(account.KeyNoticeMin)
	announced, err := n.Announce(requiredAt, "luis")
	if err != nil || announced != n.KeyPolicy() || !announced.RequiredAt.Equal(requiredAt) {
		t.Fatalf("%+v, %v", announced, err)
	}
	n.crash()
	n.pass(account.KeyNoticeMin - time.Second)
	if grant, err := n.Admit(all[engine.CodeMissingKey]); err != nil || !grant.Admitted {
		t.Errorf("a second early: %+v, %v", grant, err)
	}
	n.pass(time.Second)
	if _, err := n.Admit(all["unknown"]); !isCode(err, engine.CodeInvalidKey) {
		t.Errorf("an unknown key: %v", err)
	}
	delete(all, "unknown")
	for code, caller := range all {
		grant, err := n.Admit(caller)
		if code == "" && (err != nil || !grant.Admitted || grant.Account != 1) || code != "" && !isCode(err, code) {
			t.Errorf("%q: %+v, %v", code, grant, err)
		}
	}
	must(t, n.RestoreAccount(3, "luis"))
	if grant := n.admit(all[engine.CodeAccountSuspended].Key); grant.Account != 3 {
		t.Errorf("after the suspension: %+v", grant)
	}
}

func TestL8_AnonymousClientsAreCountedByAddress(t *testing.T) {
	n := startNode(t, Config{QuotaPolicy: account.QuotaPolicy{DefaultQuota: account.Quota{Minute: 5}}})
	ask := func(text string) account.Admission {
		grant, err := n.Admit(account.Caller{Address: netip.MustParseAddr(text)})
		if err != nil || grant.Account != 0 {
			t.Fatal(grant, err)
		}
		return grant
	}
	for i := range 8 {
		if grant := ask("203.0.113.7"); grant.Admitted != (i < 5) {
			t.Errorf("request %d: %+v", i, grant)
		}
		if grant := ask([]string{"2001:db8::1", "2001:db8::2"}[i%2]); grant.Admitted != (i < 5) {
			t.Errorf("request %d of one /64: %+v", i, grant)
		}
	}
	if grant := ask("203.0.113.8"); !grant.Admitted {
		t.Errorf("another address: %+v", grant)
	}
	n.pass(time.Minute)
	grant := ask("203.0.113.7")
	n.Refund(grant)
	for i := range 6 {
		if grant := ask("203.0.113.7"); grant.Admitted != (i < 5) {
			t.Errorf("request %d after a refund: %+v", i, grant)
		}
	}
}

func TestL10_LimitsOff(t *testing.T) {
	n := startNode(t, Config{LimitsOff: true, QuotaPolicy: account.QuotaPolicy{DefaultQuota: account.Quota{Day: 1, Minute: 1}}})
	if n.LimitsEnforced() {
		t.Error("limits are off and enforced")
	}
	all := callers(t, n)
	for code, caller := range all {
		for range 3 {
			grant, err := n.Admit(caller)
			if err != nil || !grant.Admitted {
				t.Errorf("%q: %+v, %v", code, grant, err)
			}
			n.Refund(grant)
		}
	}
	if _, err := n.Announce(noon.Add(account.KeyNoticeMin), "luis"); err != nil {
		t.Fatal(err)
	}
	n.pass(account.KeyNoticeMin)
	for code, caller := range all {
		if _, err := n.Admit(caller); code == "" && err != nil || code != "" && !isCode(err, code) {
			t.Errorf("%q: %v", code, err)
		}
	}
}

func TestGateIsClosedWhileTheLogReplays(t *testing.T) {
	journal := newHeldJournal()
	s := open(t, Config{Journal: journal})
	<-journal.reading
	_, err := s.Admit(account.Caller{})
	unavailable(t, "Admit", err, 2*time.Second)
	_, err = s.KeyUsage(keyOf(1))
	unavailable(t, "KeyUsage", err, 2*time.Second)
	_, err = s.ListAccounts()
	unavailable(t, "ListAccounts", err, 2*time.Second)
	_, _, err = s.OpenSession(mustEmail(t, "a@example.com"), "12345678", requester(1))
	unavailable(t, "OpenSession", err, 2*time.Second)
	s.Refund(account.Admission{QuotaResult: account.QuotaResult{Admitted: true}})
	if s.KeyPolicy() != (account.KeyPolicy{}) {
		t.Error("a transition before the log is read")
	}
	close(journal.gate)
	<-s.Ready()
	if err := s.RequestCode(mustEmail(t, "a@example.com"), requester(1)); !isCode(err, engine.CodeMailUnavailable) {
		t.Errorf("without a mailer: %v", err)
	}
}

func TestOperatorChangesAccounts(t *testing.T) {
	n := startNode(t, Config{})
	a, b := n.join(1, 2), n.join(2, 0)
	n.admitted(a.keys[0], 3)
	list, err := n.ListAccounts()
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	want := account.Summary{ID: 1, Email: a.email.ID(), CreatedAt: noon, ActiveKeys: 2, SpentToday: 3}
	if list[0] != want || list[1].Email != b.email.ID() {
		t.Errorf("%+v\nwant %+v", list[0], want)
	}
	must(t, n.SetAccountQuota(1, account.Quota{Day: 5, Minute: 4}, "luis"))
	if got := n.admitted(a.keys[1], 3); got != 1 {
		t.Errorf("%d admitted, one was left of 4 a minute", got)
	}
	n.crash()
	record, verdict, err := n.ShowAccount(1)
	if err != nil || record.Quota != (account.Quota{Day: 5, Minute: 4}) || verdict.Day.Remaining != 0 || len(record.Keys) != 2 {
		t.Errorf("%+v, %+v, %v", record, verdict, err)
	}
	for what, c := range map[string]struct {
		err  error
		want engine.Code
	}{
		"no such account":       {n.SuspendAccount(77, "", "luis"), engine.CodeNotFound},
		"negative":              {n.SetAccountQuota(1, account.Quota{Day: -1}, "luis"), engine.CodeInvalidParameters},
		"negative for a minute": {n.SetAccountQuota(1, account.Quota{Day: 1, Minute: -1}, "luis"), engine.CodeInvalidParameters},
		"minutes beyond bounds": {n.SetAccountQuota(1, account.Quota{Minute: accounts.QuotaMinuteMax + 1}, "luis"), engine.CodeInvalidParameters},
		"a reason in colours":   {n.SuspendAccount(1, "\x1b[31m", "luis"), engine.CodeInvalidParameters},
		"restored as it was":    {n.RestoreAccount(1, "luis"), ""},
	} {
		if codeOfError(c.err) != c.want {
			t.Errorf("%s: %v, want %q", what, c.err, c.want)
		}
	}
}

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
	must(t, n.RequestCode(email, requester(1)))
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
	var tries sync.WaitGroup
	for i := range 20 { // at once: those after the fifth do not count
		tries.Go(func() { _, _, _ = n.OpenSession(email, "wrong", requester(i)) })
	}
	tries.Wait()
	failed := 0
	for _, data := range n.journal.records {
		event, err := new(record.Decoder).Event(data)
		must(t, err)
		if _, wrong := event.(*account.CodeFailed); wrong {
			failed++
		}
	}
	if failed != account.CodeTriesMax {
		t.Errorf("%d tries of one code", failed)
	}
}

// Two codes of one new address that are used at the same moment open one account, whose keys its limits hold.
func TestK2_TwoFirstLoginsAreOneAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const day = 100
		n := startNode(t, Config{QuotaPolicy: account.QuotaPolicy{DefaultQuota: account.Quota{Day: day, Minute: 10 * day}}})
		email := mustEmail(t, "ana@example.com")
		browsers := []account.Requester{requester(1), {Address: requester(2).Address, Browser: account.Digest{7}}}
		var codes []string
		for _, browser := range browsers {
			must(t, n.RequestCode(email, browser))
			codes = append(codes, n.mail.code(email))
			n.pass(time.Minute)
		}
		batch := make(chan struct{})
		n.journal.before = func([][]byte) error { <-batch; return nil }
		var sessions [2]account.Secret
		for i, browser := range browsers {
			go func() { sessions[i], _, _ = n.OpenSession(email, codes[i], browser) }()
			synctest.Wait()
		}
		batch <- struct{}{} // the first login is durable and the second is not
		synctest.Wait()
		var keys [2]account.Secret
		create := func(i int) { _, keys[i], _ = n.CreateKey(sessions[i].Digest(), "") }
		go create(0)
		synctest.Wait()
		close(batch)
		synctest.Wait()
		create(1)
		if list, err := n.Keys(sessions[0].Digest()); len(list) != 2 || n.accounts.Count.Load() != 1 {
			t.Errorf("%d accounts; keys %v, %v", n.accounts.Count.Load(), list, err)
		}
		if got := n.admitted(keys[0].Digest(), day) + n.admitted(keys[1].Digest(), day); got != day {
			t.Errorf("%d of %d requests", got, day)
		}
		n.stop()
	})
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
