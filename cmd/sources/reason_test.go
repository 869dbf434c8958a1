package sources

import (
	"testing"
	"time"

	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/node"
)

// TestSources_Why wants the table to say why a source is as it is now: with the cause, which stands at the end of a
// long reason, and not with what it has recovered from.
func TestSources_Why(t *testing.T) {
	now := time.Date(2026, 6, 30, 15, 0, 0, 0, time.UTC)
	earlier := now.Add(-time.Hour)
	network := func(at time.Time) *admin.SourceFailure {
		return &admin.SourceFailure{Kind: string(source.Network), Detail: "ask", At: at}
	}
	for name, test := range map[string]struct {
		state  collectors.State
		health *admin.SourceHealth
		want   string
	}{
		"no node":            {node.SourceOff, nil, ""},
		"well":               {collectors.OK, &admin.SourceHealth{Runs: 2, LastTry: now, Failure: network(earlier)}, ""},
		"fails":              {collectors.Failing, &admin.SourceHealth{Runs: 1, LastTry: earlier, Failure: network(now)}, "network: ask"},
		"tried again":        {collectors.Failing, &admin.SourceHealth{Runs: 1, LastTry: now, Running: now, Failure: network(earlier)}, "network: ask"},
		"partly quarantined": {collectors.Partial, &admin.SourceHealth{Runs: 2, LastTry: now, Read: 5, Quarantined: 2, Failure: network(earlier)}, "2 of 5 quarantined: tasard admin quarantine list --source x-site"},
		"frozen":             {collectors.OK, &admin.SourceHealth{Runs: 2, Frozen: true, UnchangedSince: earlier, UnchangedLimitHours: 240}, "unchanged since 2026-06-30T14:00:00Z; the limit is 10 days"},
		"degraded":           {collectors.Degraded, &admin.SourceHealth{Runs: 2, LastTry: now, Failure: network(earlier), Missing: []string{"sell of a", "sell of b"}}, "sell of a (and 1 more)"},
		"degraded before":    {collectors.Never, &admin.SourceHealth{LastSlot: earlier, Missing: []string{"sell of a"}}, "sell of a"},
		"first try":          {collectors.Never, &admin.SourceHealth{Running: now}, "is being read since 2026-06-30T15:00:00Z"},
		"read before":        {collectors.Never, &admin.SourceHealth{LastSlot: earlier}, "read before the start, for the slot of 2026-06-30T14:00:00Z"},
		"never":              {collectors.Never, &admin.SourceHealth{}, ""},
	} {
		if got := reasonOf(&admin.Source{ID: "x-site", State: string(test.state), Health: test.health}); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	long := "network: ask for robots.txt before anything else: dial: connect: no route to host"
	if got := shortenMiddle(long, 40); got != "network: ask for ro…ct: no route to host" {
		t.Errorf("shortened to %q", got)
	}
}
