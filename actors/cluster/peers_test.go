package cluster

import (
	"encoding/json"
	"log/slog"
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
	late := received("n3", 0, "")
	late.receivedAt = now.Add(-reachableWithin)
	for _, tt := range []struct {
		name, founder, words string
		received             []receivedHeartbeat
	}{
		{"empty", "n1", "", []receivedHeartbeat{received("n1", 0, ""), received("n2", 0, ""), received("n3", 0, "")}},
		{"one has records", "n3", "", []receivedHeartbeat{received("n1", 0, ""), received("n2", 0, ""), received("n3", 9, "")}},
		{"two have records", "", "n2 and n3", []receivedHeartbeat{received("n1", 0, ""), received("n2", 3, ""), received("n3", 9, "")}},
		{"one is missing", "", "n3 is not", []receivedHeartbeat{received("n1", 0, ""), received("n2", 0, "")}},
		{"one is late", "", "n3 is not", []receivedHeartbeat{received("n1", 0, ""), received("n2", 0, ""), late}},
		{"one belongs elsewhere", "", "n2 belongs to stream s", []receivedHeartbeat{received("n1", 0, ""), received("n2", 0, "s"), received("n3", 0, "")}},
		{"a guest does not count", "", "n3 is not", []receivedHeartbeat{received("n1", 0, ""), received("n2", 0, ""), received("n4", 0, "")}},
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

// TestReceive_SecondProcess says where the second process of a node runs. Both have the node's address.
func TestReceive_SecondProcess(t *testing.T) {
	out := &logBuffer{}
	r := newPeerTable(&Cluster{config: valid(), transport: &transport{}, logger: slog.New(slog.NewTextHandler(out, nil))})
	for _, machine := range []string{"old-host, pid 7", "new-host, pid 8"} {
		body, err := json.Marshal(heartbeat{Name: "n2", Process: machine, Machine: machine, Address: "10.0.0.2:6222"})
		if err != nil {
			t.Fatal(err)
		}
		r.receive("n2", body)
	}
	if got := out.String(); !strings.Contains(got, "process=\"new-host, pid 8\" accepted=\"old-host, pid 7\"") {
		t.Errorf("logged: %s", got)
	}
}

// TestLeaderChanging tells a leadership transfer from a lost majority.
func TestLeaderChanging(t *testing.T) {
	if !maybeTransferring("", leaderChangeMax-1) || maybeTransferring("", leaderChangeMax) || maybeTransferring("n1", 0) {
		t.Error("no leader for a short time, for too long, or an unreachable leader is taken for another")
	}
}
