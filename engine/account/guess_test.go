package account

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// attacker guesses codes of many addresses from any number of clients, for days and over restarts.
type attacker struct {
	*loginFixture
	perDay   map[dayOfAccount]int // wrong codes that were let through
	lately   []time.Duration
	guesses  int
	guessed  int
	worst    int // of an address and day
	worstAll int // of any hour
	crashes  int
	browser  Digest // of the attacker
}

type dayOfAccount struct {
	account int
	day     engine.Date
}

// guessedAccounts is the number of accounts.
const guessedAccounts = 10_000

func newAttacker(t *testing.T) *attacker {
	a := &attacker{loginFixture: newLoginFixture(t), perDay: map[dayOfAccount]int{}}
	for i := range guessedAccounts {
		a.registry.Apply(&SessionOpened{Account: uint64(i + 1), New: true, Email: idOf(guessedAddress(i)), Token: digestOf(fmt.Sprint(i))})
	}
	return a
}

// from returns a client in a /48 that has made few requests.
func (a *attacker) from() Requester {
	a.opened++
	var sixteen [16]byte
	binary.BigEndian.PutUint64(sixteen[:8], 0x2a00<<48|uint64(a.opened/frequentUses)<<16)
	return Requester{netip.AddrFrom16(sixteen), a.browser}
}

func (a *attacker) guess(account int) { a.guessAt(account, idOf(guessedAddress(account))) }

func guessedAddress(account int) string { return fmt.Sprintf("%d.owner@b.do", account) }

// guessAt tries a random code of an account, with an id that the node might derive for its address. It asks for a code
// if none is pending.
func (a *attacker) guessAt(account int, email EmailID) {
	a.guesses++
	if a.registry.codes[email.digest].of(a.browser) == nil {
		from := a.from()
		if event, err := a.registry.RequestCode(email, from, a.now); err == nil {
			a.registry.Apply(event)
			secret, _ := NewCode(a.random)
			a.registry.ActivateCode(event, secret, from)
		}
	}
	event, _ := a.registry.TryCode(email, fmt.Sprintf("%08d", a.random.IntN(100_000_000)), Digest{byte(a.guesses)}, a.from(), a.now)
	if event == nil {
		return
	}
	a.registry.Apply(event)
	switch e := event.(type) {
	case *SessionOpened:
		a.guessed++
	case *CodeFailed:
		a.checkFailed(account, e)
	}
}

// checkFailed counts a wrong code.
func (a *attacker) checkFailed(account int, e *CodeFailed) {
	key := dayOfAccount{account, engine.DateOf(e.At)}
	a.perDay[key]++
	a.worst = max(a.worst, a.perDay[key])
	for len(a.lately) > 0 && e.Monotonic-a.lately[0] >= time.Hour {
		a.lately = a.lately[1:]
	}
	a.lately = append(a.lately, e.Monotonic)
	a.worstAll = max(a.worstAll, len(a.lately))
}

// strategy is the work of an attacker in one minute.
type strategy func(a *attacker, minute int)

// guessesPerMinute is the rate of each strategy.
const guessesPerMinute = 40

// strategies are those of an attacker with any number of clients.
func strategies() map[string]strategy {
	return map[string]strategy{
		"one address for days": func(a *attacker, minute int) { a.attackOne(minute/1440/10, idOf) },
		"one address a day, new codes all the time": func(a *attacker, minute int) {
			_, _ = a.request(guessedAddress(minute / 1440))
			a.attackOne(minute/1440, idOf)
		},
		"all addresses": func(a *attacker, minute int) {
			for i := range guessesPerMinute {
				a.guess((minute*guessesPerMinute + i) % guessedAccounts)
			}
		},
		"the account of the attacker": func(a *attacker, minute int) {
			if a.browser = (Digest{1}); minute%1440 == 0 {
				a.registry.Apply(&SessionOpened{Account: 1, Email: idOf(guessedAddress(0)), Browser: a.browser, Monotonic: a.now.Monotonic})
			}
			a.attackOne(0, idOf)
		},
		"spellings of one address": func(a *attacker, minute int) { a.attackOne(minute/1440, a.spelling) },
		"bursts": func(a *attacker, minute int) {
			for i := range guessesPerMinute * 30 {
				if minute%30 == 0 {
					a.guess((minute/30*7 + i%50) % guessedAccounts)
				}
			}
		},
		"restarts": func(a *attacker, minute int) {
			a.attackOne(minute/1440, idOf)
			if minute%20 == 19 {
				a.restart()
			}
		},
		"crashes": func(a *attacker, minute int) {
			a.attackOne(minute/1440, idOf)
			if minute%20 == 19 {
				_, _ = a.registry.TryCode(idOf(guessedAddress(minute/1440)), "wrong", Digest{}, a.from(), a.now) // lost
				a.restart()
				a.crashes++
			}
		},
		"clock steps of the node": func(a *attacker, minute int) {
			a.attackOne(0, idOf)
			if minute%97 == 96 {
				a.now.Wall = a.now.Wall.Add([]time.Duration{-25 * time.Hour, -time.Hour}[minute%2])
			}
		},
	}
}

// attackOne tries codes of one account.
func (a *attacker) attackOne(account int, id func(text string) EmailID) {
	for range guessesPerMinute {
		a.guessAt(account, id(guessedAddress(account)))
	}
}

// spelling is the id of an address in another spelling.
func (a *attacker) spelling(text string) EmailID {
	email, err := ParseEmail(a.respelt(text))
	if err != nil {
		a.t.Fatal(err)
	}
	return email.ID()
}

func (a *attacker) respelt(text string) string {
	letters := []byte(text)
	for i := range letters {
		if a.random.IntN(2) == 0 {
			letters[i] = strings.ToUpper(string(letters[i]))[0]
		}
	}
	return string(letters)
}

// attack runs a strategy for days.
func attack(t *testing.T, days int, what strategy) *attacker {
	a := newAttacker(t)
	for minute := range days * 24 * 60 {
		what(a, minute)
		a.advance(time.Minute)
	}
	return a
}

// guessFault says how an attack exceeds the limits; "" when it does not.
func guessFault(a *attacker) string {
	if a.worst > wrongTriesDayMax || a.worstAll > wrongTriesHourMax {
		return fmt.Sprintf("%d wrong codes of an address on a day, %d of all in an hour", a.worst, a.worstAll)
	}
	return ""
}

// Each strategy, for a day or more against ten thousand accounts, has at most 25 wrong tries for an address and day,
// and at most 1,000 in any hour.
func TestS1_GuessLimits(t *testing.T) {
	sample := []string{"one address a day, new codes all the time", "all addresses", "restarts", "the account of the attacker"}
	for name, what := range strategies() {
		if sweep(0, 1) == 0 && !slices.Contains(sample, name) {
			continue
		}
		a := attack(t, sweep(1, 10), what)
		if fault := guessFault(a); fault != "" {
			t.Errorf("%s: %s", name, fault)
		}
		if a.worst < wrongTriesDayMax*defaultShare/wholeShare && a.worstAll < wrongTriesHourMax*7/10 {
			t.Errorf("%s: no bound was reached: %d for an address and day, %d in an hour", name, a.worst, a.worstAll)
		}
	}
}
