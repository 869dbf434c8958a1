package engine

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever nodes of a cluster lease side by side, lose, hear late or spend while they are cut off, and however they crash and come back:
// never more than the minute's limit in any 60 seconds on all of them together, never more than the day's limit on a day, and in the end all
// know the same.
func TestL1_L2_NeverOverGrantedInACluster(t *testing.T) {
	sequences, admitted, void := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := newClusterWorld(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "") }, clusterBug{})
		if fault := w.live(rapid.IntRange(1, 200).Draw(t, "steps")); fault != "" {
			t.Fatal(fault)
		}
		sequences, admitted, void = sequences+1, admitted+w.admitted, void+w.void
	})
	t.Logf("%d sequences, %d requests admitted, %d offers void", sequences, admitted, void)
	if admitted == 0 || void == 0 {
		t.Error("nothing was tried")
	}
}

// The same from plain seeds.
func TestL1_L2_NeverOverGrantedInAClusterFromSeeds(t *testing.T) {
	sequences := 20_000
	if raceDetector || testing.Short() {
		sequences = 1_000
	}
	sum := clusterWorld{}
	for seed := range sequences {
		w := newClusterWorld(rand.New(rand.NewPCG(6, uint64(seed))).IntN, clusterBug{})
		if fault := w.live(400); fault != "" {
			t.Fatalf("seed %d: %s", seed, fault)
		}
		sum.admitted, sum.void, sum.crashes = sum.admitted+w.admitted, sum.void+w.void, sum.crashes+w.crashes
		sum.returned, sum.aside = sum.returned+w.returned, sum.aside+w.aside
	}
	t.Logf("%d sequences, %d requests admitted, %d offers void, %d crashes, %d returns of a node that rests, %d times put aside",
		sequences, sum.admitted, sum.void, sum.crashes, sum.returned, sum.aside)
	if sum.admitted == 0 || sum.void == 0 || sum.crashes == 0 || sum.returned == 0 || sum.aside == 0 {
		t.Error("nothing was tried")
	}
}

// Even leases that were decided without the last record would grant nothing too much, if one were not void: who spends knows all leases
// before his own, and counts them.
func TestL1_L2_StaleLeasesGrantNothingMore(t *testing.T) {
	sequences := 5_000
	if raceDetector || testing.Short() {
		sequences = 500
	}
	for seed := range sequences {
		w := newClusterWorld(rand.New(rand.NewPCG(8, uint64(seed))).IntN, clusterBug{only: "admitted", stale: true})
		if fault := w.live(400); fault != "" {
			t.Fatalf("seed %d: %s", seed, fault)
		}
	}
}

// onlyOwn leaves the words of other nodes out.
func onlyOwn(a *Account) {
	own := a.said()
	if a.shares = nil; own.recent+own.tokens > 0 {
		a.shares = []share{own}
	}
}

func TestL1_L2_ControlPlantedBugsOfAClusterAreCaught(t *testing.T) {
	const minuteFault, dayFault = "admitted in a minute", "admitted on"
	for name, bug := range map[string]clusterBug{
		"others don't count": {only: minuteFault, before: onlyOwn},
		"leases last for ever": {only: minuteFault, before: func(a *Account) {
			a.purse.until, a.purse.over = 1<<60, at("2100-01-01T00:00:00Z")
		}},
		"leases outlast the sleep of a machine": {only: minuteFault, before: func(a *Account) {
			a.purse.over = at("2100-01-01T00:00:00Z")
		}},
		"another node's clock is taken for one's own": {only: minuteFault, arrives: func(event AccountEvent, now Moment) Moment {
			switch e := event.(type) {
			case *Leased:
				now.Steady = e.Steady
			case *Returned:
				now.Steady = e.Steady
			}
			return now
		}},
		"what was admitted before a lease is not said": {only: minuteFault, offered: func(event AccountEvent) {
			if lease, is := event.(*Leased); is {
				lease.Recent = 0
			}
		}},
		"what was unspent before a lease is not said": {only: minuteFault, offered: func(event AccountEvent) {
			if lease, is := event.(*Leased); is {
				lease.Unspent = 0
			}
		}},
		"a lease is over for others when it is for its node": {only: minuteFault, before: func(a *Account) {
			for i := range a.shares {
				if s := &a.shares[i]; s.node != a.node && a.fence >= s.at+LeaseSpan+shareMargin {
					s.tokens = 0
				}
			}
		}},
		"a restart forgets the minute": {only: minuteFault, resumed: func(a *Account) { a.minute = minute{} }},
		"a restart takes words for old": {only: minuteFault, resumed: func(a *Account) {
			for i := range a.shares {
				a.shares[i].at -= time.Hour
			}
		}},
		"refunds that the log misses": {only: minuteFault, before: func(a *Account) { a.fence = -1 }},
		"returns too much": {only: dayFault, offered: func(event AccountEvent) {
			if back, is := event.(*Returned); is {
				back.Unspent++
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range 60_000 {
				w := newClusterWorld(rand.New(rand.NewPCG(7, uint64(seed))).IntN, bug)
				if fault := w.live(400); fault != "" {
					t.Logf("caught by sequence %d: %s", seed+1, fault)
					return
				}
			}
			t.Error("not caught")
		})
	}
}
