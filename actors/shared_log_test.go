package actors

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

// sharedLog is a log of several nodes, in memory: one order of records, which the leader writes, and nodes that hear of
// them each in its own time. Nodes that are cut off hear nothing, and what they offer waits.
type sharedLog struct {
	mu      sync.Mutex
	changed sync.Cond
	records [][]byte
	nodes   []*sharedNode
	leader  *sharedNode // writes; nil = there is none
	term    uint64      // of the leader
	after   uint64      // number of records of earlier terms
	offer   []byte      // of the leader, not decided
	stuck   bool        // no offer is decided
	lax     bool        // the planted bug: every node leads
	random  *rand.Rand
}

func newSharedLog(seed uint64) *sharedLog {
	l := &sharedLog{random: rand.New(rand.NewPCG(seed, seed))}
	l.changed.L = &l.mu
	return l
}

// sharedNode is what one node sees of a shared log: the Shared of one process after another.
type sharedNode struct {
	log   *sharedLog
	id    engine.NodeID
	copy  *memoryJournal       // what is on the node's disk
	off   bool                 // cut off
	full  bool                 // its disk is
	held  bool                 // it receives nothing, although it is not cut off
	deaf  func(event any) bool // the planted bug: events that are hidden from it
	since time.Time
	open  *sharedJournal

	deliver func(sequence uint64, record []byte) // to the open journal's follower
	lost    func(term uint64)
}

var errSharedClosed = errors.New("the journal is closed")

// sharedJournal is the Shared of one process.
type sharedJournal struct {
	*memoryJournal
	node   *sharedNode
	serve  func([]byte) []byte // answers other nodes
	closed bool
}

// join adds a node with an empty copy, or with that of another node as it is.
func (l *sharedLog) join(id engine.NodeID, disk *memoryJournal) *sharedNode {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := &sharedNode{log: l, id: id, copy: disk, since: noon}
	l.nodes = append(l.nodes, n)
	if l.leader == nil {
		l.lead(n)
	}
	return n
}

// journal is the node's after a start.
func (n *sharedNode) journal() *sharedJournal {
	n.log.mu.Lock()
	defer n.log.mu.Unlock()
	n.open = &sharedJournal{memoryJournal: n.copy, node: n}
	if n.log.leader == n || n.log.leader == nil {
		n.log.lead(n)
	}
	return n.open
}

// lead begins a term. The offer of the leader before may be kept. The caller holds the lock.
func (l *sharedLog) lead(n *sharedNode) {
	if l.offer != nil && n != nil && l.random.IntN(2) == 0 {
		l.records = append(l.records, l.offer)
	}
	if l.leader != nil && l.leader.lost != nil {
		l.leader.lost(l.term)
	}
	l.leader, l.offer, l.term, l.after = n, nil, l.term+1, uint64(len(l.records))
}

// elect makes a node the leader.
func (l *sharedLog) elect(n *sharedNode) { l.with(func() { l.lead(n) }) }

// with changes the log, decides the offer of a leader with a majority, and wakes all that wait.
func (l *sharedLog) with(change func()) {
	l.mu.Lock()
	change()
	if l.offer != nil && !l.stuck && l.leader.majority() {
		l.records, l.offer = append(l.records, l.offer), nil
	}
	l.mu.Unlock()
	l.changed.Broadcast()
}

func (l *sharedLog) cut(n *sharedNode, off bool) {
	l.with(func() { n.off, n.since = off, n.since.Add(time.Second) })
}

// majority reports that a node reaches more than half of them all. The caller holds the lock.
func (n *sharedNode) majority() bool {
	reached := 0
	for _, other := range n.log.nodes {
		if !other.off && other.open != nil && !other.open.closed {
			reached++
		}
	}
	return !n.off && 2*reached > len(n.log.nodes)
}

func (j *sharedJournal) Node() engine.NodeID { return j.node.id }

