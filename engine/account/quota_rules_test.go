package account

import (
	"strings"
	"testing"
	"time"
)

// quotaRule is one rule of the limits: a fixed sequence that breaks the limit of a day or of a minute if the planted
// bug of its name is there, and nothing without it.
type quotaRule struct {
	name  string // of admitBugs or bothBugs
	quota Quota
	lease int
	play  func(m *quotaModel, n *quotaNode)
}

// askFor makes requests one after the other; what each needs is in the log before the next one.
func (n *quotaNode) askFor(requests int) {
	for range requests {
		n.request()
		n.commit()
		n.deliver(len(n.model.log))
	}
}

func quotaRules() []quotaRule {
	ended := func(requests int, end func(*quotaNode)) func(*quotaModel, *quotaNode) {
		return func(_ *quotaModel, n *quotaNode) {
			n.askFor(requests)
			end(n)
			n.askFor(5)
		}
	}
	granted := func(m *quotaModel, n *quotaNode) {
		n.grantDay()
		ended(3, (*quotaNode).crash)(m, n)
	}
	day, minute := Quota{Day: 4, Minute: 60}, Quota{Day: 100, Minute: 3}
	return []quotaRule{
		{"window does not slide", minute, 16, func(m *quotaModel, n *quotaNode) {
			m.real = 50 * time.Second
			n.askFor(3)
			m.real = 61 * time.Second
			n.askFor(1)
		}},
		{"minute on the wall clock", minute, 16, func(_ *quotaModel, n *quotaNode) {
			n.askFor(3)
			n.wall = 61 * time.Second // the clock is set
			n.askFor(1)
		}},
		{"grant forgotten, day", day, 4, granted},
		{"grant forgotten, minute", minute, 16, granted},
		{"lease not durable, day", day, 4, ended(3, (*quotaNode).crash)},
		{"lease not durable, minute", minute, 4, ended(3, (*quotaNode).crash)},
		{"a restart forgets the minute", minute, 16, ended(3, (*quotaNode).crash)},
		{"returns too much", day, 4, ended(1, (*quotaNode).stop)},
		{"refunds that the log misses", Quota{Day: 100, Minute: 12}, 3, func(m *quotaModel, n *quotaNode) {
			n.askFor(2)
			m.real = 10 * time.Second // the next lease says what is unspent of the first
			n.askFor(4)
			for range 6 {
				n.refund()
			}
			m.real = 75 * time.Second
			ended(10, (*quotaNode).crash)(m, n)
		}},
	}
}

// TestL1_L2_EachRule plays one short sequence for each rule that TestL1_L2_NeverOverGranted holds together with the
// others, without and with its planted bug.
func TestL1_L2_EachRule(t *testing.T) {
	bugs := admitBugs()
	for name, bug := range bothBugs() {
		bugs[name] = bug
	}
	played := 0
	for _, rule := range quotaRules() {
		play := func(bug quotaBug) string {
			m := newQuotaModel(func(choices int) int { return when(choices == 2) }, true, bug)
			m.policy = QuotaPolicy{DefaultQuota: rule.quota, LeaseSize: rule.lease}
			rule.play(m, m.nodes[0])
			return m.fault
		}
		bug, is := bugs[rule.name]
		if played++; !is {
			t.Errorf("%s: there is no such bug", rule.name)
		}
		if fault := play(quotaBug{}); fault != "" {
			t.Errorf("%s: %s", rule.name, fault)
		}
		if fault := play(bug); !strings.Contains(fault, bug.only) || fault == "" {
			t.Errorf("the planted bug %q is not caught: %q", rule.name, fault)
		}
	}
	if played != len(bugs) {
		t.Errorf("%d rules, %d bugs", played, len(bugs))
	}
}
