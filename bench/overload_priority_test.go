//go:build faults && linux

package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tasard/tasard/bench/load"
)

const (
	healthMax = 50 * time.Millisecond
	// keyedShare of the requests with a key are served if all of them together are at most keyedPart of the node's
	// capacity.
	keyedShare = 0.99
	keyedPart  = 1. / 3
	// twoKeyedShare covers eight seconds, including the onset.
	twoKeyedShare = 0.8
)

// TestFaultsO2_Priorities checks that at three times capacity health checks are answered at once, clients with a key
// are served before those without, and history and conversions come last.
func TestFaultsO2_Priorities(t *testing.T) {
	needLimits(t)
	f := smallFixture(t, 500)
	t.Run("node", func(t *testing.T) {
		o := startOverloaded(t, buildNode(t, ""), f, 0)
		turns := o.inRounds(t, func(capacity float64) []*clients { return o.byPriority(t, capacity, overloadSpan) })
		// The promise covers requests with a key up to keyedPart of the capacity, from overloadOnset on.
		promised, served := 0., 0.
		for _, one := range turns {
			keyed := one.groups[2]
			capacity := (capacityOf(one.before) + capacityOf(one.after)) / 2
			most := min(float64(keyed.Intended), keyedPart*capacity*(overloadSpan-overloadOnset).Seconds())
			promised, served = promised+most, served+min(most, float64(keyed.answeredOK()))
		}
		groups, kept := together(turns), served/promised
		for _, g := range groups[:2] {
			if slowest := time.Duration(g.Latency.Max()); g.answeredOK() != g.Intended || slowest > healthMax {
				t.Errorf("%s: slowest %v, want all within %v; %s", g.name, slowest, healthMax, g)
			}
		}
		keyed, anonymous, costly := groups[2], groups[3], groups[4]
		result := fmt.Sprintf("served with a key %.3f of what is promised and %.3f of all, without %.3f, history and conversions %.3f", kept, keyed.servedShare(),
			anonymous.servedShare(), costly.servedShare())
		figure(t, "%s", result)
		if kept < keyedShare || anonymous.servedShare() >= keyed.servedShare() || costly.servedShare() > anonymous.servedShare()/2 {
			t.Error(result)
		}
		for _, g := range groups[2:] {
			checkRefusals(t, g)
		}
	})
	t.Run("control", func(t *testing.T) {
		o := startOverloaded(t, withoutShedding(t), f, 0)
		groups := o.byPriority(t, capacityOf(o.base(t)), controlSpan)
		if keyed, costly := groups[2], groups[4]; keyed.servedShare() >= keyedShare && costly.servedShare() < groups[3].servedShare()/2 {
			t.Errorf("without admission slots the order is the same: this test proves nothing")
		}
	})
}

// byPriority puts three times the node's capacity on it, of every kind of request.
func (o *overloaded) byPriority(t *testing.T, capacity float64, span time.Duration) []*clients {
	t.Helper()
	health := []requestTemplate{{operation: "health", weight: 1, path: "/livez", headers: "Connection: close\r\n"}}
	fresh := newMix(benchHost, nil, health)
	health[0].headers = ""
	costly := newMix(benchHost, nil, slices.Concat(mixes()[mixHistory], mixes()[mixConvert]))
	groups := []*clients{
		{name: "health, new connections", Clients: load.Clients{Requests: fresh, Connections: 20, Rate: 20, Reconnects: true, StartAfter: overloadOnset, Subnet: 3, PerAddress: 20}},
		{name: "health", Clients: load.Clients{Requests: newMix(benchHost, nil, health), Connections: 10, Rate: 20, StartAfter: overloadOnset, Subnet: 4, PerAddress: 10}},
		{name: "with a key", Clients: load.Clients{Requests: asking(o.fixture.keys), Connections: 512, Rate: 0.3 * capacity, StartAfter: overloadOnset, Subnet: 5, PerAddress: 16}},
		{name: "without", Clients: load.Clients{Requests: asking(nil), Connections: 4096, Rate: 2 * capacity, Subnet: 2, PerAddress: clientsPerAddress}},
		{name: "history and convert", Clients: load.Clients{Requests: costly, Connections: 2048, Rate: 0.7 * capacity, Subnet: 6, PerAddress: clientsPerAddress}},
	}
	runClients(t, o.address, span, overloadPatience, groups...)
	for _, g := range groups {
		figure(t, "%s: served %.3f of what was to be sent, slowest %v; %s", g.name, g.servedShare(), time.Duration(g.Latency.Max()).Round(time.Microsecond), g)
	}
	return groups
}

// TestFaultsO2_TwoProcessors checks the same order on two threads.
func TestFaultsO2_TwoProcessors(t *testing.T) {
	needLimits(t)
	c := newCgroup(t, 0)
	o := startInCgroup(t, c, c.wrap("/usr/bin/env", "GOMAXPROCS=2", buildNode(t, "")), -1, smallFixture(t, 500))
	groups := o.byPriority(t, capacityOf(o.base(t)), controlSpan)
	keyed, anonymous, costly := groups[2], groups[3], groups[4]
	if keyed.servedShare() < twoKeyedShare || anonymous.servedShare() > keyed.servedShare()/2 || costly.servedShare() > anonymous.servedShare()/2 {
		t.Errorf("served with a key %.3f, without %.3f, history and conversions %.3f", keyed.servedShare(), anonymous.servedShare(), costly.servedShare())
	}
	for _, g := range groups[:2] {
		if g.answeredOK() != g.Intended {
			t.Errorf("%s: %s", g.name, g)
		}
	}
}
