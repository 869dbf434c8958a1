//go:build faults

package faults

import (
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
		if s.ledger.breaches() > 0 {
			break
		}
	}
	s.finish()
	s.ledger.report(s.t)
	total := s.ledger.total()
	if s.cycles == s.early || total.keys <= stormTenants || total.revocations == 0 || total.rates == 0 || total.suspensions == 0 ||
		total.requests == 0 || total.open == 0 {
		s.t.Errorf("something was never done: %v", s)
	}
}

// TestFaultsW1_KilledUnderLoad kills the node at random moments under load, with the lease of the default, with none where the
// limit of the day is reached, and with the limits of the contract (W1, Q2, S7).
func TestFaultsW1_KilledUnderLoad(t *testing.T) {
	for _, way := range []struct {
		name   string
		terms  terms
		cycles int
	}{
		{"lease 16", terms{day: 20_000, minute: 60_000, lease: 16}, 600},
		{"lease 1, the day's limit is reached", terms{day: 1000, minute: 60_000, lease: 1}, 300},
		{"lease 16, 1,000 a day and 60 a minute", terms{day: 1000, minute: 60, lease: 16}, 100},
	} {
		s := newStorm(t, way.terms, t.TempDir(), "")
		s.rage(way.cycles, kill)
		figure(t, "%s: %v", way.name, s)
	}
}
