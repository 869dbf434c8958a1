package commitlog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/wal"
)

// Config configures a Log.
type Config struct {
	Journal   Journal
	Clock     func() time.Time
	Monotonic func() time.Duration // monotonic clock; nil = use the monotonic reading of Clock's times
	Random    io.Reader            // used only with a SharedJournal
	Fail      func(error)          // stops the node
	Logger    *slog.Logger

	// A snapshot is due after this many records or bytes since the previous snapshot; see snapshotPlan.due.
	SnapshotRecords int
	SnapshotBytes   int64
}

// Position describes a journal after its replay.
type Position struct {
	Last, Snapshot uint64 // sequences of the newest record and the newest snapshot
	Records        int    // number of records after the snapshot
	Bytes          int64  // size of these records
}

// Log connects a Journal to the Actor and to the goroutines that write to disk. Call its methods in this order: New,
// Spawn, AddCurrency and SetAccounts, Start, NodeStopping, Finish, Stop, Close. Without Start only Close is needed.
type Log struct {
	Config
	Health *Health
	Shared SharedJournal // the Journal if several nodes write to it, else nil
	Ref    *mailbox.Ref  // address of the Actor; set by Spawn

	actor     *Actor
	writer    sync.WaitGroup // the goroutine that appends or drops records
	snapshots sync.WaitGroup // the goroutine that writes a snapshot
	watching  sync.WaitGroup // the goroutines of watch and follow
	ending    context.Context
	end       context.CancelFunc // ends watch and follow
	window    *window            // the replication window; nil if Shared is nil
	token     atomic.Uint64      // identifies the newest proposed bundle of this process
}

// New returns a Log. It starts no goroutines.
func New(c Config) (*Log, error) {
	l := &Log{Config: c, Health: newHealth(c.Clock, c.Monotonic)}
	l.ending, l.end = context.WithCancel(context.Background())
	l.Shared, _ = c.Journal.(SharedJournal)
	if l.Shared == nil {
		return l, nil
	}
	l.Health.shared = true
	// Tokens count from a random number, so that they differ from those of an earlier process of this node.
	var token [8]byte
	if _, err := io.ReadFull(c.Random, token[:]); err != nil {
		return nil, fmt.Errorf("read random bytes: %w", err)
	}
	l.token.Store(binary.LittleEndian.Uint64(token[:]))
	return l, nil
}

// Spawn starts the Actor. p describes the journal after its replay.
func (l *Log) Spawn(actors *mailbox.System, kind *mailbox.Kind, p Position) (err error) {
	l.newActor(p)
	l.Ref, err = actors.Spawn("journal", kind, l.actor)
	return err
}

func (l *Log) newActor(p Position) {
	l.actor = &Actor{log: l, last: p.Last, snapshot: snapshotPlan{
		recordsMax: l.SnapshotRecords, bytesMax: l.SnapshotBytes, last: p.Snapshot,
		records: p.Records, bytes: p.Bytes, uncoveredRecords: p.Records, uncoveredBytes: p.Bytes,
	}}
	if l.Shared != nil {
		l.actor.replication = &replication{currencies: map[string]*mailbox.Ref{}}
		l.window = &window{removed: make(chan struct{}), newest: p.Last}
	}
	l.Health.Sequence.Store(p.Last)
}

// AddCurrency adds the actor of a currency. It must be called before Start.
func (l *Log) AddCurrency(code string, owner *mailbox.Ref) {
	l.actor.currencies = append(l.actor.currencies, owner)
	if l.actor.replication != nil {
		l.actor.replication.currencies[code] = owner
	}
}

// SetAccounts sets the shards, the registrar and the approximate encoded size of all accounts. Call it before Start.
func (l *Log) SetAccounts(shards []*mailbox.Ref, registry *mailbox.Ref, bytes int64) {
	l.actor.shards, l.actor.registry, l.actor.snapshot.accountBytes = shards, registry, bytes
}

// Start starts the goroutines of the log.
func (l *Log) Start() {
	l.watching.Go(l.watch)
	if l.Shared != nil {
		f := &follower{log: l, shards: len(l.actor.shards), decoder: new(record.Decoder)}
		l.watching.Go(f.follow)
	}
}

// AwaitApplied waits until this node has applied all records of a SharedJournal up to a sequence. It returns false if
// ctx ends first or the node cannot apply changes.
func (l *Log) AwaitApplied(ctx context.Context, sequence uint64) bool {
	ticker := time.NewTicker(CheckInterval)
	defer ticker.Stop()
	for {
		applied, _, removed := l.window.state()
		if applied >= sequence {
			return true
		}
		select {
		case <-removed:
		case <-ticker.C:
			if l.WriteProblem() != nil {
				return false
			}
		case <-ctx.Done():
			return false
		}
	}
}

