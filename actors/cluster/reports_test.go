//go:build !nocluster

package cluster

import (
	"strings"
	"testing"
	"time"
)

// TestFounder chooses the member that brings the records, and nobody as long as one is missing.
func TestFounder(t *testing.T) {
	config := valid()
	now := realClock()
	heard := func(name string, last uint64, stream string) heardReport {
		return heardReport{report{Name: name, Last: last, Stream: stream}, now}
	}
	late := heard("n3", 0, "")
	late.at = now.Add(-seenWithin)
	for _, tt := range []struct {
		name, founder, words string
		heard                []heardReport
	}{
		{"empty", "n1", "", []heardReport{heard("n1", 0, ""), heard("n2", 0, ""), heard("n3", 0, "")}},
		{"one has records", "n3", "", []heardReport{heard("n1", 0, ""), heard("n2", 0, ""), heard("n3", 9, "")}},
		{"two have records", "", "n2 and n3", []heardReport{heard("n1", 0, ""), heard("n2", 3, ""), heard("n3", 9, "")}},
		{"one is missing", "", "n3 is not", []heardReport{heard("n1", 0, ""), heard("n2", 0, "")}},
		{"one is late", "", "n3 is not", []heardReport{heard("n1", 0, ""), heard("n2", 0, ""), late}},
		{"one belongs elsewhere", "", "n2 belongs to stream s", []heardReport{heard("n1", 0, ""), heard("n2", 0, "s"), heard("n3", 0, "")}},
		{"a guest does not count", "", "n3 is not", []heardReport{heard("n1", 0, ""), heard("n2", 0, ""), heard("n4", 0, "")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &reports{cluster: &Cluster{config: config}, heard: map[string]heardReport{}}
			for _, h := range tt.heard {
				r.heard[h.Name] = h
			}
			founder, err := r.founder(config.Members)
			if founder != tt.founder || (err == nil) != (tt.words == "") || err != nil && !strings.Contains(err.Error(), tt.words) {
				t.Errorf("%q, %v", founder, err)
			}
		})
	}
}

// TestNeeded trims nothing that a node that is there needs, nor while a member is away, unless the stream is long.
func TestNeeded(t *testing.T) {
	config := valid()
	now := realClock()
	kept := func(name string, kept uint64, ago time.Duration) heardReport {
		return heardReport{report{Name: name, Kept: kept}, now.Add(-ago)}
	}
	for _, tt := range []struct {
		name  string
		long  bool
		want  uint64
		heard []heardReport
	}{
		{"all there", false, 6, []heardReport{kept("n1", 9, 0), kept("n2", 5, 0), kept("n3", 7, 0)}},
		{"one never heard", false, 0, []heardReport{kept("n1", 9, 0), kept("n2", 5, 0)}},
		{"one away", false, 0, []heardReport{kept("n1", 9, 0), kept("n2", 5, 0), kept("n3", 7, time.Minute)}},
		{"one away and long", true, 6, []heardReport{kept("n1", 9, 0), kept("n2", 5, 0), kept("n3", 1, time.Minute)}},
		{"one never heard and long", true, 6, []heardReport{kept("n1", 9, 0), kept("n2", 5, 0)}},
		{"a guest is behind", false, 3, []heardReport{kept("n1", 9, 0), kept("n2", 5, 0), kept("n3", 7, 0), kept("g", 2, 0)}},
		{"a guest is away", false, 6, []heardReport{kept("n1", 9, 0), kept("n2", 5, 0), kept("n3", 7, 0), kept("g", 2, time.Minute)}},
		{"no snapshot yet", false, 1, []heardReport{kept("n1", 9, 0), kept("n2", 0, 0), kept("n3", 7, 0)}},
		{"nobody", true, 0, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &reports{heard: map[string]heardReport{}}
			for _, h := range tt.heard {
				r.heard[h.Name] = h
			}
			if got := r.needed(&config, tt.long); got != tt.want {
				t.Errorf("from %d on, want %d", got, tt.want)
			}
		})
	}
}

// TestHandingOver holds that a hand-over is no lost majority, and that nothing else is taken for one.
func TestHandingOver(t *testing.T) {
	for name, c := range map[string]struct {
		leader string
		ago    time.Duration
		want   bool
	}{
		"a leader that steps down":           {"", 200 * time.Millisecond, true},
		"no leader for too long":             {"", handOver, false},
		"a leader that is not heard":         {"node-1", 200 * time.Millisecond, false},
		"a follower that begins to look":     {"", seenWithin, false},
		"a node that has never had a leader": {"", 1<<63 - 1, false},
	} {
		if got := handingOver(c.leader, c.ago); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
