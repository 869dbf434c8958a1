package commitlog

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/wal"
)

// testJournal is a local Journal that keeps the sizes of its batches. An Append returns after a millisecond.
// mu guards what tests look at, also of the owners.
type testJournal struct {
	Journal
	mu        sync.Mutex
	last      uint64
	writing   bool
	batches   []int // size of each
	records   []int // number of records of each
	fails     error
	snapshots []uint64
	received  []string // by owners
}

// created is a notification.
type created struct{ mailbox.OneWay }

func (j *testJournal) locked(do func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	do()
}

func (j *testJournal) Append(expected uint64, records [][]byte) (uint64, error) {
	j.locked(func() { j.writing = true })
	time.Sleep(time.Millisecond) //nolint:forbidigo // the bubble's: until all other goroutines wait
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writing = false
	j.batches, j.records = append(j.batches, BatchBytes(records)), append(j.records, len(records))
	if j.fails != nil {
		return expected, j.fails
	}
	j.last = expected + uint64(len(records))
	return j.last, nil
}

func (j *testJournal) WriteSnapshot(sequence uint64, _ func(io.Writer) error) error {
	j.locked(func() { j.snapshots = append(j.snapshots, sequence) })
	return nil
}
func (*testJournal) DropBefore(uint64) error { return nil }
func (*testJournal) Close() error            { return nil }

// testOwner keeps the results of its writes.
type testOwner struct {
	journal *testJournal
	results []*engine.Error
	early   bool // a WriteResult came while the journal was writing
}

func (o *testOwner) Receive(msg mailbox.Message) {
	switch m := msg.(type) {
	case *WriteResult:
		o.journal.locked(func() { o.results, o.early = append(o.results, m.Err), o.early || o.journal.writing })
		o.journal.locked(func() { o.journal.received = append(o.journal.received, "result") })
	case *created:
		o.journal.locked(func() { o.journal.received = append(o.journal.received, "created") })
	case *SnapshotRequest:
		m.Snapshot.PartDone()
	}
}
func (*testOwner) FailsNode(mailbox.Message) bool { return true }
func (*testOwner) RejectAll(*engine.Error)        {}

// runLog runs test with a log of two owners. A snapshot is due after five records. failed is the error with which the
// log has stopped the node.
func runLog(t *testing.T, journal *testJournal, test func(log *Log, owners []*testOwner, write func(owner int, records ...[]byte), failed *error)) {
	synctest.Test(t, func(t *testing.T) {
		var failed error
		fail := func(err error) { failed = err }
		system := mailbox.NewSystem(mailbox.Config{Limit: 16, Workers: 1, Fail: fail, Failed: ReadOnly})
		log, err := New(Config{
			Journal: journal, Clock: time.Now, Fail: fail, Logger: slog.New(slog.DiscardHandler), SnapshotRecords: 5, SnapshotBytes: 1 << 60, //nolint:forbidigo // the bubble's
		})
		if err == nil {
			err = log.Spawn(system, &mailbox.Kind{}, Position{})
		}
		if err != nil {
			t.Fatal(err)
		}
		owners := []*testOwner{{journal: journal}, {journal: journal}}
		refs := []*mailbox.Ref{spawn(t, system, "a", owners[0]), spawn(t, system, "b", owners[1])}
		log.AddCurrency("USD", refs[0])
		log.SetAccounts(nil, refs[1], 0)
		log.Start()
		test(log, owners, func(owner int, records ...[]byte) { log.Ref.Send(&Write{From: refs[owner], Records: records}) }, &failed)
		synctest.Wait()
		log.end()
		log.Stop()
		for _, r := range refs {
			r.Stop()
		}
		system.Close()
	})
}

// finish ends a log and returns the error of Finish.
func finish(log *Log) error { return log.Finish(time.Second) }

// TestBatch_Limits: writes that together are above a limit of the journal go into several batches, in order.
func TestBatch_Limits(t *testing.T) {
	for name, records := range map[string][][]byte{
		"bytes":   {make([]byte, wal.BatchBytesMax/2), nil},
		"records": make([][]byte, wal.BatchRecordsMax/2+1),
	} {
		journal := &testJournal{}
		runLog(t, journal, func(log *Log, owners []*testOwner, write func(int, ...[]byte), _ *error) {
			write(0, records...)
			write(1, records...)
			if err := finish(log); err != nil {
				t.Fatal(err)
			}
			for i := range journal.batches {
				if journal.batches[i] > wal.BatchBytesMax || journal.records[i] > wal.BatchRecordsMax {
					t.Errorf("%s: a batch of %d records and %d bytes", name, journal.records[i], journal.batches[i])
				}
			}
			if len(journal.batches) != 2 || len(owners[0].results) != 1 || len(owners[1].results) != 1 {
				t.Errorf("%s: %d batches, results %v and %v", name, len(journal.batches), owners[0].results, owners[1].results)
			}
		})
	}
}

