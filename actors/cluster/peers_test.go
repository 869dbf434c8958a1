package cluster

import (
	"strings"
	"testing"
)

// TestBootstrapMember chooses the member with a log, and none while a member is missing.
func TestBootstrapMember(t *testing.T) {
	config := valid()
	now := realClock()
	received := func(name string, last uint64, stream string) receivedHeartbeat {
		return receivedHeartbeat{heartbeat{Name: name, Last: last, Stream: stream}, now}
	}
	late := received("node-3", 0, "")
	late.receivedAt = now.Add(-reachableWithin)
	for _, tt := range []struct {
		name, founder, words string
		received             []receivedHeartbeat
	}{
		{"empty", "node-1", "", []receivedHeartbeat{received("node-1", 0, ""), received("node-2", 0, ""), received("node-3", 0, "")}},
		{"one has records", "node-3", "", []receivedHeartbeat{received("node-1", 0, ""), received("node-2", 0, ""), received("node-3", 9, "")}},
		{"two have records", "", "node-2 and node-3", []receivedHeartbeat{received("node-1", 0, ""), received("node-2", 3, ""), received("node-3", 9, "")}},
		{"one is missing", "", "node-3 is not", []receivedHeartbeat{received("node-1", 0, ""), received("node-2", 0, "")}},
		{"one is late", "", "node-3 is not", []receivedHeartbeat{received("node-1", 0, ""), received("node-2", 0, ""), late}},
		{"one belongs elsewhere", "", "node-2 belongs to stream s", []receivedHeartbeat{received("node-1", 0, ""), received("node-2", 0, "s"), received("node-3", 0, "")}},
		{"another node does not count", "", "node-3 is not", []receivedHeartbeat{received("node-1", 0, ""), received("node-2", 0, ""), received("node-4", 0, "")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &peerTable{cluster: &Cluster{config: config}, byName: map[string]receivedHeartbeat{}}
			for _, h := range tt.received {
				r.byName[h.Name] = h
			}
			founder, err := r.bootstrapMember(config.Members)
			if founder != tt.founder || (err == nil) != (tt.words == "") || err != nil && !strings.Contains(err.Error(), tt.words) {
				t.Errorf("%q, %v", founder, err)
			}
		})
	}
}

// TestLeaderChanging tells a leadership transfer from a lost majority.
func TestLeaderChanging(t *testing.T) {
	if !maybeTransferring("", leaderChangeMax-1) || maybeTransferring("", leaderChangeMax) || maybeTransferring("node-1", 0) {
		t.Error("no leader for a short time, for too long, or an unreachable leader is taken for another")
	}
}
