package actors

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/wal"
)

// Phases of a System, in order.
const (
	replaying int32 = iota
	serving
	stopping
)

// workersMin is the minimum number of worker goroutines. With two, a slow actor does not delay the others, even on a
// single processor.
const workersMin = 2

// closeTimeout limits two waits of Close: for the return of quota leases, and for the final snapshot.
const closeTimeout = 2 * time.Minute

// accountsAPI is the part of accounts.Accounts that System exposes.
type accountsAPI interface {
	account.Admitter
	account.Service
	account.Operator
}

// System is a node without its HTTP server: actors hold the state of all currencies and accounts, and a journal makes
// changes durable. All methods may be called concurrently, but not from the visit function of Export.
type System struct {
	accountsAPI
	accounts *accounts.Accounts

	config       Config
	log          *commitlog.Log
	actors       *mailbox.System
	kinds        kinds
	requestPools requestPools
	calls        callTracker // calls in progress that use the journal
	progress     progress

	phase atomic.Int32

	joining    context.Context // ends when Close begins
	cancelJoin context.CancelFunc
	joined     atomic.Bool // the journal can be read: it is not shared, or SharedJournal.Join has returned

	// These fields are set before the phase becomes serving, and constant afterwards.
	codes      []string // codes of the currencies, sorted
	board      *board   // newest snapshot of each currency
	currencies map[string]*mailbox.Ref
	readers    []*mailbox.Ref

	ready  chan struct{}
	done   chan struct{}
	replay sync.WaitGroup

	mu            sync.Mutex
	cause         error     // why the node has stopped; see Err
	failed        time.Time // when cause was set
	ended         bool      // done is closed
	actorsStarted bool

	closing  sync.Once
	closeErr error
}

// Admitter returns the account.Admitter of the system, for callers that admit every request. System.Admit goes through
// the embedded accountsAPI, which copies arguments and results and so doubles the stack of each connection's goroutine.
func (s *System) Admitter() account.Admitter { return s.accounts }

var (
	_ engine.Service   = (*System)(nil)
	_ engine.Ingester  = (*System)(nil)
	_ account.Admitter = (*System)(nil)
	_ account.Service  = (*System)(nil)
	_ account.Operator = (*System)(nil)
	_ engine.Health    = (*System)(nil)
)

// kinds are the kinds of actors outside package accounts.
type kinds struct{ reader, currency, journal mailbox.Kind }

func newActorSystem(limit, workers int, fail func(error)) *mailbox.System {
	return mailbox.NewSystem(mailbox.Config{Limit: limit, Workers: workers, Fail: fail, Failed: commitlog.ReadOnly})
}

// requestPools holds a pool of reusable requests for each query.
type requestPools struct {
	rankings     mailbox.RequestPool[engine.RankingQuery, *engine.Page[*engine.Rate]]
	rates        mailbox.RequestPool[engine.RatesQuery, *engine.Page[*engine.Rate]]
	histories    mailbox.RequestPool[engine.HistoryQuery, *engine.Page[engine.HistoryEntry]]
	currencies   mailbox.RequestPool[struct{}, *engine.Page[engine.CurrencyItem]]
	institutions mailbox.RequestPool[engine.InstitutionsQuery, *engine.Page[engine.InstitutionItem]]
	institution  mailbox.RequestPool[string, *engine.InstitutionDetail]
}

// Open opens the journal and starts a node. For a log in a directory, Open locks the directory, verifies every byte and
// truncates an incomplete write at the end. It returns wal.ErrLocked, *wal.DamageError, *wal.FormatError or an error of
// the disk.
//
// Open does not wait for the replay. Until the replay closes Ready, methods return CodeDataUnavailable. The caller must
// call Close.
func Open(c Config) (*System, error) {
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	journal := c.Journal
	if journal == nil {
		if journal, err = openLocal(c); err != nil {
			return nil, fmt.Errorf("open %s: %w", c.Dir, err)
		}
	}
	s := &System{config: c, ready: make(chan struct{}), done: make(chan struct{})}
	s.joining, s.cancelJoin = context.WithCancel(context.Background())
	if err := s.prepare(journal); err != nil {
		s.cancelJoin()
		return nil, errors.Join(err, journal.Close())
	}
	s.joined.Store(s.log.Shared == nil)
	s.actors = newActorSystem(c.MailboxMax, max(workersMin, runtime.GOMAXPROCS(0)), s.fail)
	s.kinds.reader.Name, s.kinds.currency.Name, s.kinds.journal.Name = "reader", "currency", "journal"
	s.kinds.journal.Reserve = accounts.EventsMax
	s.progress.began = c.Clock()
	s.replay.Add(1)
	go s.recover()
	return s, nil
}

// prepare creates s.accounts and s.log. It starts no actors.
func (s *System) prepare(journal commitlog.Journal) (err error) {
	c := &s.config
	if s.accounts, err = accounts.New(s.accountsConfig()); err != nil {
		return err
	}
	s.accountsAPI = s.accounts
	s.log, err = commitlog.New(commitlog.Config{
		Journal: journal, Clock: c.Clock, Monotonic: c.Monotonic, Random: c.Random, Fail: s.fail,
		Logger: c.Logger, SnapshotRecords: c.SnapshotRecords, SnapshotBytes: c.SnapshotBytes,
	})
	if err != nil || s.log.Shared == nil {
		return err
	}
	s.accounts.Node, s.accounts.Majority = s.log.Shared.Node(), commitlog.Majority{Shared: s.log.Shared}
	s.accountsAPI = &leaderAccounts{s.accounts, s}
	return nil
}

