package account

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// step is something that happens in a cluster.
func (m *quotaModel) step() {
	n := m.nodes[m.pick(len(m.nodes))]
	switch kind := m.pick(100); {
	case m.alone:
		m.stepAlone(n, kind)
	case kind < 32:
		for range 1 + m.pick(9) {
			n.request()
		}
	case kind < 50:
		n.commit()
	case kind < 76:
		n.deliver(1 + m.pick(3))
	case kind < 86:
		m.pass()
	case kind == 86:
		n.sleep()
	case kind < 91:
		n.refund()
	case kind < 93:
		n.cut = !n.cut
	case kind < 97:
		n.returnIdle()
		n.evict()
	case kind == 97:
		n.crash()
	case kind == 98:
		n.stop()
	default:
		n.join()
	}
}

// stepAlone is something that happens to a node alone.
func (m *quotaModel) stepAlone(n *quotaNode, kind int) {
	switch {
	case kind < 42:
		for range 1 + m.pick(4) {
			n.request()
		}
	case kind < 60:
		n.commit()
		n.deliver(len(m.log))
	case kind < 78:
		m.pass()
	case kind < 86:
		n.refund()
	case kind < 90:
		n.stepClock()
	case kind < 93:
		n.evict()
	case kind < 97:
		n.crash()
	default:
		n.stop()
	}
}

// run runs so many steps or to the first fault. At the end all nodes have the whole log and know what it says.
func (m *quotaModel) run(steps int) string {
	for range steps {
		if m.step(); m.fault != "" {
			return m.fault
		}
	}
	for _, n := range m.nodes {
		n.cut = false
	}
	for range 2 * len(m.nodes) {
		for _, n := range m.nodes {
			n.deliver(len(m.log))
		}
	}
	for _, n := range m.nodes {
		if n.place == len(m.log) {
			m.sameAsLog(n)
		}
	}
	return m.fault
}

// sameAsLog compares what a node knows with a replay, but for steady times, which each process of a cluster has of its own.
func (m *quotaModel) sameAsLog(n *quotaNode) {
	live, plain := n.account.State(), m.replay(nil, 0, n.place).State()
	for _, state := range []*State{&live, &plain} {
		for i := range state.Leases {
			if !m.alone {
				state.Leases[i].Steady = 0
			}
		}
	}
	if m.bug.only == "" && !reflect.DeepEqual(live, plain) {
		m.fail("node %d knows %+v, the log says %+v", n.id, live, plain)
	}
}

// quotaSequences lets models live from seeds; the first fault fails the test.
func quotaSequences(t *testing.T, count, steps int, alone bool, bug quotaBug) (sum quotaModel) {
	t.Helper()
	for seed := range count {
		m := newQuotaModel(rand.New(rand.NewPCG(1, uint64(seed))).IntN, alone, bug)
		if fault := m.run(steps); fault != "" {
			t.Fatalf("seed %d: %s", seed, fault)
		}
		sum.admitted, sum.refused, sum.crashes = sum.admitted+m.admitted, sum.refused+m.refused, sum.crashes+m.crashes
		sum.void, sum.returned, sum.aside = sum.void+m.void, sum.returned+m.returned, sum.aside+m.aside
	}
	t.Logf("%d sequences: %d admitted, %d refused, %d crashes, %d offers void, %d returned, %d put aside",
		count, sum.admitted, sum.refused, sum.crashes, sum.void, sum.returned, sum.aside)
	if sum.admitted == 0 || sum.refused == 0 || sum.crashes == 0 {
		t.Error("nothing was tried")
	}
	return sum
}

// Under crashes, stops, refunds and steps of the clock by up to 40 days: never more than the minute's limit in any 60 seconds of true
// time, never more than the day's limit on a day; both windows are shown exactly; a crash costs at most a lease, a clean stop nothing; and
// a replay is the live state.
func TestL1_L2_NeverOverGranted(t *testing.T) {
	if sum := quotaSequences(t, sweep(300, 20_000), 150, true, quotaBug{}); sum.aside == 0 {
		t.Error("no account was put aside")
	}
}

