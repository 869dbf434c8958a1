//go:build faults

package engine

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// strategy is what an attacker does in a minute.
type strategy func(a *attacker, minute int)

// guessesPerMinute is how often each of them tries.
const guessesPerMinute = 40

// strategies of an attacker who has as many clients as he likes.
func strategies() map[string]strategy {
	return map[string]strategy{
		"one address for days": func(a *attacker, minute int) { a.besiege(minute/1440/10, idOf) },
		"one address a day, new codes all the time": func(a *attacker, minute int) {
			_, _ = a.request(guessedAddress(minute / 1440))
			a.besiege(minute/1440, idOf)
		},
		"all addresses": func(a *attacker, minute int) {
			for i := range guessesPerMinute {
				a.guess((minute*guessesPerMinute + i) % guessedAccounts)
			}
		},
		"spellings of one address": func(a *attacker, minute int) { a.besiege(minute/1440, a.spelling) },
		"bursts side by side": func(a *attacker, minute int) {
			for i := range guessesPerMinute * 30 {
				if minute%30 == 0 {
					a.guess((minute/30*7 + i%50) % guessedAccounts)
				}
			}
		},
		"restarts": func(a *attacker, minute int) {
			a.besiege(minute/1440, idOf)
			if minute%20 == 19 {
				a.land()
				a.restart()
			}
		},
		"crashes": func(a *attacker, minute int) {
			a.besiege(minute/1440, idOf)
			if minute%20 == 19 {
				a.crash()
			}
		},
		"clock steps of the node": func(a *attacker, minute int) {
			a.besiege(0, idOf)
			if minute%97 == 96 {
				a.now.Wall = a.now.Wall.Add([]time.Duration{-25 * time.Hour, -time.Hour}[minute%2])
			}
		},
	}
}

// besiege tries codes of one account.
func (a *attacker) besiege(account int, id func(text string) EmailID) {
	for range guessesPerMinute {
		a.guessAt(account, id(guessedAddress(account)))
	}
}

// spelling is the address as somebody else may write it, read as the node reads it.
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

// attack lets a strategy work for days.
func attack(t *testing.T, days int, what strategy) *attacker {
	a := newAttacker(t)
	for minute := range days * 24 * 60 {
		what(a, minute)
		if minute%2 == 0 {
			a.land()
		}
		a.wait(time.Minute)
	}
	a.land()
	return a
}

// guessFault is how an attack passes the bound; "" when it does not.
func guessFault(a *attacker) string {
	if a.worst > wrongTriesDayMax || a.worstAll > wrongTriesHourMax {
		return fmt.Sprintf("%d wrong codes of an address on a day, %d of all in an hour", a.worst, a.worstAll)
	}
	return ""
}

// TestFaultsS1_Attackers has each strategy work for 30 days against 10,000 accounts.
func TestFaultsS1_Attackers(t *testing.T) {
	const days = 30
	guesses, worst, worstAll := 0, 0, 0
	var counting sync.Mutex
	t.Run("strategies", func(t *testing.T) { // ends when all of them have
		for name, what := range strategies() {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				a := attack(t, days, what)
				if fault := guessFault(a); fault != "" {
					t.Error(fault)
				}
				t.Logf("PROGRESS %s: %d guesses, %d crashes: at most %d wrong codes of an address on a day, %d in an hour; %d guessed",
					name, a.guesses, a.crashes, a.worst, a.worstAll, a.guessed)
				if a.worst < wrongTriesDayMax && a.worstAll < wrongTriesHourMax {
					t.Error("no bound was reached")
				}
				counting.Lock()
				defer counting.Unlock()
				guesses, worst, worstAll = guesses+a.guesses, max(worst, a.worst), max(worstAll, a.worstAll)
			})
		}
	})
	t.Logf("FIGURE %d attackers, %d days, %d accounts, %d guesses: at most %d wrong codes of an address on a day, %d of all in an hour",
		len(strategies()), days, guessedAccounts, guesses, worst, worstAll)
	for name, what := range guessPlants() {
		if fault := guessFault(attack(t, 2, what)); fault == "" {
			t.Errorf("control: %s is not caught", name)
		} else {
			t.Logf("FIGURE control: %s is caught: %s", name, fault)
		}
	}
}

// guessPlants are nodes that forget, or do not know one address under two spellings, under the strategy that finds it.
func guessPlants() map[string]strategy {
	besiege := strategies()["one address for days"]
	return map[string]strategy{
		"a restart that forgets wrong codes": func(a *attacker, minute int) {
			besiege(a, minute)
			if minute%60 == 59 {
				a.land()
				a.restart()
				for _, at := range a.registry.addresses.index {
					a.registry.addresses.own(at).wrong = tally{}
				}
			}
		},
		"spellings that are addresses of their own": func(a *attacker, minute int) {
			a.besiege(0, func(text string) EmailID { return NewEmailID(sha256.Sum256([]byte(a.respelt(text))), "0") })
		},
		"an hour that nobody counts": func(a *attacker, minute int) {
			for i := range guessesPerMinute {
				a.guess((minute*guessesPerMinute + i) % guessedAccounts)
			}
			a.land()
			a.registry.wrong = rolling{}
		},
	}
}
