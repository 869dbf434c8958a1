package commitlog

import (
	"errors"
	"testing"

	"github.com/tasard/tasard/actors/mailbox"
)

func TestS15_LateSnapshot(t *testing.T) {
	p := snapshotPlan{recordsMax: 10, bytesMax: 1000, running: true}
	for range 39 {
		p.count(1, 1)
	}
	if p.late() {
		t.Error("late after 39 records")
	}
	if p.count(1, 1); !p.late() {
		t.Error("not late after 40")
	}
	if p = (snapshotPlan{recordsMax: 10, bytesMax: 1000}); p.late() {
		t.Error("late without anything")
	}
	if p.count(1, 4000); !p.late() {
		t.Error("not late after four times the bytes")
	}
}

// TestFailedSnapshotIsNotRead: after an owner has failed, others may still set their parts; the race detector sees a
// writer that reads them.
func TestFailedSnapshotIsNotRead(t *testing.T) {
	c := &StateSnapshot{Sequence: 7, Accounts: [][][]byte{make([][]byte, 1)}, Done: func(*StateSnapshot) {}}
	c.Pending.Store(2)
	(&SnapshotRequest{Snapshot: c}).Reject(mailbox.ErrStopped)
	set := make(chan struct{})
	go func() {
		defer close(set)
		(&SnapshotRequest{Snapshot: c}).SetAccount([]byte{0})
	}()
	log := &Log{} // a write to its journal would panic
	if m := log.writeSnapshot(c); !errors.Is(m.err, mailbox.ErrStopped) || m.sequence != 7 || m.accountBytes != 0 {
		t.Errorf("a failed snapshot: %+v", m)
	}
	<-set
}