// Join implements commitlog.SharedJournal.
func (*sharedJournal) Join(context.Context) ([]byte, error) { return bytes.Repeat([]byte{7}, 32), nil }

// Leadership implements commitlog.SharedJournal.
func (j *sharedJournal) Leadership() (term, after uint64) {
	l := j.node.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leader == j.node && l.leader.open == j {
		return l.term, l.after
	} else if l.lax {
		return l.term, 0
	}
	return 0, 0
}

// Serve implements commitlog.SharedJournal.
func (j *sharedJournal) Serve(answer func([]byte) []byte, _ func(io.Writer) error) {
	j.node.log.with(func() { j.serve = answer })
}

// Ask implements commitlog.SharedJournal: the answer comes unless one of the two nodes is cut off meanwhile.
func (j *sharedJournal) Ask(ctx context.Context, request []byte) ([]byte, error) {
	l := j.node.log
	defer context.AfterFunc(ctx, func() { l.with(func() {}) })()
	l.mu.Lock()
	defer l.mu.Unlock()
	leader := l.leader
	if leader == nil || leader == j.node || leader.off || j.node.off || leader.open.serve == nil {
		return nil, commitlog.ErrNotLeader
	}
	serve, answered := leader.open.serve, false
	var answer []byte
	go func() {
		a := serve(request)
		l.with(func() { answer, answered = a, true })
	}()
	for !answered {
		if ctx.Err() != nil || leader.off || j.node.off || l.leader != leader || leader.open.closed {
			return nil, commitlog.ErrOutcomeUnknown
		}
		l.changed.Wait()
	}
	return answer, nil
}

func (j *sharedJournal) ClusterHealth() commitlog.ClusterHealth {
	j.node.log.mu.Lock()
	defer j.node.log.mu.Unlock()
	return commitlog.ClusterHealth{Majority: j.node.majority(), Since: j.node.since, Leader: "one", DiskFull: j.node.full}
}

func (j *sharedJournal) CheckSpace(int64) (err error) {
	j.node.log.with(func() {
		if j.node.full {
			err = wal.ErrNoSpace
		}
	})
	return err
}

// Append implements commitlog.SharedJournal. The follower may be first to know.
func (j *sharedJournal) Append(term uint64, records [][]byte) (uint64, error) {
	if len(records) != 1 {
		return 0, fmt.Errorf("%d records, want one bundle", len(records))
	}
	if len(records[0]) > commitlog.BundleBytesMax {
		return 0, fmt.Errorf("a bundle of %d bytes", len(records[0]))
	}
	l := j.node.log
	var err error
	l.with(func() {
		switch {
		case j.closed:
			err = errSharedClosed
		case j.node.full:
			err = wal.ErrNoSpace
		case l.lax:
			l.records = append(l.records, bytes.Clone(records[0]))
		case l.leader != j.node || l.term != term:
			err = commitlog.ErrNotLeader
		default:
			l.offer = bytes.Clone(records[0])
		}
	})
	runtime.Gosched()
	return 0, err
}

func (j *sharedJournal) Follow(ctx context.Context, deliver func(uint64, []byte), lost func(uint64)) error {
	defer context.AfterFunc(ctx, func() { j.node.log.with(func() {}) })()
	j.node.log.with(func() { j.node.deliver, j.node.lost = deliver, lost })
	for {
		sequence, record := j.next(ctx)
		if record == nil {
			return nil
		}
		deliver(sequence, record)
		for i := range record { // it is valid only during the call
			record[i] = 0xff
		}
	}
}

// next waits for the next record and keeps it, nil when the context ends.
func (j *sharedJournal) next(ctx context.Context) (uint64, []byte) {
	l := j.node.log
	l.mu.Lock()
	defer l.mu.Unlock()
	for ctx.Err() == nil {
		last := j.Last()
		if !j.node.off && !j.node.held && !j.node.full && last < uint64(len(l.records)) {
			record := l.records[last]
			if _, err := j.memoryJournal.Append(last, [][]byte{record}); err != nil {
				panic(err)
			}
			return last + 1, j.node.hears(record)
		}
		l.changed.Wait()
	}
	return 0, nil
}

