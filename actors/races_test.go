package actors

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Codes that are raced for, and the right answers to each side by side.
const (
	codesRaced = 10
	codeRacers = 8
)

type codeRace struct {
	node     *node
	accounts account.Service
	clients  atomic.Int64 // addresses used up: the brakes on logins are by address

	codes, refusals int
	kinds           map[string]bool // why
	first           string          // refusal: all others must be the same
	faults          []string
}

func (r *codeRace) open(email account.Email, code string) error {
	_, _, err := r.accounts.OpenSession(email, code, requester(int(1_000_000+r.clients.Add(1))))
	return err
}

// refused holds a refusal against the others: all are the same, whatever was wrong with the code.
func (r *codeRace) refused(why string, err error) {
	r.refusals++
	r.kinds[why] = true
	text := fmt.Sprint("no refusal: ", err)
	if e := (*engine.Error)(nil); errors.As(err, &e) {
		text = fmt.Sprintf("%s %q %s", e.Code, e.Message, e.RetryAfter)
	}
	if r.first == "" {
		r.first = text
	}
	if !isCode(err, engine.CodeInvalidCode) || text != r.first {
		r.faults = append(r.faults, fmt.Sprintf("%s is answered %s, others %s", why, text, r.first))
	}
}

// raceForCodes has right answers to some codes compete, and tries every kind of code that is not right. A control
// plants its own accounts.
func raceForCodes(t *testing.T, plant func(account.Service) account.Service) *codeRace {
	t.Helper()
	n := startNode(t, Config{QuotaPolicy: account.QuotaPolicy{DefaultQuota: account.Quota{Day: 1_000_000}}})
	r := &codeRace{node: n, accounts: plant(n.System), kinds: map[string]bool{}}
	for ; r.codes < codesRaced; r.codes++ {
		email := mustEmail(t, fmt.Sprintf("racer%d@example.com", r.codes))
		code := r.send(email)
		answers := make([]error, codeRacers)
		var racers sync.WaitGroup
		for i := range answers {
			racers.Go(func() { answers[i] = r.open(email, code) })
		}
		racers.Wait()
		won := 0
		for _, err := range answers {
			if err == nil {
				won++
			} else {
				r.refused("used at the same time", err)
			}
		}
		if won != 1 {
			r.faults = append(r.faults, fmt.Sprintf("%d sessions for one code", won))
		}
		r.refused("used before", r.open(email, code))
	}
	if got := countAccounts(t, n.System); got != codesRaced {
		r.faults = append(r.faults, fmt.Sprintf("%d accounts were begun", got))
	}
	r.refused("unknown address", r.open(mustEmail(t, "nobody@example.com"), "12345678"))
	r.wrongCodes()
	return r
}

func (r *codeRace) send(email account.Email) string {
	if err := r.accounts.RequestCode(email, requester(int(1_000_000+r.clients.Add(1)))); err != nil {
		r.faults = append(r.faults, fmt.Sprintf("a code for %s: %v", email, err))
	}
	return r.node.mail.code(email)
}

// wrongCodes tries codes that are no longer, or were never, right for an address.
func (r *codeRace) wrongCodes() {
	n, at := r.node, func(text string) account.Email { return mustEmail(r.node.t, text) }
	ana, late, tries, gone := at("ana@example.com"), at("late@example.com"), at("tries@example.com"), at("gone@example.com")
	code := r.send(ana)
	r.refused("another's", r.open(at("eva@example.com"), code))
	r.refused("wrong", r.open(ana, notCode(code)))
	n.pass(account.CodeResendAfter)
	r.send(ana)
	r.refused("replaced", r.open(ana, code))
	code = r.send(late)
	n.pass(account.CodeLifetime - time.Nanosecond)
	r.refused("wrong at the last moment", r.open(late, notCode(code)))
	n.pass(time.Nanosecond)
	r.refused("expired", r.open(late, code))
	code = r.send(tries)
	for range account.CodeTriesMax {
		r.refused("wrong", r.open(tries, notCode(code)))
	}
	r.refused("tried out", r.open(tries, code))
	for range 25 - account.CodeTriesMax {
		r.refused("wrong", r.open(tries, notCode(code)))
	}
	r.refused("throttled", r.open(tries, code))
	n.pass(account.CodeResendAfter)
	code = r.send(gone)
	n.crash()
	r.accounts = n.System
	r.refused("of another process", r.open(gone, code))
}

// Right answers side by side: one opens a session and begins an account, the others get the
// answer to a code that is not valid.
func TestS2_OneRightAnswerWins(t *testing.T) { checkCodes(t) }

func checkCodes(t *testing.T) {
	t.Helper()
	r := raceForCodes(t, func(a account.Service) account.Service { return a })
	for _, fault := range r.faults {
		t.Error(fault)
	}
	t.Logf("FIGURE %d codes with %d right answers each: one session each; %d refusals of %d kinds are the same", r.codes, codeRacers, r.refusals, len(r.kinds))
}

// generousAccounts are the planted bugs: a code that opens a second session, and a refusal that says more than others.
type generousAccounts struct {
	account.Service
	twice, talks bool

	mu   sync.Mutex
	used map[string]bool
}

func (g *generousAccounts) OpenSession(email account.Email, code string, from account.Requester) (account.Secret, time.Time, error) {
	token, expires, err := g.Service.OpenSession(email, code, from)
	g.mu.Lock()
	defer g.mu.Unlock()
	known := g.used[code]
	g.used[code] = true
	switch {
	case err != nil && known && g.twice:
		return account.SecretOf("planted"), noon.Add(account.SessionLifetime), nil
	case err != nil && known && g.talks:
		return token, expires, &engine.Error{Code: engine.CodeInvalidCode, Message: "the code is used"}
	}
	return token, expires, err
}

func TestS2_Control(t *testing.T) {
	for fault, planted := range map[string]*generousAccounts{"sessions for one code": {twice: true}, "the code is used": {talks: true}} {
		r := raceForCodes(t, func(a account.Service) account.Service {
			planted.Service, planted.used = a, map[string]bool{}
			return planted
		})
		if !strings.Contains(fmt.Sprint(r.faults), fault) {
			t.Errorf("%q is not caught", fault)
		}
	}
}
