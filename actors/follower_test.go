package actors

import (
	"testing"
	"testing/synctest"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

// slowActor takes what is delivered and is never done with it.
type slowActor struct{ taken []*commitlog.Delivered }

func (s *slowActor) Receive(l mailbox.Message) {
	if m, ok := l.(*commitlog.Delivered); ok {
		s.taken = append(s.taken, m)
	}
}

func (s *slowActor) Fatal(mailbox.Message) bool { return true }
func (s *slowActor) Abort(*engine.Error)        {}

// TestFollower_WaitsForTheOwners delivers to owners that are slow: the log is read no further than there are places, nothing is left out
// when they go on, and the end does not wait for them.
func TestFollower_WaitsForTheOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal := newSharedLog(1).join(1, &memoryJournal{}).journal()
		system := newActorSystem(16, 1, func(err error) { t.Error(err) })
		slow := &slowActor{}
		to, err := system.Spawn("slow", &mailbox.Kind{}, slow)
		if err != nil {
			t.Fatal(err)
		}
		f := commitlog.NewFollower(journal, &commitlog.BundleToken{}, 1, func(err error) { t.Error(err) })
		f.Start(to)
		foreign := mustEncode(t, &record.Bundle{Node: 2})
		journal.node.log.with(func() {
			for range 2 * commitlog.ReplicationWindow {
				journal.node.log.records = append(journal.node.log.records, foreign)
			}
		})
		synctest.Wait()
		if len(slow.taken) != commitlog.ReplicationWindow {
			t.Fatalf("%d were delivered, want %d", len(slow.taken), commitlog.ReplicationWindow)
		}
		finished := slow.taken[:10]
		slow.taken = slow.taken[10:]
		for _, m := range finished {
			m.Window.Release()
		}
		synctest.Wait()
		if n := len(slow.taken); n != commitlog.ReplicationWindow || slow.taken[n-1].Sequence != commitlog.ReplicationWindow+10 {
			t.Errorf("%d wait, up to record %d", n, slow.taken[n-1].Sequence)
		}
		f.End()
		to.Stop()
		system.Close()
	})
}