// hears returns a record as the node receives it.
func (n *sharedNode) hears(data []byte) []byte {
	decoder := new(record.Decoder)
	b, err := decoder.Bundle(data)
	if err != nil || n.deaf == nil {
		return bytes.Clone(data)
	}
	heard := &record.Bundle{Node: b.Node, Token: b.Token}
	for _, r := range b.Records {
		if event, err := decoder.Event(r); err != nil || !n.deaf(event) {
			heard.Records = append(heard.Records, r)
		}
	}
	if data, err = record.Encode(heard); err != nil {
		panic(err)
	}
	return data
}

func (j *sharedJournal) Close() error {
	l := j.node.log
	l.with(func() {
		j.closed = true
		if l.leader != j.node {
			return
		}
		l.lead(nil)
		for _, n := range l.nodes {
			if l.leader == nil && n.open != nil && !n.open.closed && !n.off {
				l.lead(n)
			}
		}
	})
	return nil
}

// lateCopy is the state of a node, as the disk of another one: what a machine that joins late is given.
func lateCopy(t panicStops, s *System) *memoryJournal {
	t.Helper()
	state, err := s.snapshot()
	must(t, err)
	var data bytes.Buffer
	must(t, state.Write(&data))
	return &memoryJournal{dropped: state.Sequence, sequence: state.Sequence, snapshot: data.Bytes()}
}

type testCluster struct {
	t      panicStops
	seed   uint64
	log    *sharedLog
	config Config
	clock  *testClock
	mail   *fakeMailer
	nodes  []*clusterNode
}

type clusterNode struct {
	*System
	fleet     *testCluster
	node      *sharedNode
	monotonic *testMonotonic
}

func startCluster(t panicStops, nodes int, seed uint64, c Config) *testCluster {
	t.Helper()
	f := &testCluster{t: t, seed: seed, log: newSharedLog(seed), config: c, clock: &testClock{Now: noon}, mail: newFakeMailer()}
	for range nodes {
		f.join(&memoryJournal{})
	}
	return f
}

func (f *testCluster) join(disk *memoryJournal) *clusterNode {
	f.t.Helper()
	id := engine.NodeID(len(f.nodes) + 1)
	s := &clusterNode{fleet: f, node: f.log.join(id, disk), monotonic: &testMonotonic{now: time.Duration(id) * time.Hour}}
	f.nodes = append(f.nodes, s)
	s.boot()
	return s
}

func (s *clusterNode) boot() {
	s.fleet.t.Helper()
	c := s.fleet.config
	c.Clock, c.Monotonic, c.Mailer, c.Journal = s.fleet.clock.Read, s.monotonic.tick, s.fleet.mail, s.node.journal()
	if c.Catalogue == nil {
		c.Catalogue = testCatalogue()
	}
	system, err := Open(c)
	must(s.fleet.t, err)
	s.System = system
	awaitReady(s.fleet.t, system)
}

func (f *testCluster) pass(d time.Duration) {
	f.clock.advance(d)
	for _, s := range f.nodes {
		s.monotonic.advance(d)
	}
}

func (f *testCluster) stop() {
	f.t.Helper()
	for _, s := range f.nodes {
		must(f.t, s.Close())
	}
}

// settled waits until every node has applied the whole log and nothing more comes, and gives the end.
func (f *testCluster) settled() uint64 {
	f.t.Helper()
	for {
		end := f.log.end()
		even := true
		for _, s := range f.nodes {
			if err := s.Err(); err != nil {
				f.t.Fatalf("node %d stopped: %v", s.node.id, err)
			}
			even = even && s.Sequence() == end && s.log.AwaitApplied(context.Background(), end)
		}
		if even && f.log.end() == end {
			return end
		}
		runtime.Gosched()
	}
}

func (l *sharedLog) end() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return uint64(len(l.records))
}
