package actors

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/wal"
)

func minutes(from, count int) []engine.Refresh {
	var out []engine.Refresh
	for i := from; i < from+count; i++ {
		out = append(out, saying("a", noon.Add(time.Duration(i-1000)*time.Minute), "USD", "57", fmt.Sprintf("60.%02d", i%50), "popular"))
	}
	return out
}

func TestSnapshotsFollowTheLog(t *testing.T) {
	for name, c := range map[string]Config{
		"by records": {SnapshotRecords: 10},
		"by bytes":   {SnapshotBytes: 400},
	} {
		t.Run(name, func(t *testing.T) {
			taken := make(chan string, 100)
			journal := &memoryJournal{around: func(what string) error { taken <- what; return nil }}
			c.Journal = journal
			s := start(t, c)
			observe(t, s, minutes(0, 9)...)
			observe(t, s, minutes(9, 9)...)
			if what := <-taken; what != "snapshot" {
				t.Errorf("first comes a %s", what)
			}
			if what := <-taken; what != "drop" {
				t.Errorf("after a snapshot comes a %s", what)
			}
			observe(t, s, minutes(18, 1)...)
			want := states(t, s)
			if again := start(t, Config{Journal: journal.crashed()}); !reflect.DeepEqual(states(t, again), want) {
				t.Error("snapshot and tail give another state")
			}
		})
	}
}

func TestFailedSnapshotCostsNothing(t *testing.T) {
	for _, failure := range []error{wal.ErrNoSpace, errors.New("planted")} {
		tried := make(chan struct{}, 10)
		journal := &memoryJournal{around: func(string) error { tried <- struct{}{}; return failure }}
		s := start(t, Config{Journal: journal, SnapshotRecords: 5})
		for i := range 2 {
			observe(t, s, minutes(10*i, 10)...)
			<-tried
		}
		if err := s.Close(); err != nil || s.Err() != nil {
			t.Errorf("%v: %v, Err %v", failure, err, s.Err())
		}
		if len(journal.records) != 20 {
			t.Errorf("%v: %d records, want all 20", failure, len(journal.records))
		}
	}
}

func TestPoisonedJournalStopsTheNode(t *testing.T) {
	for _, at := range []string{"snapshot", "drop"} {
		journal := &memoryJournal{around: func(what string) error {
			if what == at {
				return fmt.Errorf("planted: %w", wal.ErrPoisoned)
			}
			return nil
		}}
		s := start(t, Config{Journal: journal, SnapshotRecords: 5})
		_, _ = s.Observe(minutes(0, 10))
		<-s.Done()
		if !errors.Is(s.Err(), wal.ErrPoisoned) {
			t.Errorf("%s: Err %v", at, s.Err())
		}
		if _, err := s.Observe(minutes(10, 1)); !isCode(err, engine.CodeReadOnly) {
			t.Errorf("%s: a later write: %v", at, err)
		}
		if _, err := s.Rates(engine.RatesQuery{PageRequest: engine.PageRequest{Limit: 1}}); err != nil {
			t.Errorf("%s: a read: %v", at, err)
		}
	}
}

// An event that cannot be applied at recovery stops the node like one at work.
func TestPanicWhileReplayingIsAnError(t *testing.T) {
	r := newReplayer(&System{config: Config{Catalogue: engine.DefaultCatalogue(), Rules: engine.DefaultRules()}})
	if err := r.apply([]any{unknownMessage{&engine.Rejected{Currency: "USD"}}}); err == nil {
		t.Error("no error")
	}
}

// haltOwners halts all actors but the journal and waits until they have stopped: as when a panic
// stops it while a batch is with the writer.
func haltOwners(s *System) {
	owners := slices.Concat(s.kinds.currency.Refs(), s.accounts.Kinds.Registrar.Refs(), s.accounts.Kinds.Shard.Refs())
	for _, owner := range owners {
		owner.Send(&mailbox.NodeFailed{Err: commitlog.ReadOnly(errors.New("planted"))})
	}
	for _, owner := range owners {
		for !isIdle(owner) {
			runtime.Gosched()
		}
	}
}

// A batch that becomes durable while the node stops is in the log and in no actor's state. No snapshot is taken without
// it.
func TestNoSnapshotWithoutWhatBecameDurableAtTheEnd(t *testing.T) {
	type change struct {
		make func(n *node, m *testMember) error
		kept func(n *node, m *testMember) bool
	}
	for what, c := range map[string]change{
		"a rate": {
			func(n *node, _ *testMember) error { _, err := n.Observe(minutes(0, 1)); return err },
			func(n *node, _ *testMember) bool { return best(t, n.System) == "60.00" },
		},
		"a lease": {
			func(n *node, m *testMember) error { _, err := n.Admit(key(m.keys[0])); return err },
			func(n *node, m *testMember) bool { return n.spent(m.token) == account.LeaseSizeDefault },
		},
		"a session that was closed": {
			func(n *node, m *testMember) error { return n.CloseSession(m.token) },
			func(n *node, m *testMember) bool {
				_, err := n.Keys(m.token)
				return isCode(err, engine.CodeInvalidSession)
			},
		},
	} {
		n := startNode(t, Config{SnapshotRecords: 1})
		m := n.join(1, 1)
		n.journal.before = func([][]byte) error { haltOwners(n.System); return nil }
		if err := c.make(n, m); !isCode(err, engine.CodeReadOnly) {
			t.Errorf("%s: %v", what, err)
		}
		if n.restart(); !c.kept(n, m) {
			t.Errorf("%s is lost after a restart", what)
		}
	}
}
