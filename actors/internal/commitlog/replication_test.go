package commitlog

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

// windowReleaser is an owner of state that gives back the places of what it is told.
type windowReleaser struct{}

func (windowReleaser) Receive(l mailbox.Message) {
	if m, ok := l.(*RemoteEvents[engine.Event]); ok {
		m.Window.Release()
	}
}
func (windowReleaser) Fatal(mailbox.Message) bool { return true }
func (windowReleaser) Abort(*engine.Error)        {}

// majorityJournal is a SharedJournal of which the journal actor asks nothing but how it stands.
type majorityJournal struct{ SharedJournal }

func (majorityJournal) Node() engine.NodeID          { return 1 }
func (majorityJournal) ClusterHealth() ClusterHealth { return ClusterHealth{Majority: true} }

// TestSharing_BundlesFit has owners write as much as one write may be: no bundle is larger than a record of the log may be, and all are
// offered.
func TestSharing_BundlesFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		system := mailbox.NewSystem(mailbox.Config{Limit: 16, Workers: 1, Fail: func(err error) { t.Fatal(err) }, Failed: ReadOnly})
		defer system.Close()
		clerk := &Actor{
			Fail: func(err error) { t.Fatal(err) }, Logger: slog.New(slog.DiscardHandler),
			Health: NewHealth(func() time.Time { return time.Time{} }, nil), Writer: &Writer{jobs: make(chan job, 1)},
			Snapshot: SnapshotPlan{RecordsMax: 1 << 30, BytesMax: 1 << 60},
		}
		clerk.Replication = &Replication{Journal: majorityJournal{}, Token: &BundleToken{}, Currencies: map[string]*mailbox.Ref{}, SentRemoteSeq: map[*mailbox.Ref]uint64{}}
		const owners = 3
		most := BatchBytesMax(true) - recordOverheadBytes
		for i := range owners {
			r, err := system.Spawn(fmt.Sprint("owner", i), &mailbox.Kind{}, windowReleaser{})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Stop()
			size := rapid.SampledFrom([]int{1, most / 3, most / 2, most - 1, most}).Draw(t, "size")
			clerk.Receive(&Write{From: r, Records: [][]byte{bytes.Repeat([]byte{byte(i)}, size)}})
		}
		places := make(chan struct{}, owners)
		for offered, sequence := 0, uint64(1); offered < owners; sequence++ {
			var offer job
			select {
			case offer = <-clerk.Writer.jobs:
			default:
				t.Fatalf("%d of %d writes were offered", offered, owners)
			}
			b, err := record.NewDecoder().Bundle(offer.records[0])
			if err != nil || len(offer.records[0]) > BundleBytesMax {
				t.Fatalf("a bundle of %d bytes, at most %d; %v", len(offer.records[0]), BundleBytesMax, err)
			}
			offered += len(b.Records)
			clerk.Receive(&written{})
			places <- struct{}{}
			m := &Delivered{Sequence: sequence, own: true, records: 1, bytes: 1, currencies: map[string][]engine.Event{}, Window: &WindowEntry{window: places}}
			m.Window.Retain()
			clerk.Receive(m)
		}
	})
}