// Ready returns a channel that is closed when the replay is done and the node can serve requests. After a failed replay
// it is never closed, so wait for Done as well.
func (s *System) Ready() <-chan struct{} { return s.ready }

// Done returns a channel that is closed at the end of Close, or when an error (Err) stops the node.
func (s *System) Done() <-chan struct{} { return s.done }

// Err returns the error that stopped the node, or nil. A stopped node serves reads but rejects changes; restart the
// process.
func (s *System) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}

// fail stops the node: it closes Done and makes all actors reject changes. Only the first call has an effect. fail does
// not block, so actors may call it.
func (s *System) fail(cause error) {
	s.mu.Lock()
	if s.cause != nil {
		s.mu.Unlock()
		return
	}
	s.cause, s.failed = cause, s.config.Clock()
	s.end()
	started := s.actorsStarted
	s.mu.Unlock()
	if s.joined.Load() { // otherwise the caller of Open reports the cause
		s.config.Logger.Error("node stopped: it rejects all changes, restart it", "cause", cause.Error())
	}
	if !started {
		return
	}
	for _, kind := range []*mailbox.Kind{&s.kinds.currency, &s.accounts.Kinds.Registrar, &s.accounts.Kinds.Shard, &s.kinds.journal} {
		for _, r := range kind.Refs() {
			r.Send(&mailbox.NodeFailed{Err: commitlog.ReadOnly(cause)})
		}
	}
}

// end closes done if it is not closed yet. The caller must hold s.mu.
func (s *System) end() {
	if !s.ended {
		s.ended = true
		close(s.done)
	}
}

// Close rejects new calls, waits for calls in progress and takes a final snapshot if there are newer records. Then it
// stops all actors and goroutines, and closes the journal. A second Close waits for the first and returns its error.
func (s *System) Close() error {
	s.closing.Do(func() { s.closeErr = s.close() })
	return s.closeErr
}

func (s *System) close() error {
	s.phase.Store(stopping)
	s.cancelJoin()
	s.replay.Wait()
	if s.actorsStarted {
		s.log.NodeStopping()
	}
	s.calls.drain()
	if s.actorsStarted {
		s.stopActors()
	}
	s.actors.Close()
	err := s.log.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
	return err
}

// stopActors returns the quota leases, takes the final snapshot and stops the actors.
func (s *System) stopActors() {
	s.accounts.ReturnLeases(closeTimeout)
	if err := s.log.Finish(closeTimeout); err != nil {
		s.config.Logger.Error("closed without the last snapshot", "cause", err.Error())
	}
	for _, reader := range s.readers {
		reader.Stop()
	}
	for _, code := range s.codes {
		s.currencies[code].Stop()
	}
	s.accounts.Stop()
	s.log.Stop()
}

// callTracker counts the calls in progress, for which Close waits. It is not a sync.RWMutex: in a testing/synctest
// bubble the clock stands still while a goroutine waits for a mutex.
type callTracker struct {
	mu     sync.Mutex
	closed bool
	inside sync.WaitGroup
}

// enter counts a call, or returns false after drain.
func (t *callTracker) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.inside.Add(1)
	}
	return !t.closed
}

func (t *callTracker) leave() { t.inside.Done() }

// drain makes enter return false, and waits for the calls in progress.
func (t *callTracker) drain() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.inside.Wait()
}

// ErrUnknownRecord means that a newer version of the program wrote the record or snapshot. The files were not changed.
var ErrUnknownRecord = record.ErrUnknown

// errNoRates is a shared value: do not modify it.
var errNoRates = &engine.Error{Code: engine.CodeDataUnavailable, Message: "no rates have been published yet", RetryAfter: retryNoRates}

// Values of Error.RetryAfter while the node cannot answer reads.
const (
	retryNoRates   = 60 * time.Second
	retryReplayMin = time.Second
	retryReplayMax = 30 * time.Second
	retryReplay    = 2 * time.Second // while the speed of the replay is unknown
)

type (
	// Journal stores records durably and in order. The default is a log in a directory.
	Journal = commitlog.Journal
	// Shared is a Journal written by several nodes. All nodes get the same records in the same order.
	Shared = commitlog.SharedJournal
	// ClusterHealth is a node's view of its cluster.
	ClusterHealth = commitlog.ClusterHealth
)

// Errors of Shared.Ask.
var (
	ErrNotLeader      = commitlog.ErrNotLeader
	ErrOutcomeUnknown = commitlog.ErrOutcomeUnknown
)

// ErrPosition means that the newest record of the journal has an unexpected number (sequence), because another process
// has written to the journal.
var ErrPosition = commitlog.ErrPosition

// localJournal is a Journal of this node only, in files of a directory.
type localJournal struct{ *wal.Log }

func openLocal(c Config) (commitlog.Journal, error) {
	c.Log.Clock, c.Log.Logger = c.Clock, c.Logger
	log, err := wal.Open(c.Dir, c.Log)
	if err != nil {
		return nil, err
	}
	return localJournal{log}, nil
}

// Append implements Journal.
func (l localJournal) Append(expected uint64, records [][]byte) (uint64, error) {
	if last := l.Last(); last != expected {
		return 0, fmt.Errorf("append after record %d: %w: the last record is %d", expected, commitlog.ErrPosition, last)
	}
	return l.Log.Append(records)
}
