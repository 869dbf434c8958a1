//go:build faults

package account

import (
	"crypto/sha256"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
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
			a.registry.state.WrongTries = HourCounter{}
		},
	}
}

// TestFaultsQ3_YearOfAThousandAccounts is TestL1_L2_YearAgainstReference for a year and a thousand accounts, with a
// control for each pattern.
func TestFaultsQ3_YearOfAThousandAccounts(t *testing.T) {
	const accounts, days, steps = 1000, 365, 10
	var next, asked, denied atomic.Int64
	var working sync.WaitGroup
	names := slices.Sorted(maps.Keys(loadPatterns(nil)))
	for range runtime.GOMAXPROCS(0) {
		working.Go(func() {
			for number := next.Add(1); number <= accounts && !t.Failed(); number = next.Add(1) {
				random := rand.New(rand.NewPCG(3, uint64(number)))
				name := names[int(number)%len(names)]
				m := liveDays(days, 0, loadPatterns(random)[name], random)
				if m.fault != "" {
					t.Errorf("account %d, %s, %s", number, name, m.fault)
				}
				asked.Add(int64(m.counts["admitted"] + m.counts["refused"]))
				denied.Add(int64(m.counts["refused"]))
				if number%(accounts/steps) == 0 {
					t.Logf("PROGRESS %d of %d accounts", number, accounts)
				}
			}
		})
	}
	working.Wait()
	t.Logf("FIGURE %d accounts, %d days of every minute and every midnight: %d requests, %d refused, as the model to the nanosecond",
		accounts, days, asked.Load(), denied.Load())
	if denied.Load() == 0 {
		t.Error("no limit was reached")
	}
	caught, skews := 0, []time.Duration{time.Millisecond, time.Nanosecond, -time.Nanosecond, -1001 * time.Millisecond}
	for _, name := range names {
		for _, skew := range skews {
			random := rand.New(rand.NewPCG(4, 0))
			if liveDays(3, skew, loadPatterns(random)[name], random).fault == "" {
				t.Errorf("%s: a clock that is ahead by %s is not caught", name, skew)
				continue
			}
			caught++
		}
	}
	t.Logf("FIGURE control: %d of %d planted clocks caught", caught, len(names)*len(skews))
}