// However nodes of a cluster lease side by side, lose, hear late, are cut off, crash and come back: the limits hold on all of them
// together, and in the end all know the same.
func TestL1_L2_NeverOverGrantedInACluster(t *testing.T) {
	if sum := quotaSequences(t, sweep(150, 20_000), 400, false, quotaBug{}); sum.void == 0 || sum.returned == 0 || sum.aside == 0 {
		t.Error("nothing was tried")
	}
}

// Even leases that were decided without the last event would grant nothing too much, if one were not void: a node that spends knows all
// leases before its own, and counts them.
func TestL1_L2_StaleLeasesGrantNothingMore(t *testing.T) {
	quotaSequences(t, sweep(40, 5_000), 400, false, quotaBug{only: "admitted", stale: true})
}

// admitBugs are plants in the admission of a node alone; each has what it remembers.
func admitBugs() map[string]quotaBug {
	var slot time.Duration
	return map[string]quotaBug{
		"window does not slide": {only: minuteFault, admit: func(a *Account, now ClockReading, terms QuotaPolicy) (QuotaResult, bool) {
			if next := now.Steady / time.Minute; next != slot {
				slot, a.minute = next, minuteWindow{}
			}
			return a.Admit(testKey, now, terms)
		}},
		"minute on the wall clock": {only: minuteFault, admit: func(a *Account, now ClockReading, terms QuotaPolicy) (QuotaResult, bool) {
			now.Steady = now.Wall.Sub(noon)
			return a.Admit(testKey, now, terms)
		}},
		"lease not durable, day":    {only: dayFault, forgetful: true},
		"lease not durable, minute": {only: minuteFault, forgetful: true},
	}
}

const minuteFault, dayFault = "admitted in a minute", "admitted on"

// bothBugs are plants in a node alone and in a cluster.
func bothBugs() map[string]quotaBug {
	return map[string]quotaBug{
		"a restart forgets the minute": {only: minuteFault, resumed: func(a *Account) { a.minute = minuteWindow{} }},
		"refunds that the log misses":  {only: minuteFault, before: func(a *Account) { a.leaseAskedAt = -1 }},
		"returns too much": {only: dayFault, offered: func(event Event) {
			if back, is := event.(*Returned); is {
				back.Unspent++
			}
		}},
	}
}

// clusterBugs are plants in a cluster alone.
func clusterBugs() map[string]quotaBug {
	understated := func(understate func(*Leased)) func(Event) {
		return func(event Event) {
			if lease, is := event.(*Leased); is {
				understate(lease)
			}
		}
	}
	return map[string]quotaBug{
		"others don't count": {only: minuteFault, before: func(a *Account) {
			own := a.ownNodeLease()
			if a.nodeLeases = nil; own.RecentAdmitted+own.Count > 0 {
				a.nodeLeases = []LeaseState{own}
			}
		}},
		"leases last for ever": {only: minuteFault, before: func(a *Account) {
			a.tokenLease.until, a.tokenLease.untilWall = 1<<60, at("2100-01-01T00:00:00Z")
		}},
		"another node's clock is taken for one's own": {only: minuteFault, arrives: func(event Event, now ClockReading) ClockReading {
			now.Steady = steadyOf(event)
			return now
		}},
		"what was admitted before a lease is not said": {only: minuteFault, offered: understated(func(l *Leased) { l.RecentAdmitted = 0 })},
		"what was unspent before a lease is not said":  {only: minuteFault, offered: understated(func(l *Leased) { l.Unspent = 0 })},
		"a restart takes words for old": {only: minuteFault, resumed: func(a *Account) {
			for i := range a.nodeLeases {
				a.nodeLeases[i].Steady -= time.Hour
			}
		}},
	}
}