// TestW3_AcknowledgedWhenWritten: an owner hears of its write after the journal has written it, not before.
func TestW3_AcknowledgedWhenWritten(t *testing.T) {
	journal := &testJournal{}
	runLog(t, journal, func(_ *Log, owners []*testOwner, write func(int, ...[]byte), _ *error) {
		write(0, []byte("a"))
		synctest.Wait()
		journal.locked(func() {
			if !journal.writing || len(owners[0].results) != 0 {
				t.Errorf("writing %t, with the results %v", journal.writing, owners[0].results)
			}
		})
		time.Sleep(2 * time.Millisecond) //nolint:forbidigo // the bubble's
		if synctest.Wait(); owners[0].early || !slices.Equal(owners[0].results, []*engine.Error{nil}) {
			t.Errorf("results %v", owners[0].results)
		}
	})
}

// TestNotification_BeforeTheResult: a client that has its answer finds the account that its login has created.
func TestNotification_BeforeTheResult(t *testing.T) {
	journal := &testJournal{}
	runLog(t, journal, func(log *Log, _ []*testOwner, _ func(int, ...[]byte), _ *error) {
		notifications := []Notification{{To: log.actor.registry, Message: &created{}}}
		log.Ref.Send(&Write{From: log.actor.currencies[0], Records: [][]byte{{1}}, Notifications: notifications})
		if err := finish(log); err != nil || !slices.Equal(journal.received, []string{"created", "result"}) {
			t.Errorf("%v: %v", err, journal.received)
		}
	})
}

// TestSnapshot_WhileABatchIsWritten: a snapshot and a StateRequest wait for no batch, and are of the records before it.
func TestSnapshot_WhileABatchIsWritten(t *testing.T) {
	journal := &testJournal{}
	runLog(t, journal, func(log *Log, _ []*testOwner, write func(int, ...[]byte), _ *error) {
		write(0, make([][]byte, 5)...)
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // the bubble's
		write(1, []byte("b"))
		synctest.Wait()
		q := mailbox.NewRequest[struct{}, *StateSnapshot](struct{}{})
		log.Ref.Send(q)
		synctest.Wait()
		journal.locked(func() {
			state, err := q.Wait(0)
			if !journal.writing || err != nil || state.Sequence != 5 || !slices.Equal(journal.snapshots, []uint64{5}) {
				t.Errorf("writing %t: %+v, %v; snapshots %v, want one of record 5", journal.writing, state, err, journal.snapshots)
			}
		})
	})
}

// TestFinish_TakesASnapshot: Finish writes what waits, then a snapshot of it, and no second one of the same state.
func TestFinish_TakesASnapshot(t *testing.T) {
	journal := &testJournal{}
	runLog(t, journal, func(log *Log, owners []*testOwner, write func(int, ...[]byte), _ *error) {
		write(0, []byte("a"))
		for range 2 {
			if err := finish(log); err != nil || len(owners[0].results) != 1 || !slices.Equal(journal.snapshots, []uint64{1}) {
				t.Errorf("%v: results %v, snapshots %v, want one of record 1", err, owners[0].results, journal.snapshots)
			}
		}
	})
}

// TestW6_DiskError: after an error of the disk the node stops, and nothing is written again. A full disk and a write
// above the limit only reject the write.
func TestW6_DiskError(t *testing.T) {
	for _, c := range []struct {
		fails error
		code  engine.Code
		stops bool
	}{
		{errors.New("input/output error"), engine.CodeInternalError, true}, {wal.ErrNoSpace, engine.CodeReadOnly, false}, {wal.ErrLimit, engine.CodePayloadTooLarge, false},
	} {
		journal := &testJournal{fails: c.fails}
		runLog(t, journal, func(_ *Log, owners []*testOwner, write func(int, ...[]byte), failed *error) {
			for range 2 {
				write(0, []byte("a"))
				time.Sleep(2 * time.Millisecond) //nolint:forbidigo // the bubble's
				synctest.Wait()
			}
			results, batches := owners[0].results, 2
			if c.stops {
				batches = 1
			}
			if len(results) != 2 || results[0].Code != c.code || results[1] == nil || (*failed != nil) != c.stops || len(journal.batches) != batches {
				t.Errorf("%v: results %v, %d batches, the node's error %v", c.fails, results, len(journal.batches), *failed)
			}
		})
	}
}

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

// TestL1_SnapshotHasClosedDays: a day whose grant was dropped stays closed after a restart.
func TestL1_SnapshotHasClosedDays(t *testing.T) {
	var encoded bytes.Buffer
	err := (&StateSnapshot{Grants: []account.DayGrants{{ClosedUntil: 5}, {}}}).Write(&encoded)
	got, readErr := new(record.Decoder).Snapshot(&encoded, nil)
	if err != nil || readErr != nil || got.GrantsClosedUntil != 5 {
		t.Errorf("%+v, %v, %v", got, err, readErr)
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
