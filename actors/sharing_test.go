package actors

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"

	"pgregory.net/rapid"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

// owes is an owner of state that gives back the places of what it is told.
type owes struct{}

func (owes) Receive(l mailbox.Message) {
	if m, ok := l.(*foreignEvents[engine.Event]); ok {
		m.credit.release()
	}
}
func (owes) Fatal(mailbox.Message) bool { return true }
func (owes) Abort(*engine.Error)        {}

// majorityJournal is a Shared of which the journal actor asks nothing but how it stands.
type majorityJournal struct{ Shared }

func (majorityJournal) Node() engine.NodeID { return 1 }
func (majorityJournal) Standing() Standing  { return Standing{Majority: true} }

// TestSharing_BundlesFit has owners write as much as one write may be: no bundle is larger than a record of the log may be, and all are
// offered.
func TestSharing_BundlesFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		system := newActorSystem(16, 1, func(err error) { t.Fatal(err) })
		defer system.Close()
		clerk := &journalActor{
			fail: func(err error) { t.Fatal(err) }, logger: slog.New(slog.DiscardHandler),
			vitals: newVitals((&testClock{now: noon}).read, nil), writer: &writer{jobs: make(chan job, 1)},
			snapshot: snapshotPlan{recordsMax: 1 << 30, bytesMax: 1 << 60},
		}
		clerk.shared = &sharing{journal: majorityJournal{}, desk: &desk{}, books: map[string]*mailbox.Ref{}, told: map[*mailbox.Ref]uint64{}}
		const owners = 3
		most := batchBytesMax(true) - recordOverheadBytes
		for i := range owners {
			r, err := system.Spawn(fmt.Sprint("owner", i), &mailbox.Kind{}, owes{})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Stop()
			size := rapid.SampledFrom([]int{1, most / 3, most / 2, most - 1, most}).Draw(t, "size")
			clerk.Receive(&write{from: r, records: [][]byte{bytes.Repeat([]byte{byte(i)}, size)}})
		}
		places := make(chan struct{}, owners)
		for offered, sequence := 0, uint64(1); offered < owners; sequence++ {
			var offer job
			select {
			case offer = <-clerk.writer.jobs:
			default:
				t.Fatalf("%d of %d writes were offered", offered, owners)
			}
			b, err := record.NewDecoder().Bundle(offer.records[0])
			if err != nil || len(offer.records[0]) > bundleBytesMax {
				t.Fatalf("a bundle of %d bytes, at most %d; %v", len(offer.records[0]), bundleBytesMax, err)
			}
			offered += len(b.Records)
			clerk.Receive(&written{})
			places <- struct{}{}
			m := &delivered{sequence: sequence, own: true, records: 1, bytes: 1, books: map[string][]engine.Event{}, credit: &credit{places: places}}
			m.credit.take()
			clerk.Receive(m)
		}
	})
}