func TestL1_L2_ControlPlantedBugsAreCaught(t *testing.T) {
	// Where to begin to look for those that a few sequences in ten thousand show.
	first := map[string]uint64{"refunds that the log misses": 940}
	caught := func(t *testing.T, alone bool, bugs func() map[string]quotaBug) {
		for name := range bugs() {
			wantCaught(t, name, 7, first[name], func(pick func(int) int) string { return newQuotaModel(pick, alone, bugs()[name]).run(400) })
		}
	}
	t.Run("alone", func(t *testing.T) { caught(t, true, admitBugs); caught(t, true, bothBugs) })
	t.Run("in a cluster", func(t *testing.T) { caught(t, false, clusterBugs); caught(t, false, bothBugs) })
}

func FuzzQuota(f *testing.F) {
	fuzzChoices(f, func(pick func(int) int, alone bool, steps int) string {
		return newQuotaModel(pick, alone, quotaBug{}).run(steps)
	})
}

// loadPatterns are how many requests a caller makes in each minute of the day.
func loadPatterns(random *rand.Rand) map[string]func(minute int) int {
	return map[string]func(int) int{
		"every minute":  func(int) int { return 1 },
		"office hours":  func(m int) int { return 2 * when(m%1440 > 720 && m%1440 < 1200) },
		"bursts":        func(m int) int { return 75 * when(m%97 == 0) },
		"at midnight":   func(m int) int { return 40 * when(m%1440 > 225 && m%1440 < 255) },
		"now and then":  func(int) int { return max(0, random.IntN(60)-57) },
		"all that fits": func(m int) int { return 61 * when(m%1440 >= 240 && m%1440 < 270) },
	}
}

func when(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// liveDays lets days of a node alone pass minute by minute, with a request at every midnight of Santo Domingo and in the instant before it.
// skew is planted: how far ahead the account takes the time to be.
func liveDays(count int, skew time.Duration, habit func(minute int) int, random *rand.Rand) *quotaModel {
	m := newQuotaModel(func(int) int { return 0 }, true, quotaBug{admit: func(a *Account, now ClockReading, terms QuotaPolicy) (QuotaResult, bool) {
		now.Wall = now.Wall.Add(skew)
		return a.Admit(testKey, now, terms)
	}})
	m.start, m.terms = at("2026-01-01T00:00:00Z"), defaultPolicy
	n := m.nodes[0]
	ask := func() {
		n.request()
		n.commit()
		n.deliver(len(m.log))
	}
	for minute := 0; minute < count*1440 && m.fault == ""; minute++ {
		m.real = time.Duration(minute) * time.Minute
		if minute%1440 == 240 {
			m.real--
			ask()
			m.real++
			ask()
		}
		for range habit(minute) {
			ask()
			m.real += time.Duration(random.IntN(int(400 * time.Millisecond)))
		}
	}
	return m
}

// Every minute and every midnight of a year, by callers of different habits: an account admits what the model admits, and shows the same
// remaining until the same instant (Q3). TestFaultsQ3_YearOfAThousandAccounts is the same for a thousand.
func TestL1_L2_YearAgainstReference(t *testing.T) {
	random := rand.New(rand.NewPCG(20260617, 0))
	for name, habit := range loadPatterns(random) {
		m := liveDays(sweep(10, 366), 0, habit, random)
		if m.fault != "" {
			t.Errorf("%s: %s", name, m.fault)
		}
		t.Logf("%s: %d admitted, %d refused", name, m.admitted, m.refused)
	}
}

// skews are how far a planted clock is ahead.
func skews() []time.Duration {
	return []time.Duration{time.Millisecond, time.Nanosecond, -time.Nanosecond, -1001 * time.Millisecond}
}

// An account whose day begins a nanosecond early or late is caught within some days.
func TestL1_L2_ControlYearAgainstReference(t *testing.T) {
	for _, skew := range skews() {
		random := rand.New(rand.NewPCG(1, 0))
		if liveDays(3, skew, loadPatterns(random)["at midnight"], random).fault == "" {
			t.Errorf("a clock that is ahead by %s is not caught", skew)
		}
	}
}
