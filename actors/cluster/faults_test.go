package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// twice finds what stands more than once, and what was told to stand and does not.
func twice(log, told []string) error {
	count := map[string]int{}
	for _, record := range log {
		count[record]++
		if count[record] > 1 {
			return fmt.Errorf("%q stands twice", record)
		}
	}
	for _, record := range told {
		if count[record] == 0 {
			return fmt.Errorf("%q does not stand", record)
		}
	}
	return nil
}

// TestFaults_LostAnswers loses requests, answers, and both, and sends some twice: each record stands once.
func TestFaults_LostAnswers(t *testing.T) {
	f := newFleet(t)
	f.startAll()
	var fired atomic.Int64
	for i, n := range f.nodes {
		j := n.cluster.Journal()
		chance, send := rand.New(rand.NewPCG(uint64(i), 1)), j.ask
		j.ask = func(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
			fault := chance.IntN(4)
			if fault < 3 {
				fired.Add(1)
			}
			if fault == 0 {
				return nil, nats.ErrTimeout // never sent
			}
			answer, err := send(ctx, m)
			if fault == 1 {
				return nil, nats.ErrTimeout // the answer is lost
			}
			if fault == 2 {
				return send(ctx, m) // came twice
			}
			return answer, err
		}
	}
	const each = 25
	told := make([][]string, 3)
	var all sync.WaitGroup
	for i, n := range f.nodes {
		all.Go(func() {
			for k := range each {
				record := fmt.Sprintf("n%d record %d", i+1, k)
				if _, _, err := n.append(record); err != nil {
					t.Errorf("append: %v", err)
					return
				}
				told[i] = append(told[i], record)
			}
		})
	}
	all.Wait()
	log := f.sameLogs()
	for i := range told {
		if err := twice(log, told[i]); err != nil {
			t.Error(err)
		}
	}
	if len(log) != 3*each || fired.Load() == 0 {
		t.Errorf("%d records, want %d; %d faults", len(log), 3*each, fired.Load())
	}
	t.Logf("%d faults", fired.Load())
}

// TestFaults_ControlTrustsAnswers has a writer that takes a lost answer for a failure and offers anew: the check must see it.
func TestFaults_ControlTrustsAnswers(t *testing.T) {
	f := newFleet(t)
	f.startAll()
	n := f.nodes[0]
	lost := func() { // one that was taken, and whose answer never came
		last, sum := n.cluster.Journal().position()
		publishRaw(t, n, last, (&frame{sequence: last + 1, previous: sum, record: []byte("mine")}).encode())
		n.await(t, last+1)
	}
	lost()
	lost()
	if err := twice(f.sameLogs(), []string{"mine"}); err == nil {
		t.Error("a record that stands twice goes unseen")
	}
}

// publishRaw writes behind a record whatever it is given.
func publishRaw(t testing.TB, n *testNode, expected uint64, body []byte) {
	t.Helper()
	m := nats.NewMsg(subjectJournal)
	m.Data = body
	m.Header.Set(jetstream.ExpectedLastSeqHeader, strconv.FormatUint(expected, 10))
	eventually(t, "a message that is taken", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), askWait)
		defer cancel()
		answer, err := n.cluster.node.conn.RequestMsgWithContext(ctx, m)
		return err == nil && !strings.Contains(string(answer.Data), `"error"`)
	})
}

// TestFaults_Damage writes messages that no node of ours would: every node stops before it applies one.
func TestFaults_Damage(t *testing.T) {
	whole := frame{sequence: 3, record: []byte("whole")}
	flipped := func(f frame) []byte {
		b := f.encode()
		b[frameHeaderBytes] ^= 1
		return b
	}
	moved, short := whole, whole.encode()[:20]
	moved.sequence = 4
	for _, tt := range []struct {
		name string
		body func(sum uint32) []byte
	}{
		{"a changed bit", func(sum uint32) []byte { f := whole; f.previous = sum; return flipped(f) }},
		{"a moved message", func(sum uint32) []byte { f := moved; f.previous = sum; return f.encode() }},
		{"another history", func(sum uint32) []byte { f := whole; f.previous = sum + 1; return f.encode() }},
		{"cut short", func(uint32) []byte { return short }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			f.startAll()
			f.nodes[0].mustAppend(t, "first")
			f.nodes[0].mustAppend(t, "second")
			f.sameLogs()
			_, sum := f.nodes[0].cluster.Journal().position()
			publishRaw(t, f.nodes[0], 2, tt.body(sum))
			for _, n := range f.nodes {
				if n.beyond(2) == nil {
					t.Errorf("%s took it", n.cluster.config.Name)
					continue
				}
				var damage *DamageError
				if err := n.takeError(); !errors.As(err, &damage) || damage.Sequence != 3 {
					t.Errorf("follow ended with %v", err)
				}
				if n.last() != 2 || n.cluster.Journal().Last() != 2 {
					t.Errorf("delivered up to %d, kept up to %d", n.last(), n.cluster.Journal().Last())
				}
				if _, err := n.cluster.Journal().Append(2, [][]byte{[]byte("more")}); !errors.Is(err, errEnded) {
					t.Errorf("append after damage: %v", err)
				}
			}
		})
	}
}

// TestFaults_Trimmed keeps a node from what it needs: it stops with a gap, and gets a copy when it starts again.
func TestFaults_Trimmed(t *testing.T) {
	f := newFleet(t)
	for i := range f.configs {
		f.configs[i].StreamBytesMax = 1 // a node that is away is not waited for
	}
	f.startAll()
	f.nodes[0].mustAppend(t, "record 1")
	f.sameLogs()
	f.stop(2)
	for k := range 9 {
		f.nodes[0].mustAppend(t, fmt.Sprintf("record %d", k+2))
	}
	f.snapshot(8)
	f.trimmedTo(9)
	f.start(2)
	if t.Failed() {
		t.FailNow()
	}
	f.nodes[2].await(t, 10)
	if got := f.nodes[2].state(t); got != "state at 8" {
		t.Errorf("the snapshot is %q", got)
	}
	f.nodes[2].mustAppend(t, "record 11")
	f.sameTail(9)
}
