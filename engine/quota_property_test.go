package engine

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever crashes, stops, refunds and steps of the clock by up to 40 days come together: never more than the minute's limit in any 60
// seconds of true time, never more than the day's limit on a day; no refusal without a reason; a crash costs at most a lease, a clean
// stop nothing; and a replay is the live state.
func TestL1_L2_NeverOverGranted(t *testing.T) {
	sequences, admitted, crashes := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := newQuotaWorld(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "") }, func(a *Account) counter { return a })
		if fault := w.live(rapid.IntRange(1, 120).Draw(t, "steps")); fault != "" {
			t.Fatal(fault)
		}
		sequences, admitted, crashes = sequences+1, admitted+w.admitted, crashes+w.crashes
	})
	t.Logf("%d sequences, %d requests admitted, %d crashes", sequences, admitted, crashes)
	if sequences == 0 || admitted == 0 || crashes == 0 {
		t.Error("nothing was tried")
	}
}

// The same from plain seeds: many more sequences in the same time, and the yardstick of the controls.
func TestL1_L2_NeverOverGrantedFromSeeds(t *testing.T) {
	sequences := 20_000
	if raceDetector || testing.Short() {
		sequences = 1_000
	}
	admitted, crashes, aside := 0, 0, 0
	for seed := range sequences {
		w := newQuotaWorld(rand.New(rand.NewPCG(1, uint64(seed))).IntN, func(a *Account) counter { return a })
		if fault := w.live(150); fault != "" {
			t.Fatalf("seed %d: %s", seed, fault)
		}
		admitted, crashes, aside = admitted+w.admitted, crashes+w.crashes, aside+w.aside
	}
	t.Logf("%d sequences, %d requests admitted, %d crashes, %d times put aside", sequences, admitted, crashes, aside)
	if admitted == 0 || crashes == 0 || aside == 0 {
		t.Error("nothing was tried")
	}
}

// staleCheck decides on what the request before has seen.
type staleCheck struct {
	*Account
	seen Verdict
}

func (b *staleCheck) Admit(digest Digest, now Moment, terms Terms) (Verdict, Need) {
	seen := b.seen
	b.seen = b.Windows(now, terms)
	count := b.days.find(DateOf(now.Wall))
	if !seen.Admitted || count == nil || count.unspent() <= 0 {
		return b.Account.Admit(digest, now, terms)
	}
	count.spent++
	b.minute.add(now)
	return seen, Nothing
}

// fixedWindow forgets everything at the full minute.
type fixedWindow struct {
	*Account
	slot time.Duration
}

func (b *fixedWindow) Admit(digest Digest, now Moment, terms Terms) (Verdict, Need) {
	if slot := now.Steady / time.Minute; slot != b.slot {
		b.slot, b.minute = slot, minute{}
	}
	return b.Account.Admit(digest, now, terms)
}

// oneDay knows only the day that the clock shows.
type oneDay struct {
	*Account
	day Date
}

func (b *oneDay) Admit(digest Digest, now Moment, terms Terms) (Verdict, Need) {
	if day := DateOf(now.Wall); day != b.day {
		b.day, b.days = day, days{}
	}
	return b.Account.Admit(digest, now, terms)
}

// freshMinute takes a restart for a new minute.
type freshMinute struct{ *Account }

func (b freshMinute) Resume(now Moment) {
	b.Account.Resume(now)
	b.minute = minute{}
}

// anyRefund takes the newest admission out of the minute.
type anyRefund struct{ *Account }

func (b anyRefund) Refund(at Moment) {
	b.Account.Refund(at)
	if len(b.minute.inside()) > 0 {
		b.minute.admitted = b.minute.admitted[:len(b.minute.admitted)-1]
	}
}

// quickRefund lets a refunded request be spent again without a word in the log.
type quickRefund struct{ *Account }

func (b quickRefund) Refund(at Moment) {
	b.fence = -1
	b.Account.Refund(at)
}

// wallMinute measures the minute with the wall clock.
type wallMinute struct{ *Account }

func (b wallMinute) Admit(digest Digest, now Moment, terms Terms) (Verdict, Need) {
	now.Steady = now.Wall.Sub(noon)
	return b.Account.Admit(digest, now, terms)
}

// returnsTooMuch gives one request back that was spent.
type returnsTooMuch struct{ *Account }

func (b returnsTooMuch) Return(now Moment) *Returned {
	event := b.Account.Return(now)
	if event != nil {
		event.Unspent++
	}
	return event
}

func TestL1_L2_ControlPlantedBugsAreCaught(t *testing.T) {
	const minuteFault, dayFault = "admitted in a minute", "admitted on"
	plain := func(a *Account) counter { return a }
	plants := []struct {
		name, fault string
		plant       func(*Account) counter
	}{
		{"check, then act", minuteFault, func(a *Account) counter { return &staleCheck{Account: a} }},
		{"window does not slide", minuteFault, func(a *Account) counter { return &fixedWindow{Account: a} }},
		{"day goes back", dayFault, func(a *Account) counter { return &oneDay{Account: a} }},
		{"restart opens the minute", minuteFault, func(a *Account) counter { return freshMinute{a} }},
		{"refund of another's minute", minuteFault, func(a *Account) counter { return anyRefund{a} }},
		{"refund that the log misses", minuteFault, func(a *Account) counter { return quickRefund{a} }},
		{"minute on the wall clock", minuteFault, func(a *Account) counter { return wallMinute{a} }},
		{"returns more than was leased", dayFault, func(a *Account) counter { return returnsTooMuch{a} }},
		{"lease not durable, day", dayFault, plain},
		{"lease not durable, minute", minuteFault, plain},
	}
	for _, p := range plants {
		t.Run(p.name, func(t *testing.T) {
			for seed := range 60_000 {
				w := newQuotaWorld(rand.New(rand.NewPCG(2, uint64(seed))).IntN, p.plant)
				w.only, w.forgetful = p.fault, strings.HasPrefix(p.name, "lease not durable")
				if fault := w.live(150); fault != "" {
					t.Logf("caught by sequence %d: %s", seed+1, fault)
					return
				}
			}
			t.Error("not caught")
		})
	}
}
