package commitlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

// collector is an actor that keeps delivered records and results, and releases remote events.
type collector struct {
	delivered []*Delivered
	results   []*engine.Error
}

func (c *collector) Receive(l mailbox.Message) {
	switch m := l.(type) {
	case *RemoteEvents[engine.Event]:
		m.Window.Release()
	case *Delivered:
		c.delivered = append(c.delivered, m)
	case *WriteResult:
		c.results = append(c.results, m.Err)
	}
}
func (*collector) FailsNode(mailbox.Message) bool { return true }
func (*collector) RejectAll(*engine.Error)        {}

// fakeJournal has a majority unless it is cut off, keeps the last offer and delivers a number of records.
type fakeJournal struct {
	SharedJournal
	offered []byte
	record  []byte
	records int
	cut     bool
	after   uint64 // the newest record of earlier terms
}

func (*fakeJournal) Node() engine.NodeID            { return 1 }
func (j *fakeJournal) Leadership() (uint64, uint64) { return 1, j.after }
func (j *fakeJournal) ClusterHealth() ClusterHealth { return ClusterHealth{Majority: !j.cut} }

func (j *fakeJournal) Append(expected uint64, records [][]byte) (uint64, error) {
	j.offered = records[0]
	return expected + 1, nil
}

func (j *fakeJournal) Follow(ctx context.Context, deliver func(uint64, []byte), _ func(uint64)) error {
	for i := range j.records {
		deliver(uint64(i+1), j.record)
	}
	<-ctx.Done()
	return nil
}

// newReplication returns a log. The test calls its Actor, and self gets the messages that are sent to the Actor.
func newReplication(t interface{ Fatal(...any) }, journal *fakeJournal, self *collector) (*Log, *mailbox.System) {
	fail := func(err error) { t.Fatal(err) }
	system := mailbox.NewSystem(mailbox.Config{Limit: 16, Workers: 1, Fail: fail, Failed: ReadOnly})
	log, err := New(Config{
		Journal: journal, Random: bytes.NewReader(make([]byte, 8)), Clock: func() time.Time { return time.Time{} }, Fail: fail,
		Logger: slog.New(slog.DiscardHandler), SnapshotRecords: 1 << 30, SnapshotBytes: 1 << 60,
	})
	if err != nil {
		t.Fatal(err)
	}
	log.newActor(Position{})
	log.Ref = spawn(t, system, "log", self)
	return log, system
}

func spawn(t interface{ Fatal(...any) }, system *mailbox.System, name string, actor mailbox.Actor) *mailbox.Ref {
	r, err := system.Spawn(name, &mailbox.Kind{}, actor)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestReplication_BundlesFit sends writes up to the largest size: no bundle is larger than a record may be, and all are
// offered.
func TestReplication_BundlesFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		journal := &fakeJournal{}
		log, system := newReplication(t, journal, &collector{})
		defer system.Close()
		defer log.Ref.Stop()
		const owners = 3
		most := BatchBytesMax(true) - RecordOverhead
		for i := range owners {
			r := spawn(t, system, fmt.Sprint("owner", i), &collector{})
			defer r.Stop()
			size := rapid.SampledFrom([]int{1, most / 3, most / 2, most - 1, most}).Draw(t, "size")
			log.actor.Receive(&Write{From: r, Term: 1, Records: [][]byte{bytes.Repeat([]byte{byte(i)}, size)}})
		}
		for offered, sequence := 0, uint64(1); offered < owners; sequence++ {
			log.writer.Wait()              // gather
			log.actor.Receive(&gathered{}) // what gather sends goes to log.Ref, which is another one here
			log.writer.Wait()
			b, err := new(record.Decoder).Bundle(journal.offered)
			if size := len(journal.offered); err != nil || size == 0 || size > BundleBytesMax {
				t.Fatalf("a bundle of %d bytes, at most %d; %v", size, BundleBytesMax, err)
			}
			offered += len(b.Records)
			journal.offered = nil
			log.actor.Receive(&appendResult{})
			m := &Delivered{Sequence: sequence, own: true, records: 1, bytes: 1, Window: log.window.add(context.Background(), sequence)}
			log.actor.Receive(m)
		}
	})
}