// WriteProblem returns why this node accepts no change now, if it is in a cluster: ErrNoMajority, wal.ErrNoSpace or
// nil. A node without space could not apply a change of the leader.
func (l *Log) WriteProblem() error {
	problem := Majority{l.Shared}.writeProblem()
	if problem == nil && l.Shared != nil && l.Health.full() {
		problem = wal.ErrNoSpace
	}
	return problem
}

// Decides reports whether this node may decide changes. Without a cluster it always may. In a cluster it must lead in a
// term, and its owners must have applied all records of earlier terms; in the same term only this node decides. An
// owner calls Decides before it makes records, and sends them with the term.
func (l *Log) Decides() (term uint64, ok bool) {
	if l.Shared == nil {
		return 0, true
	}
	term, after := l.Shared.Leadership()
	applied, _, _ := l.window.state()
	return term, term != 0 && applied >= after
}

// NodeStopping announces the node's stop. From then on the Actor rejects all writes while the cluster has no majority,
// instead of waiting for one.
func (l *Log) NodeStopping() {
	if l.Shared != nil {
		l.Ref.Send(&nodeStopping{})
	}
}

// Finish waits until all writes are durable and a final snapshot was tried. Then it stops the follower.
func (l *Log) Finish(timeout time.Duration) error {
	request := mailbox.NewRequest[struct{}, struct{}](struct{}{})
	l.Ref.Send(request)
	_, err := request.Wait(timeout)
	l.end()
	l.watching.Wait()
	return err
}

// Stop stops the Actor and the goroutines.
func (l *Log) Stop() {
	l.Ref.Stop()
	l.writer.Wait()
	l.snapshots.Wait()
}

// Close closes the journal.
func (l *Log) Close() error {
	if err := l.Journal.Close(); err != nil {
		return fmt.Errorf("close journal: %w", err)
	}
	return nil
}

// CheckInterval is the period of the checks of the disk and of the cluster.
const CheckInterval = 250 * time.Millisecond

// spaceMargin is the free space at which Health ends the fault of a full disk.
const spaceMargin = 64 << 10

// write starts a job that waits for the disk; an actor must not block. The Actor starts a job only after the result of
// the previous one.
func (l *Log) write(job func()) { l.writer.Go(job) }

// startSnapshot starts writing a snapshot. Commits continue.
func (l *Log) startSnapshot(s *StateSnapshot) {
	l.snapshots.Go(func() { l.Ref.Send(l.writeSnapshot(s)) })
}

// watch checks the disk. In a cluster it also repeatedly sends writesBlocked to the Actor while changes cannot become
// durable.
func (l *Log) watch() {
	ticker := time.NewTicker(CheckInterval)
	defer ticker.Stop()
	for {
		select {
		case <-l.ending.Done():
			return
		case <-ticker.C:
		}
		full := false
		if l.Shared != nil {
			health := l.Shared.ClusterHealth()
			l.Health.noteCopy(health)
			full = health.DiskFull
		}
		if !full {
			l.checkSpace()
		}
		if (Majority{l.Shared}).writeProblem() != nil {
			l.Ref.Send(&writesBlocked{})
		}
	}
}

// appendResult tells the Actor the result of Log.append.
type appendResult struct {
	mailbox.OneWay
	last uint64
	err  error
}

// append appends a batch and sends appendResult to the Actor. It is a job of the writer.
func (l *Log) append(expected uint64, records [][]byte) {
	last, err := l.Journal.Append(expected, records)
	if errors.Is(err, wal.ErrNoSpace) {
		l.Health.rejectedBytes.Store(int64(BatchBytes(records)))
		l.Health.diskFull.Begin(l.Health.Clock())
	}
	l.Ref.Send(&appendResult{last: last, err: err})
}

// dropResult tells the Actor the result of Log.drop.
type dropResult struct {
	mailbox.OneWay
	err error
}

// drop deletes old records and sends dropResult to the Actor. It is a job of the writer.
func (l *Log) drop(before uint64) { l.Ref.Send(&dropResult{err: l.Journal.DropBefore(before)}) }

// spaceChecker is a Journal that can check whether the disk has space for a write.
type spaceChecker interface{ CheckSpace(bytes int64) error }

// checkSpace updates Health. When the disk has space again, it makes the Actor retry a failed snapshot.
func (l *Log) checkSpace() {
	journal, ok := l.Journal.(spaceChecker)
	if !ok {
		return
	}
	now, rejected := l.Health.Clock(), l.Health.rejectedBytes.Load()
	switch {
	case errors.Is(journal.CheckSpace(0), wal.ErrNoSpace):
		l.Health.diskFull.Begin(now)
	case journal.CheckSpace(max(spaceMargin, rejected)) == nil && l.Health.rejectedBytes.CompareAndSwap(rejected, 0):
		l.Health.diskFull.Recover(now)
	}
	if bytes := l.Health.retryBytes.Load(); bytes > 0 && journal.CheckSpace(bytes) == nil {
		l.Health.retryBytes.Store(0)
		l.Ref.Send(&retrySnapshot{})
	}
}
