package cluster

import (
	"crypto/rand"
	"log/slog"
	"strings"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"
	"pgregory.net/rapid"
)

const testSecret = "the secret of nodes that run tests"

// valid returns a configuration for one machine.
func valid() Config {
	return Config{
		Cluster: "c", Node: 1, Listen: "127.0.0.1:6222", Dir: "data", Secret: testSecret, Clock: realClock, Random: rand.Reader,
		Logger:  slog.New(slog.DiscardHandler),
		Members: []Member{{1, "127.0.0.1:6222"}, {2, "127.0.0.1:6223"}, {3, "127.0.0.1:6224"}},
	}
}

// TestConfig_Refused checks that each invalid setting is reported with a remedy.
func TestConfig_Refused(t *testing.T) {
	for _, tt := range []struct {
		name, words string
		change      func(*Config)
	}{
		{"no cluster", "name of the cluster", func(c *Config) { c.Cluster = "" }},
		{"a dot in a name", "name of the cluster", func(c *Config) { c.Cluster = "n.1" }},
		{"a long name", "name of the cluster", func(c *Config) { c.Cluster = strings.Repeat("n", 65) }},
		{"no number", "the members lack this node", func(c *Config) { c.Node = 0 }},
		{"no port", "address to listen on", func(c *Config) { c.Listen = "127.0.0.1" }},
		{"any port", "address to listen on", func(c *Config) { c.Listen = "127.0.0.1:0" }},
		{"two members", "2 members: want 3 or 5", func(c *Config) { c.Members = c.Members[:2] }},
		{"a number twice", "is listed twice", func(c *Config) { c.Members[1].Node = 3 }},
		{"an address twice", "is listed twice", func(c *Config) { c.Members[1].Address = c.Members[0].Address }},
		{"a member without port", "address of node-3", func(c *Config) { c.Members[2].Address = "127.0.0.1" }},
		{"not a member", "the members lack this node: want 4=HOST:PORT", func(c *Config) { c.Node = 4 }},
		{"no secret", "has 0 characters: want 32", func(c *Config) { c.Secret = "" }},
		{"a short secret", "has 9 characters: want 32", func(c *Config) { c.Secret = "swordfish" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := valid()
			tt.change(&c)
			if err := c.Check(); err == nil || !strings.Contains(err.Error(), tt.words) {
				t.Errorf("got %v, want %q", err, tt.words)
			}
		})
	}
	c := valid()
	c.Listen, c.Members[1].Address = "", "db.example:6222"
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

// TestFrameBatch adds messages in any order, some repeated, some missing: the batch is in order and without gaps.
func TestFrameBatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "messages")
		frames, sums := make([]frame, n+1), make([]uint32, n+1)
		for i := 1; i <= n; i++ {
			f := frame{sequence: uint64(i), previous: sums[i-1], record: []byte{byte(i)}}
			frames[i], _ = decodeFrame(&pb.Entry{Data: f.encode()})
			sums[i] = checksum(f.record)
		}
		start := rapid.IntRange(0, n-1).Draw(t, "start")
		r := frameBatch{last: uint64(start), checksum: sums[start]}
		if rapid.Bool().Draw(t, "after a backup") {
			r.checksum = 0 // unknown
		}
		for range rapid.IntRange(0, 60).Draw(t, "deliveries") {
			i := rapid.IntRange(1, n).Draw(t, "message")
			before := r.last
			err := r.add(frames[i])
			if (err != nil) != (uint64(i) > before+1) {
				t.Fatalf("message %d after %d: %v", i, before, err)
			}
		}
		if got := uint64(start + len(r.frames)); got != r.last {
			t.Fatalf("%d frames after %d, the last is %d", len(r.frames), start, r.last)
		}
		for i, f := range r.frames {
			if f.record[0] != byte(start+i+1) {
				t.Fatalf("frame %d has record %d", i, f.record[0])
			}
		}
	})
}
