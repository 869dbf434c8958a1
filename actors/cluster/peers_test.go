//go:build !nocluster

package cluster

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
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

// TestFirstNeeded keeps records that a reachable node needs, or while a member is unreachable, unless the stream is
// long.
func TestFirstNeeded(t *testing.T) {
	config := valid()
	now := realClock()
	kept := func(name string, kept uint64, ago time.Duration) receivedHeartbeat {
		return receivedHeartbeat{heartbeat{Name: name, Snapshot: kept}, now.Add(-ago)}
	}
	for _, tt := range []struct {
		name     string
		long     bool
		want     uint64
		received []receivedHeartbeat
	}{
		{"all there", false, 6, []receivedHeartbeat{kept("n1", 9, 0), kept("n2", 5, 0), kept("n3", 7, 0)}},
		{"one without a heartbeat", false, 0, []receivedHeartbeat{kept("n1", 9, 0), kept("n2", 5, 0)}},
		{"one away", false, 0, []receivedHeartbeat{kept("n1", 9, 0), kept("n2", 5, 0), kept("n3", 7, time.Minute)}},
		{"one away and long", true, 6, []receivedHeartbeat{kept("n1", 9, 0), kept("n2", 5, 0), kept("n3", 1, time.Minute)}},
		{"one without a heartbeat and long", true, 6, []receivedHeartbeat{kept("n1", 9, 0), kept("n2", 5, 0)}},
		{"a guest is behind", false, 3, []receivedHeartbeat{kept("n1", 9, 0), kept("n2", 5, 0), kept("n3", 7, 0), kept("g", 2, 0)}},
		{"a guest is away", false, 6, []receivedHeartbeat{kept("n1", 9, 0), kept("n2", 5, 0), kept("n3", 7, 0), kept("g", 2, time.Minute)}},
		{"no snapshot yet", false, 1, []receivedHeartbeat{kept("n1", 9, 0), kept("n2", 0, 0), kept("n3", 7, 0)}},
		{"no node", true, 0, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &peerTable{byName: map[string]receivedHeartbeat{}}
			for _, h := range tt.received {
				r.byName[h.Name] = h
			}
			if got := r.firstNeeded(&config, tt.long); got != tt.want {
				t.Errorf("from %d on, want %d", got, tt.want)
			}
		})
	}
}

// TestReceive_SecondProcess says where the second process of a node runs. Both have the node's address.
func TestReceive_SecondProcess(t *testing.T) {
	out := &logBuffer{}
	r := newPeerTable(&Cluster{config: valid(), logger: slog.New(slog.NewTextHandler(out, nil))})
	for _, machine := range []string{"old-host, pid 7", "new-host, pid 8"} {
		body, err := json.Marshal(heartbeat{Name: "n2", Process: machine, Machine: machine, Address: "10.0.0.2:6222"})
		if err != nil {
			t.Fatal(err)
		}
		r.receive(&nats.Msg{Data: body})
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

// TestVerifyRecord_Trimmed has nothing to compare: the next record was trimmed too while a node started.
func TestVerifyRecord_Trimmed(t *testing.T) {
	if err := (&streamState{first: 7, last: 9}).verifyRecord(t.Context(), 5, 1); err != nil {
		t.Error(err)
	}
}
