package actors

import (
	"testing"
	"testing/synctest"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

// sluggish takes what is delivered and is never done with it.
type sluggish struct{ taken []*delivered }

func (s *sluggish) Receive(l mailbox.Message) {
	if m, ok := l.(*delivered); ok {
		s.taken = append(s.taken, m)
	}
}

func (s *sluggish) Fatal(mailbox.Message) bool { return true }
func (s *sluggish) Abort(*engine.Error)        {}

// TestFollower_WaitsForTheOwners delivers to owners that are slow: the log is read no further than there are places, nothing is left out
// when they go on, and the end does not wait for them.
func TestFollower_WaitsForTheOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal := newSharedLog(1).join(1, &memoryJournal{}).journal()
		system := newActorSystem(16, 1, func(err error) { t.Error(err) })
		slow := &sluggish{}
		to, err := system.Spawn("slow", &mailbox.Kind{}, slow)
		if err != nil {
			t.Fatal(err)
		}
		f := newFollower(journal, &desk{}, 1, func(err error) { t.Error(err) })
		f.start(to)
		foreign := mustEncode(t, &record.Bundle{Node: 2})
		journal.node.log.with(func() {
			for range 2 * creditsMax {
				journal.node.log.records = append(journal.node.log.records, foreign)
			}
		})
		synctest.Wait()
		if len(slow.taken) != creditsMax {
			t.Fatalf("%d were delivered, want %d", len(slow.taken), creditsMax)
		}
		finished := slow.taken[:10]
		slow.taken = slow.taken[10:]
		for _, m := range finished {
			m.credit.release()
		}
		synctest.Wait()
		if n := len(slow.taken); n != creditsMax || slow.taken[n-1].sequence != creditsMax+10 {
			t.Errorf("%d wait, up to record %d", n, slow.taken[n-1].sequence)
		}
		f.end()
		to.Stop()
		system.Close()
	})
}
