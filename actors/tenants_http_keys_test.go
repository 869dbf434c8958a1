package actors

import (
	"fmt"
	"net/http"
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
	for range 2 {
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
		if err != nil || len(keys) != engine.KeysActiveMax || made.Load()+refused.Load() != 50 {
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
	n := startNode(t, Config{Terms: engine.Terms{Allowance: engine.Allowance{Day: 1_000_000}}})
	f := openFront(n, n.System, n.System)
	defer f.shut()
	refusals := map[string]string{}
	refused := func(why string, got *reply) {
		if got.code() != engine.CodeInvalidCode {
			t.Errorf("%s: %d %s", why, got.status, got.body)
		}
		refusals[why] = got.plain()
	}
	for round := range 10 {
		email := fmt.Sprintf("racer%d@example.com", round)
		f.ask(http.MethodPost, "/v1/account/codes", "", fmt.Sprintf(`{"email":%q}`, email))
		code := n.mail.code(mustEmail(t, email))
		answers := make(chan *reply, 8)
		var racers sync.WaitGroup
		for range cap(answers) {
			racers.Go(func() { answers <- f.opened(email, code) })
		}
		racers.Wait()
		close(answers)
		won := 0
		for got := range answers {
			if got.status == http.StatusOK {
				won++
			} else {
				refused("used at the same time", got)
			}
		}
		if won != 1 {
			t.Errorf("round %d: %d sessions for one code", round, won)
		}
		refused("used before", f.opened(email, code))
	}
	refused("unknown address", f.opened("nobody@example.com", "12345678"))
	n.refuseCodes(f, refused)
	for why, text := range refusals {
		if text != refusals["unknown address"] {
			t.Errorf("%s is answered\n%s\nunknown address\n%s", why, text, refusals["unknown address"])
		}
	}
	t.Logf("FIGURE 10 codes with 8 right answers each: one session each; %d kinds of refusal are the same bytes", len(refusals))
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