// TestReplication_OutcomeUnknown: the outcome of a proposal is unknown when another node's bundle is delivered before
// it, and at once when its term has ended, before or after the return of Append. If it is delivered later, its owners
// must not apply it: they decided without what came before.
func TestReplication_OutcomeUnknown(t *testing.T) {
	for _, messages := range [][]mailbox.Message{
		{&appendResult{}, &Delivered{}},
		{&appendResult{}, &leadershipLost{term: 1}},
		{&leadershipLost{term: 1}, &appendResult{}},
	} {
		synctest.Test(t, func(t *testing.T) {
			owner := &collector{}
			log, system := newReplication(t, &fakeJournal{}, &collector{})
			r := spawn(t, system, "owner", owner)
			messages = slices.Concat([]mailbox.Message{&Write{From: r, Term: 1, Records: [][]byte{{1}}}, &gathered{}, &leadershipLost{}}, messages)
			for i, m := range append(messages, &Delivered{own: true}) {
				if d, ok := m.(*Delivered); ok {
					d.Sequence = log.actor.last + 1
					d.Window = log.window.add(t.Context(), d.Sequence)
				}
				if synctest.Wait(); len(owner.results) > 0 != (i == len(messages)) {
					t.Errorf("%d results before message %d", len(owner.results), i)
				}
				log.actor.Receive(m)
			}
			if synctest.Wait(); len(owner.results) != 1 || owner.results[0] != ErrOutcomeUnknown {
				t.Errorf("results %v, want %v", owner.results, ErrOutcomeUnknown)
			}
			r.Stop()
			log.Ref.Stop()
			system.Close()
		})
	}
}

// TestA11_TimeoutWithoutMajority: a change that timed out without a majority may still be made.
func TestA11_TimeoutWithoutMajority(t *testing.T) {
	if err := (Majority{&fakeJournal{cut: true}}).ChangeError(mailbox.ErrExpired); !errors.Is(err, ErrOutcomeUnknown) {
		t.Error(err)
	}
}

// TestFollower_OwnBundle: only the newest proposal of this process is its own. An earlier one, whose callers got no
// answer, must not answer those of the newest.
func TestFollower_OwnBundle(t *testing.T) {
	log := &Log{Shared: &fakeJournal{}}
	log.token.Store(7)
	f := &follower{log: log, shards: 1, decoder: new(record.Decoder)}
	for bundle, own := range map[*record.Bundle]bool{{Node: 1, Token: 7}: true, {Node: 1, Token: 6}: false, {Node: 2, Token: 7}: false} {
		data, err := record.Encode(bundle)
		m := &Delivered{}
		if err = errors.Join(err, f.decode(m, data)); err != nil || m.own != own {
			t.Errorf("%+v: own %t, %v", bundle, m.own, err)
		}
	}
}

// TestFollower_WaitsForOwners: with a full window the log is not read further, no record is skipped when places are
// freed, and stop does not wait for owners.
func TestFollower_WaitsForOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		remote, err := record.Encode(&record.Bundle{Node: 2})
		if err != nil {
			t.Fatal(err)
		}
		owner := &collector{}
		log, system := newReplication(t, &fakeJournal{record: remote, records: 2 * ReplicationWindow}, owner)
		f := &follower{log: log, shards: 1, decoder: new(record.Decoder)}
		log.watching.Go(f.follow)
		synctest.Wait()
		if len(owner.delivered) != ReplicationWindow {
			t.Fatalf("%d were delivered, want %d", len(owner.delivered), ReplicationWindow)
		}
		applied := owner.delivered[:10]
		owner.delivered = owner.delivered[10:]
		for _, m := range applied {
			m.Window.Release()
		}
		synctest.Wait()
		if n := len(owner.delivered); n != ReplicationWindow || owner.delivered[n-1].Sequence != ReplicationWindow+10 {
			t.Errorf("%d wait, up to record %d", n, owner.delivered[n-1].Sequence)
		}
		log.end()
		log.watching.Wait()
		log.Ref.Stop()
		system.Close()
	})
}

// TestA11_DecidesAfterEarlierTerms: a leader decides when its owners have applied all records of earlier terms.
func TestA11_DecidesAfterEarlierTerms(t *testing.T) {
	for applied, want := range map[uint64]bool{2: false, 3: true} {
		l := &Log{Shared: &fakeJournal{after: 3}, window: &window{newest: applied}}
		if _, decides := l.Decides(); decides != want {
			t.Errorf("with %d of 3 records of earlier terms applied it decides: %t", applied, decides)
		}
	}
}
