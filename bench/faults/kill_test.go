//go:build faults

package faults

import (
	"fmt"
	"testing"
)

// progressEvery is after how many cycles a line is written.
const progressEvery = 100

// rage crashes the node so often, and then looks at everything.
func (s *storm) rage(cycles int, end crash) {
	s.t.Helper()
	for range cycles {
		s.cycle(end)
		if s.cycles%progressEvery == 0 {
			progress(s.t, "%v", s)
		}
		if s.ledger.broken() > 0 {
			break
		}
	}
	s.finish()
	s.ledger.report(s.t)
	never := s.cycles == s.early || s.ledger.count("keys", acknowledged) <= stormAccounts || s.ledger.count("", unknown) == 0
	for _, what := range []string{"revocations", "rates", "suspensions", "keyed reads"} {
		never = never || s.ledger.count(what, acknowledged) == 0
	}
	if never {
		s.t.Errorf("something was never done: %v", s)
	}
}

// caughtWithin is after how many crashes a planted bug must have shown.
const caughtWithin = 25

// catch crashes a node with a planted bug until the ledger finds one of the breaches, or until the node itself finds that its
// log is damaged, and fails when neither happens.
func (s *storm) catch(end crash, kinds ...breach) {
	s.t.Helper()
	for range caughtWithin {
		n := s.launch()
		if !n.answers() {
			if code := n.end(); code != exitDamaged {
				s.t.Errorf("the node with a planted bug ended with %d", code)
			}
			s.refused = true
			return
		}
		s.at.url = n.url
		s.check(n)
		if s.ledger.broken(kinds...) > 0 {
			return
		}
		s.cycles++
		s.load(n, loadSpan/2+upTo(s.chance(stormWorkers), loadSpan), end)
	}
	s.t.Errorf("the planted bug was not found: %v", s)
}

// exitDamaged is the exit code of a node that finds its log damaged.
const exitDamaged = 78

// caught says how a planted bug was found.
func (s *storm) caught() string {
	if s.refused {
		return fmt.Sprintf("after %d crashes the node refuses its damaged log: %v", s.cycles, s)
	}
	return fmt.Sprintf("found after %d crashes: %v", s.cycles, s)
}

// TestFaultsW1_Control plants two bugs that only a crash shows: a node that answers a moment before it writes, and one that
// writes down no lease.
func TestFaultsW1_Control(t *testing.T) {
	early := mutant(t, "answers-early", "actors/writer.go",
		"package actors\n", "package actors\n\nimport planted \"time\"\n",
		"last, err := w.journal.Append(j.expected, j.records)",
		"w.to.send(&written{last: j.expected + uint64(len(j.records))}); planted.Sleep(5 * planted.Millisecond)\n"+
			"last, err := w.journal.Append(j.expected, j.records)",
		"w.to.send(&written{last: last, err: err})", "_ = last")
	s := newStorm(t, terms{day: 20_000, minute: 60_000, lease: 16}, t.TempDir(), early)
	s.catch(kill, lost)
	figure(t, "control, answers before it writes: %s", s.caught())

	unlogged := mutant(t, "unlogged-lease", "actors/codec_account.go",
		"Count: int64(e.Count), Refunded: int64(e.Refunded), Unspent:", "Count: 0, Refunded: int64(e.Refunded), Unspent:")
	s = newStorm(t, terms{day: 20_000, minute: 60_000, lease: 16}, t.TempDir(), unlogged)
	s.catch(kill, granted)
	figure(t, "control, no lease is logged: %s", s.caught())
}

// TestFaultsW1_KilledUnderLoad kills the node at random moments under load, with the lease of the default, with none where the
// limit of the day is reached, and with the limits of the contract (W1, Q2, S7); W1_KILLS sets how often.
func TestFaultsW1_KilledUnderLoad(t *testing.T) {
	for _, way := range []struct {
		name   string
		terms  terms
		cycles int
	}{
		{"lease 16", terms{day: 20_000, minute: 60_000, lease: 16}, 300},
		{"lease 16, another node", terms{day: 20_000, minute: 60_000, lease: 16}, 300},
		{"lease 1, the day's limit is reached", terms{day: 200, minute: 60_000, lease: 1}, 300},
		{"lease 16, 1,000 a day and 60 a minute", terms{day: 1000, minute: 60, lease: 16}, 100},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel() // half of a cycle is waiting
			s := newStorm(t, way.terms, t.TempDir(), "")
			s.rage(countFrom(t, "W1_KILLS", way.cycles), kill)
			if way.terms.lease == 1 && s.cycles == way.cycles && s.reached() == 0 {
				t.Error("no account came to its limit of the day")
			}
			figure(t, "%s: %v", way.name, s)
		})
	}
}
