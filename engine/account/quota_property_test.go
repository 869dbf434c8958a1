package account

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// step does something random in a cluster.
func (m *quotaModel) step() {
	n := m.nodes[m.pick(len(m.nodes))]
	switch kind := m.pick(100); {
	case m.single:
		m.stepSingle(n, kind)
	case kind < 28:
		for range 1 + m.pick(9) {
			n.request()
		}
	case kind < 44:
		n.commit()
	case kind < 48 && len(m.asks) > 0:
		m.decide(m.pick(len(m.asks)))
	case kind < 72:
		n.deliver(1 + m.pick(3))
	case kind < 82:
		m.pass()
	case kind == 82:
		n.sleep()
	case kind < 88:
		n.refund()
	case kind < 90:
		n.partitioned = !n.partitioned
	case kind < 93:
		n.returnIdle()
	case kind < 95:
		n.giveUp()
	case kind < 97:
		m.elect()
	case kind == 97:
		n.crash()
	case kind == 98:
		n.stop()
	default:
		n.join()
	}
}

// stepSingle does something random on a single node.
func (m *quotaModel) stepSingle(n *quotaNode, kind int) {
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
	case kind < 89:
		n.stepClock()
	case kind < 92:
		n.grantDay()
	case kind < 97:
		n.crash()
	default:
		n.stop()
	}
}

// run does so many steps, or fewer up to the first fault. At the end all nodes must have the state of the whole log.
func (m *quotaModel) run(steps int) *model {
	for range steps {
		if m.step(); m.fault != "" {
			return &m.model
		}
	}
	for _, n := range m.nodes {
		n.partitioned = false
	}
	m.append(true)
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
	return &m.model
}

// sameAsLog compares a node's state with a replay, except for monotonic times in a cluster.
func (m *quotaModel) sameAsLog(n *quotaNode) {
	live, plain := n.account.State(), m.replay(nil, 0, n.place).State()
	for _, state := range []*State{&live, &plain} {
		for i := range state.Leases {
			if !m.single {
				state.Leases[i].Monotonic = 0
			}
		}
	}
	if m.only == "" && !reflect.DeepEqual(live, plain) {
		m.fail("node %d knows %+v, the log says %+v", n.id, live, plain)
	}
}

func quotaSequences(t *testing.T, count, steps int, single bool, wanted ...string) {
	t.Helper()
	live := func(pick func(int) int) *model { return newQuotaModel(pick, single, quotaBug{}).run(steps) }
	sequences(t, 1, count, live, append(wanted, "admitted", "refused", "crashed")...)
}

// Under crashes, stops, refunds and clock steps of up to 40 days no 60 seconds of true time and no day have more
// requests than the limits, both windows are exact, a crash costs at most a lease, a clean stop nothing, and a replay
// gives the live state.
func TestL1_L2_NeverOverGranted(t *testing.T) {
	quotaSequences(t, sweep(300, 20_000), 150, true, "granted", "taken back")
}

// The limits hold on all nodes of a cluster together, under concurrent leases, delays, partitions, crashes and
// restarts, and in the end all nodes have the same state.
func TestL1_L2_NeverOverGrantedInACluster(t *testing.T) {
	quotaSequences(t, sweep(150, 20_000), 400, false, "void", "returned", "elected")
}

// admitBugs are planted in the admission of a single node.
func admitBugs() map[string]quotaBug {
	var slot time.Duration
	return map[string]quotaBug{
		"window does not slide": {only: minuteFault, admit: func(a *Account, now ClockReading, policy QuotaPolicy) (QuotaResult, bool) {
			if next := now.Monotonic / time.Minute; next != slot {
				slot, a.minute = next, minuteWindow{}
			}
			return a.Admit(testKey, now, policy)
		}},
		"minute on the wall clock": {only: minuteFault, admit: func(a *Account, now ClockReading, policy QuotaPolicy) (QuotaResult, bool) {
			now.Monotonic = now.Wall.Sub(noon)
			return a.Admit(testKey, now, policy)
		}},
		"grant forgotten, day":      {only: dayFault, ungranted: true},
		"grant forgotten, minute":   {only: minuteFault, ungranted: true},
		"lease not durable, day":    {only: dayFault, forgetful: true},
		"lease not durable, minute": {only: minuteFault, forgetful: true},
	}
}

const minuteFault, dayFault = "admitted in a minute", "admitted on"

// bothBugs are planted in a single node and in a cluster.
func bothBugs() map[string]quotaBug {
	return map[string]quotaBug{
		"a restart forgets the minute": {only: minuteFault, resumed: func(a *Account) { a.minute = minuteWindow{} }},
		"refunds that the log misses":  {only: minuteFault, refunds: true},
		"returns too much": {only: dayFault, offered: func(event Event) {
			if back, is := event.(*Returned); is {
				back.Unspent++
			}
		}},
	}
}

