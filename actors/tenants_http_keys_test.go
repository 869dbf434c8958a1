package actors

import (
	"fmt"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// revocations is what revoking keys came to.
type revocations struct {
	revoked, refused int
	broken           []string // requests that began after a revocation's 204 and were let in
}

// revoking makes a member in each round, with readers who use both keys, and revokes one key among them. Whatever request
// begins after the 204 must be refused, then and after the crash or restart that ends the round; the other key must go on. lazy
// is the planted lie of the journal.
func revoking(t *testing.T, rounds int, lazy bool) (r revocations) {
	n := startNode(t, Config{Terms: engine.Terms{Allowance: engine.Allowance{Day: 1_000_000, Minute: allowanceMinuteMax}, Lease: 1000}})
	if _, err := n.Announce(noon.Add(engine.NoticeMin), "luis"); err != nil {
		t.Fatal(err)
	}
	n.pass(engine.NoticeMin)
	publishing(n)
	for round := range rounds {
		m := n.join(round+1, 2)
		n.journal.mu.Lock()
		n.journal.lazy = lazy
		n.journal.mu.Unlock()
		f := openFront(n, n.System, n.System)
		r.round(f, m, round%2)
		f.shut()
		if round%4 == 3 && !lazy {
			n.restart()
		} else {
			n.crash()
		}
		f = openFront(n, n.System, n.System)
		switch got := f.ask(http.MethodGet, bestDollars, m.secrets[round%2], ""); {
		case got.status == http.StatusOK:
			r.broken = append(r.broken, fmt.Sprintf("round %d: let in after the end", round))
		case got.code() != engine.CodeRevokedKey:
			t.Errorf("round %d: the revoked key is answered %d %s", round, got.status, got.body)
		}
		if got := f.ask(http.MethodGet, bestDollars, m.secrets[1-round%2], ""); got.status != http.StatusOK {
			t.Errorf("round %d: the other key is answered %d %s", round, got.status, got.body)
		}
		f.shut()
	}
	return r
}

// Readers of a round, and what each asks before the revocation at least.
const (
	revocationReaders = 4
	readsBefore       = 5
	readsAfter        = 5
)

// round revokes one key while readers use both.
func (r *revocations) round(f *front, m *member, victim int) {
	var gone atomic.Bool
	var before atomic.Int64
	var refused atomic.Int64
	var readers sync.WaitGroup
	var mu sync.Mutex
	for number := range revocationReaders {
		readers.Go(func() {
			for after := 0; after < readsAfter; {
				late := gone.Load()
				got := f.ask(http.MethodGet, bestDollars, m.secrets[number%2], "")
				before.Add(1)
				if late {
					after++
				}
				if number%2 != victim || !late {
					continue
				}
				if refused.Add(1); got.code() != engine.CodeRevokedKey { // whatever else it is: there was no fault
					mu.Lock()
					r.broken = append(r.broken, fmt.Sprintf("reader %d: %d behind the 204", number, got.status))
					mu.Unlock()
				}
			}
		})
	}
	for before.Load() < revocationReaders*readsBefore {
		runtime.Gosched()
	}
	if (webAsker{f, m}).revoke(victim) == done {
		r.revoked++
	}
	gone.Store(true)
	readers.Wait()
	r.refused += int(refused.Load())
}

// checkRevocations wants every revocation to hold.
func checkRevocations(t *testing.T, rounds int) {
	t.Helper()
	r := revoking(t, rounds, false)
	for _, broken := range r.broken {
		t.Error(broken)
	}
	t.Logf("FIGURE %d revocations under readers, each with a crash or a restart behind it: %d later requests, none let in", r.revoked, r.refused)
	if r.revoked != rounds || r.refused == 0 {
		t.Errorf("%d of %d keys were revoked, %d requests refused", r.revoked, rounds, r.refused)
	}
}

func TestS7_RevokedKeysStayOut(t *testing.T) { checkRevocations(t, 8) }

// A journal that acknowledges before it keeps brings a revoked key back.
func TestS7_Control_RevocationThatIsNotDurable(t *testing.T) {
	if r := revoking(t, 4, true); len(r.broken) == 0 {
		t.Error("a revocation that a crash takes back is not caught")
	}
}

// Fifty creations side by side make two keys, over HTTP, and none more after a restart.
func TestS7_ThirdKeyOverHTTP(t *testing.T) {
	n := startNode(t, Config{})
	m := n.join(1, 0)
	for _, want := range []int64{engine.KeysActiveMax, 0} {
		f := openFront(n, n.System, n.System)
		var creators sync.WaitGroup
		var made, refused atomic.Int64
		for range 50 {
			creators.Go(func() {
				switch got := f.ask(http.MethodPost, "/v1/account/keys", m.session, `{"name":"x"}`); {
				case got.status == http.StatusCreated:
					made.Add(1)
				case got.status == http.StatusConflict && got.code() == engine.CodeKeyLimitReached:
					refused.Add(1)
				default:
					t.Errorf("%d %s", got.status, got.body)
				}
			})
		}
		creators.Wait()
		f.shut()
		keys, err := n.Keys(m.token)
		if err != nil || len(keys) != engine.KeysActiveMax || made.Load() != want || refused.Load() != 50-want {
			t.Errorf("%d made, %d refused; %d keys, %v", made.Load(), refused.Load(), len(keys), err)
		}
		n.crash()
	}
}

// opened posts a code.
func (f *front) opened(email, code string) *reply {
	return f.ask(http.MethodPost, "/v1/account/sessions", "", fmt.Sprintf(`{"email":%q,"code":%q}`, email, code))
}

// plain is what of a refusal may tell something: all of it but the request's id and the date.
func (r *reply) plain() string {
	id := r.header.Get("X-Request-Id")
	header := r.header.Clone()
	header.Del("X-Request-Id")
	header.Del("Date")
	return fmt.Sprintf("%d %v %s", r.status, header, strings.ReplaceAll(r.body, id, "ID"))
}

// Right answers side by side over HTTP: one opens a session, the others are told what everybody is told whose code is not
// valid, byte for byte.
func TestS2_OneRightAnswerWinsOverHTTP(t *testing.T) {
	r := raceForCodes(t, honestAccounts)
	r.report(t)
	t.Logf("%d codes with %d right answers each: one session each; %d refusals of %d kinds are the same bytes",
		r.codes, codeRacers, r.refusals, len(r.kinds))
}

func honestAccounts(a engine.Accounts) engine.Accounts { return a }

// Codes that are raced for, and the right answers to each side by side.
const (
	codesRaced = 10
	codeRacers = 8
)

// codeRace is what right answers and wrong ones came to.
type codeRace struct {
	codes, refusals int
	kinds           map[string]bool // why
	first           string          // refusal: all others must be the same
	faults          []string
}

func (r *codeRace) report(t *testing.T) {
	t.Helper()
	for _, fault := range r.faults {
		t.Error(fault)
	}
}

// refused holds a refusal against the others.
func (r *codeRace) refused(why string, got *reply) {
	r.refusals++
	r.kinds[why] = true
	text := got.plain()
	if r.first == "" {
		r.first = text
	}
	if got.code() != engine.CodeInvalidCode || text != r.first {
		r.faults = append(r.faults, fmt.Sprintf("%s is answered\n%s\nothers\n%s", why, text, r.first))
	}
}

// raceForCodes has right answers to some codes compete, and tries every kind of code that is not right. A control plants its own accounts.
func raceForCodes(t *testing.T, plant func(engine.Accounts) engine.Accounts) *codeRace {
	t.Helper()
	n := startNode(t, Config{Terms: engine.Terms{Allowance: engine.Allowance{Day: 1_000_000}}})
	f := openFrontTo(n, n.System, n.System, plant(n.System))
	defer f.shut()
	r := &codeRace{kinds: map[string]bool{}}
	for ; r.codes < codesRaced; r.codes++ {
		email := fmt.Sprintf("racer%d@example.com", r.codes)
		f.ask(http.MethodPost, "/v1/account/codes", "", fmt.Sprintf(`{"email":%q}`, email))
		code := n.mail.code(mustEmail(t, email))
		answers := make(chan *reply, codeRacers)
		var racers sync.WaitGroup
		for range codeRacers {
			racers.Go(func() { answers <- f.opened(email, code) })
		}
		racers.Wait()
		close(answers)
		won := 0
		for got := range answers {
			if got.status == http.StatusOK {
				won++
			} else {
				r.refused("used at the same time", got)
			}
		}
		if won != 1 {
			r.faults = append(r.faults, fmt.Sprintf("%d sessions for one code", won))
		}
		r.refused("used before", f.opened(email, code))
	}
	r.refused("unknown address", f.opened("nobody@example.com", "12345678"))
	n.refuseCodes(f, r.refused)
	return r
}

// generousAccounts are the planted bugs: a code that opens a second session, and a refusal that says more than others.
type generousAccounts struct {
	engine.Accounts
	twice, talks bool

	mu   sync.Mutex
	used map[string]bool
}

// OpenSession is engine.Accounts.
func (g *generousAccounts) OpenSession(email engine.Email, code string, from netip.Addr) (engine.Secret, time.Time, error) {
	token, expires, err := g.Accounts.OpenSession(email, code, from)
	g.mu.Lock()
	defer g.mu.Unlock()
	known := g.used[code]
	g.used[code] = true
	switch {
	case err != nil && known && g.twice:
		return engine.SecretOf("planted"), noon.Add(engine.SessionLifetime), nil
	case err != nil && known && g.talks:
		return token, expires, &engine.Error{Code: engine.CodeInvalidCode, Message: "the code is used"}
	}
	return token, expires, err
}

func TestS2_Control_OverHTTP(t *testing.T) {
	for name, planted := range map[string]*generousAccounts{"a code works twice": {twice: true}, "a refusal says why": {talks: true}} {
		r := raceForCodes(t, func(a engine.Accounts) engine.Accounts {
			planted.Accounts, planted.used = a, map[string]bool{}
			return planted
		})
		if len(r.faults) == 0 {
			t.Errorf("%s, and is not caught", name)
		}
	}
}

// refuseCodes tries codes that are no longer, or were never, right for an address.
func (n *node) refuseCodes(f *front, refused func(why string, got *reply)) {
	send := func(email string) string {
		f.ask(http.MethodPost, "/v1/account/codes", "", fmt.Sprintf(`{"email":%q}`, email))
		return n.mail.code(mustEmail(n.t, email))
	}
	code := send("ana@example.com")
	refused("another's", f.opened("eva@example.com", code))
	refused("wrong", f.opened("ana@example.com", other(code)))
	n.pass(engine.CodeResendAfter)
	send("ana@example.com")
	refused("replaced", f.opened("ana@example.com", code))
	code = send("late@example.com")
	n.pass(engine.CodeLifetime - time.Nanosecond)
	refused("wrong at the last moment", f.opened("late@example.com", other(code)))
	n.pass(time.Nanosecond)
	refused("expired", f.opened("late@example.com", code))
	code = send("tries@example.com")
	for range engine.CodeTriesMax {
		refused("wrong", f.opened("tries@example.com", other(code)))
	}
	refused("tried out", f.opened("tries@example.com", code))
	for range 25 - engine.CodeTriesMax {
		refused("wrong", f.opened("tries@example.com", other(code)))
	}
	refused("throttled", f.opened("tries@example.com", code))
	n.pass(engine.CodeResendAfter)
	code = send("gone@example.com")
	n.crash()
	g := openFront(n, n.System, n.System)
	defer g.shut()
	refused("of another process", g.opened("gone@example.com", code))
}

// other is a code that is not this one.
func other(code string) string {
	if strings.HasPrefix(code, "0") {
		return "1" + code[1:]
	}
	return "0" + code[1:]
}
