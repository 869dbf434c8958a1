package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tasard/tasard/actors/cluster/clustertest"
	"github.com/tasard/tasard/wal"
)

// alone writes a log as a node has that was alone, with a snapshot.
func alone(t testing.TB, c *Config, records int) {
	t.Helper()
	log, err := wal.Open(c.Dir, wal.Options{ReserveBytes: -1, Clock: c.Clock})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for k := range records {
		if _, err := log.Append([][]byte{fmt.Appendf(nil, "alone %d", k+1)}); err != nil {
			t.Fatal(err)
		}
	}
}

// refused starts a node and wants an error with these words.
func refused(t testing.TB, c Config, within time.Duration, words string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	n, err := startNode(ctx, c)
	if err == nil {
		err = n.stop()
		t.Errorf("started, want %q; %v", words, err)
		return
	}
	if !strings.Contains(err.Error(), words) {
		t.Errorf("refused with %q, want %q", err, words)
	}
}

// TestJoin_FoundWithLog makes a cluster of a node that was alone: its records come first, and every node has them.
func TestJoin_FoundWithLog(t *testing.T) {
	f := newFleet(t)
	alone(t, &f.configs[1], 30)
	f.startAll()
	f.nodes[0].mustAppend(t, "together")
	log := f.sameLogs()
	if len(log) != 31 || log[0] != "alone 1" || log[29] != "alone 30" || log[30] != "together" {
		t.Errorf("log %q", log)
	}
	if e, err := f.nodes[0].cluster.askExtent(t.Context()); err != nil || e.first != 31 {
		t.Errorf("the stream begins with %d, %v", e.first, err)
	}
}

// TestJoin_TwoLogs refuses to choose.
func TestJoin_TwoLogs(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	alone(t, &f.configs[0], 3)
	alone(t, &f.configs[2], 4)
	const words = "n1 and n3 each have a log of their own"
	ctx, cancel := context.WithTimeout(t.Context(), waitMost)
	defer cancel()
	var all sync.WaitGroup
	var told atomic.Int64
	for _, c := range f.configs {
		c.Logger = slog.New(slog.NewTextHandler(&listener{words, sync.OnceFunc(func() {
			if told.Add(1) == 3 { // each has said it
				cancel()
			}
		})}, nil))
		all.Go(func() {
			if _, err := startNode(ctx, c); err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("refused with %v", err)
			}
		})
	}
	all.Wait()
}

// listener is a log that hears some words.
type listener struct {
	words string
	heard func()
}

// Write is io.Writer.
func (l *listener) Write(line []byte) (int, error) {
	if strings.Contains(string(line), l.words) {
		l.heard()
	}
	return len(line), nil
}

// TestJoin_AllMembers makes no stream before all members are there: the one that is late may have the records.
func TestJoin_AllMembers(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	alone(t, &f.configs[2], 3)
	done := make(chan error, 2)
	for i := range 2 {
		go func() {
			n, err := startNode(t.Context(), f.configs[i])
			f.nodes[i] = n
			done <- err
		}()
	}
	select {
	case err := <-done:
		t.Fatalf("started without the third: %v", err)
	case <-time.NewTimer(3 * time.Second).C:
	}
	f.start(2)
	for range 2 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	if log := f.sameLogs(); !slices.Equal(log, []string{"alone 1", "alone 2", "alone 3"}) {
		t.Errorf("log %q", log)
	}
}

// TestJoin_Refused starts nodes that can't be what they say, beside a cluster that runs.
func TestJoin_Refused(t *testing.T) {
	f := newFleet(t)
	f.startAll()
	f.nodes[0].mustAppend(t, "first")
	f.sameLogs()
	guest := f.config("guest", 4, clustertest.Addresses(t, 1)[0], t.TempDir())

	own := guest
	own.Dir = t.TempDir()
	alone(t, &own, 2)
	refused(t, own, waitMost, "records that the cluster does not know")

	clash := guest
	clash.Dir, clash.Node = t.TempDir(), 2
	refused(t, clash, waitMost, "number 2 is that of node n2")

	twice := guest
	twice.Dir = f.configs[0].Dir
	refused(t, twice, waitMost, wal.ErrLocked.Error())

	busy := guest
	busy.Dir, busy.Listen = t.TempDir(), f.configs[0].Listen
	refused(t, busy, waitMost, "address already in use")

	f.stop(2)
	text, err := os.ReadFile(filepath.Join(f.configs[2].Dir, identityName))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ from, to, words string }{
		{f.nodes[0].cluster.stream(), strings.Repeat("0", 32), "is a copy of stream 0000"},
		{`"test"`, `"other"`, `belongs to the cluster "other"`},
		{`"node": 3`, `"node": 7`, "belongs to node n3 with number 7"},
		{`"format": 1`, `"format": 9`, "run the newer program"},
		{f.nodes[0].cluster.stream(), "", "names no stream"},
		{"{", "", "invalid character"},
	} {
		changed := strings.Replace(string(text), tt.from, tt.to, 1)
		if err := os.WriteFile(filepath.Join(f.configs[2].Dir, identityName), []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, f.configs[2], waitMost, tt.words)
	}
}

// TestJoin_GiveWay has a guest take the number of a member that is away: when that comes back, the guest ends.
func TestJoin_GiveWay(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.startAll()
	f.nodes[0].mustAppend(t, "first")
	f.sameLogs()
	f.stop(1)
	guest, err := startNode(t.Context(), f.config("guest", 2, clustertest.Addresses(t, 1)[0], t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	f.start(1)
	guest.ends(t)
	if err := guest.takeError(); err == nil || !strings.Contains(err.Error(), "number 2 is that of node n2") {
		t.Errorf("the guest ended with %v", err)
	}
	if err := guest.stop(); err != nil {
		t.Error(err)
	}
	f.nodes[1].mustAppend(t, "second")
}

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
