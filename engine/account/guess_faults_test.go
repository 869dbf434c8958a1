//go:build faults

package account

import (
	"crypto/sha256"
	"sync"
	"testing"
)

// TestFaultsS1_Attackers runs each strategy for 30 days against 10,000 accounts.
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
				if a.worst < wrongTriesDayMax*defaultShare/wholeShare && a.worstAll < wrongTriesHourMax*defaultShare/wholeShare {
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
	for name, what := range plantedGuessBugs() {
		if fault := guessFault(attack(t, 2, what)); fault == "" {
			t.Errorf("control: %s is not caught", name)
		} else {
			t.Logf("FIGURE control: %s is caught: %s", name, fault)
		}
	}
}

// plantedGuessBugs are nodes that lose counters, or know an address under two spellings, with the strategy that finds
// it.
func plantedGuessBugs() map[string]strategy {
	besiege := strategies()["one address for days"]
	return map[string]strategy{
		"a restart that forgets wrong codes": func(a *attacker, minute int) {
			besiege(a, minute)
			if minute%60 == 59 {
				a.commit()
				a.restart()
				for _, row := range a.registry.addresses {
					row.WrongTries = DayCounter{}
				}
			}
		},
		"spellings that are addresses of their own": func(a *attacker, minute int) {
			a.attackOne(0, func(text string) EmailID { return NewEmailID(sha256.Sum256([]byte(a.respelt(text))), "0") })
		},
		"an hour without a counter": func(a *attacker, minute int) {
			for i := range guessesPerMinute {
				a.guess((minute*guessesPerMinute + i) % guessedAccounts)
			}
			a.commit()
			a.registry.wrongTries = HourCounter{}
		},
	}
}