// clusterBugs are planted only in a cluster.
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
			own := a.nodeLeases.of(a.node)
			if a.nodeLeases = nil; own.RecentAdmitted+own.Count > 0 {
				a.nodeLeases = []LeaseState{own}
			}
		}},
		"leases last for ever": {only: minuteFault, before: func(a *Account) {
			a.tokens().until, a.tokens().untilWall = 1<<60, at("2100-01-01T00:00:00Z")
		}},
		"another node's clock is taken for one's own": {only: minuteFault, arrives: func(n *quotaNode, event Event, apply func(ClockReading)) {
			now := n.now()
			now.Monotonic = numberOf(event).at
			apply(now)
		}},
		"no barrier": {only: "leased on", noBarrier: true},
		"late answer accepted": {only: minuteFault, arrives: func(n *quotaNode, event Event, apply func(ClockReading)) {
			e, is := event.(*Leased)
			late := is && e.Node == n.id && !n.awaits(event)
			if apply(n.now()); late {
				t := n.account.tokens()
				t.tokens += e.Count
				t.until, t.untilWall = max(t.until, e.Monotonic+LeaseSpan), e.At.Add(LeaseSpan)
				n.account.days.find(e.Day).spent -= e.Count
			}
		}},
		"what a node spends while it waits is not taken from its lease": {only: minuteFault, arrives: func(n *quotaNode, event Event, apply func(ClockReading)) {
			if t := n.account.tokens(); n.awaits(event) && t.tokens < t.renewing {
				n.account.days.find(event.(*Leased).Day).spent -= t.renewing - t.tokens
				t.tokens = t.renewing
			}
			apply(n.now())
		}},
		"a lease lasts from its receipt": {only: minuteFault, arrives: func(n *quotaNode, event Event, apply func(ClockReading)) {
			own := n.awaits(event)
			if apply(n.now()); own {
				t := n.account.tokens()
				t.until, t.untilWall = n.now().Monotonic+LeaseSpan, n.now().Wall.Add(LeaseSpan)
			}
		}},
		"what was admitted before a lease is not said": {only: minuteFault, offered: understated(func(l *Leased) { l.RecentAdmitted = 0 })},
		"what was unspent before a lease is not said":  {only: minuteFault, offered: understated(func(l *Leased) { l.Unspent = 0 })},
		"a restart takes words for old": {only: minuteFault, resumed: func(a *Account) {
			for i := range a.nodeLeases {
				a.nodeLeases[i].Monotonic -= time.Hour
			}
		}},
	}
}

func TestL1_L2_ControlPlantedBugsAreCaught(t *testing.T) {
	// first are the seeds from which rare bugs are soon found.
	caught := func(t *testing.T, single bool, bugs func() map[string]quotaBug, first map[string]uint64) {
		for name := range bugs() {
			wantCaught(t, name, 7, first[name], func(pick func(int) int) *model { return newQuotaModel(pick, single, bugs()[name]).run(400) })
		}
	}
	t.Run("single", func(t *testing.T) {
		caught(t, true, admitBugs, nil)
		caught(t, true, bothBugs, map[string]uint64{"refunds that the log misses": 940})
	})
	t.Run("in a cluster", func(t *testing.T) {
		caught(t, false, clusterBugs, nil)
		caught(t, false, bothBugs, map[string]uint64{"refunds that the log misses": 18_280})
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

// liveDays runs a single node for days, minute by minute, with requests at midnight and just before. skew is a planted
// bug: how far ahead the account's clock is.
func liveDays(count int, skew time.Duration, pattern func(minute int) int, random *rand.Rand) *quotaModel {
	m := newQuotaModel(func(int) int { return 0 }, true, quotaBug{admit: func(a *Account, now ClockReading, policy QuotaPolicy) (QuotaResult, bool) {
		now.Wall = now.Wall.Add(skew)
		return a.Admit(testKey, now, policy)
	}})
	m.start, m.policy = at("2026-01-01T00:00:00Z"), defaultPolicy
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
		for range pattern(minute) {
			ask()
			m.real += time.Duration(random.IntN(int(400 * time.Millisecond)))
		}
	}
	return m
}

// At every minute and midnight of a year, with different load patterns, an account admits what the model admits and
// shows the same remaining until the same instant.
func TestL1_L2_YearAgainstReference(t *testing.T) {
	random := rand.New(rand.NewPCG(20260617, 0))
	for name, pattern := range loadPatterns(random) {
		m := liveDays(sweep(10, 366), 0, pattern, random)
		if m.fault != "" {
			t.Errorf("%s: %s", name, m.fault)
		}
		t.Logf("%s: %d admitted, %d refused", name, m.counts["admitted"], m.counts["refused"])
	}
}
