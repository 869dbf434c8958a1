//go:build faults && linux

package main

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

const (
	healthMax = 50 * time.Millisecond
	// keyedShare of those with a key are served, if all of them together ask for no more than keyedPart of what the node can do.
	keyedShare = 0.99
	keyedPart  = 1. / 3
	// twoKeyedShare is of eight seconds, the first moment among them.
	twoKeyedShare = 0.8
)

// TestFaultsO2_WhoComesFirst: at three times capacity those who ask for the health of the node have it at once, clients with a key are
// served before those without, and history and conversions come last.
func TestFaultsO2_WhoComesFirst(t *testing.T) {
	needLimits(t)
	f := smallFixture(t, 500)
	t.Run("node", func(t *testing.T) {
		o := startOverloaded(t, buildNode(t, ""), f, 0)
		turns := o.inTurns(t, func(capacity float64) []*group { return o.lanes(t, capacity, overloadSpan) })
		// Those with a key are promised to be served up to keyedPart of what the node can do, from overloadOnset on.
		promised, served := 0., 0.
		for _, one := range turns {
			keyed := one.groups[2]
			capacity := (capacityOf(one.before) + capacityOf(one.after)) / 2
			most := min(float64(keyed.intended), keyedPart*capacity*(overloadSpan-overloadOnset).Seconds())
			promised, served = promised+most, served+min(most, float64(keyed.served()))
		}
		groups, kept := together(turns), served/promised
		for _, g := range groups[:2] {
			if slowest := time.Duration(g.latency.Max()); g.served() != g.intended || slowest > healthMax {
				t.Errorf("%s: slowest %v, want all within %v; %s", g.name, slowest, healthMax, g)
			}
		}
		keyed, anonymous, costly := groups[2], groups[3], groups[4]
		told := fmt.Sprintf("served with a key %.3f of what is promised and %.3f of all, without %.3f, history and conversions %.3f", kept, keyed.share(),
			anonymous.share(), costly.share())
		figure(t, "%s", told)
		if kept < keyedShare || anonymous.share() >= keyed.share() || costly.share() > anonymous.share()/2 {
			t.Error(told)
		}
		for _, g := range groups[2:] {
			checkRefusals(t, g)
		}
	})
	t.Run("control", func(t *testing.T) {
		o := startOverloaded(t, noAge(t), f, 0)
		groups := o.lanes(t, capacityOf(o.base(t)), controlSpan)
		if keyed, costly := groups[2], groups[4]; keyed.share() >= keyedShare && costly.share() < groups[3].share()/2 {
			t.Errorf("without admission slots the order is the same: this test proves nothing")
		}
	})
}

// lanes puts three times what the node can do on it, of every kind.
func (o *overloaded) lanes(t *testing.T, capacity float64, span time.Duration) []*group {
	t.Helper()
	health := []question{{operation: "health", weight: 1, path: "/livez", lines: "Connection: close\r\n"}}
	fresh := newMix(benchHost, nil, health)
	health[0].lines = ""
	costly := newMix(benchHost, nil, slices.Concat(mixes()[mixHistory], mixes()[mixConvert]))
	groups := []*group{
		{name: "health, new connections", asker: fresh, connections: 20, rate: 20, fresh: true, from: overloadOnset, net: 3, perAddress: 20},
		{name: "health", asker: newMix(benchHost, nil, health), connections: 10, rate: 20, from: overloadOnset, net: 4, perAddress: 10},
		{name: "with a key", asker: asking(o.fixture.keys), connections: 512, rate: 0.3 * capacity, from: overloadOnset, net: 5, perAddress: 16},
		{name: "without", asker: asking(nil), connections: 4096, rate: 2 * capacity, net: 2, perAddress: crowdPerAddress},
		{name: "history and convert", asker: costly, connections: 2048, rate: 0.7 * capacity, net: 6, perAddress: crowdPerAddress},
	}
	runCrowd(t, o.address, span, overloadPatience, groups...)
	for _, g := range groups {
		figure(t, "%s: served %.3f of what was to be sent, slowest %v; %s", g.name, g.share(), time.Duration(g.latency.Max()).Round(time.Microsecond), g)
	}
	return groups
}

// TestFaultsO2_TwoProcessors: the order is the same where two threads share what there is.
func TestFaultsO2_TwoProcessors(t *testing.T) {
	needLimits(t)
	c := newCage(t, 0)
	o := startCaged(t, c, c.inside("/usr/bin/env", "GOMAXPROCS=2", buildNode(t, "")), -1, smallFixture(t, 500))
	groups := o.lanes(t, capacityOf(o.base(t)), controlSpan)
	keyed, anonymous, costly := groups[2], groups[3], groups[4]
	if keyed.share() < twoKeyedShare || anonymous.share() > keyed.share()/2 || costly.share() > anonymous.share()/2 {
		t.Errorf("served with a key %.3f, without %.3f, history and conversions %.3f", keyed.share(), anonymous.share(), costly.share())
	}
	for _, g := range groups[:2] {
		if g.served() != g.intended {
			t.Errorf("%s: %s", g.name, g)
		}
	}
}
