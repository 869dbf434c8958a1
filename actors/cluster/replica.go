package cluster

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/tasard/tasard/wal"
)

const (
	tickInterval   = 50 * time.Millisecond // raft counts time in ticks
	electionTicks  = 20                    // an election begins after one to two times as many ticks without a leader
	heartbeatTicks = 4                     // ticks between two heartbeats of the leader
	inboxMax       = 4096                  // messages of other nodes that wait for raft; more are dropped
	campaignsMax   = 5                     // attempts to become the leader after the connection to the leader broke
	// campaignStagger is how long a node waits for each voter with a smaller ID before it campaigns. If two nodes
	// campaign at the same time, neither may win.
	campaignStagger  = 60 * time.Millisecond
	campaignInterval = 100 * time.Millisecond
	// A running node that receives only unusable snapshots for this time stops. At its next start it copies another
	// node's state.
	unusableSnapshotsMax = 10 * time.Second
)

// replica is this node's raft instance. One goroutine (run) owns raw and store. Other goroutines send it functions to
// run (do).
type replica struct {
	c     *Cluster
	id    uint64
	raw   *raft.RawNode
	store *store
	calls chan call        // functions for run; see do
	inbox chan *pb.Message // messages of other nodes

	// Only run changes these four. The values behind the pointers do not change.
	applied atomic.Uint64 // index of the newest entry that this node has applied
	state   atomic.Pointer[replicated]
	conf    atomic.Pointer[pb.ConfState]
	base    atomic.Pointer[replicated] // state before the oldest entry; the local log must have its records

	leader atomic.Uint64 // raft ID of the leader, 0 = unknown
	leads  atomic.Bool
	// leadership is nil unless this node leads and has applied an entry of its term.
	leadership    atomic.Pointer[leadership]
	transferUntil atomic.Int64 // until this time, in Unix nanoseconds, this node decides nothing, because it hands over
	older         atomic.Bool  // this directory lacks entries that this node has confirmed, so it must not vote
	// readIndex is the index up to which entries must be applied to be up to date; 0 = unknown.
	readIndex atomic.Uint64
	diskFull  atomic.Bool
	began     time.Time     // requestReadIndex sends times relative to this one
	wake      chan struct{} // wakes Follow: there are committed entries, or err is set

	mu               sync.Mutex        // guards the fields below
	durable          map[uint64]uint64 // by raft ID: index of the newest committed entry known to be on the node's disk
	ledSince         time.Time         // when this node became the leader
	readIndexAskedAt time.Time         // time of the newest requestReadIndex that a majority has answered
	offer            *replicated       // state of an unusable snapshot of the leader (acceptSnapshot), or nil
	offeredAt        time.Time         // when the first unusable snapshot came
	offeredTo        uint64            // applied at that time
	err              error             // why this node must stop
}

func newReplica(c *Cluster, s *store, id uint64) (*replica, error) {
	r := &replica{c: c, id: id, store: s, calls: make(chan call), inbox: make(chan *pb.Message, inboxMax),
		wake: make(chan struct{}, 1), began: c.config.Clock(), durable: map[uint64]uint64{}}
	r.state.Store(&replicated{Nodes: map[uint64]nodeName{}})
	r.base.Store(r.state.Load())
	r.conf.Store(&pb.ConfState{})
	return r, r.load()
}

// load starts raft with the content of the store.
func (r *replica) load() error {
	snapshot, err := r.store.Snapshot()
	if err == nil && !raft.IsEmptySnap(snapshot) {
		err = r.applySnapshot(snapshot)
	}
	if err != nil {
		return err
	}
	r.raw, err = raft.NewRawNode(&raft.Config{
		ID: r.id, ElectionTick: electionTicks, HeartbeatTick: heartbeatTicks, Storage: &storageView{r.store, r}, Applied: r.applied.Load(),
		MaxSizePerMsg: 1 << 20, MaxInflightMsgs: 64, CheckQuorum: true, PreVote: true, DisableProposalForwarding: true,
		Logger: &raft.DefaultLogger{Logger: slog.NewLogLogger(r.c.logger.Handler(), slog.LevelDebug)},
	})
	return err
}

// leadership is a term in which this node leads.
type leadership struct {
	term  uint64
	after uint64 // sequence of the newest record of earlier terms
}

// storageView is the storage that raft sees. A snapshot for another node has the present members, because raft accepts
// only a snapshot that names the receiver. So it is of the newest applied entry, not of the newest checkpoint.
type storageView struct {
	*store
	replica *replica
}

// Snapshot implements raft.Storage.
func (v *storageView) Snapshot() (*pb.Snapshot, error) {
	r := v.replica
	index := r.applied.Load()
	term, err := v.Term(index)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(r.state.Load())
	if err != nil {
		return nil, err
	}
	return &pb.Snapshot{Data: data, Metadata: &pb.SnapshotMetadata{Index: &index, Term: &term, ConfState: r.conf.Load()}}, nil
}

var errOlder = errors.New("this directory is older than what this node has confirmed; start the node with an empty directory")

// noteDurable stores which entries the nodes have. If this node lacks an entry that it has confirmed, its directory was
// restored from a copy. raft does not notice that after a change of the leader. Acknowledged records could be lost if
// the node voted, so noteDurable sets older.
func (r *replica) noteDurable(indexes map[uint64]uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, index := range indexes {
		r.durable[id] = max(r.durable[id], index)
	}
	if last, err := r.store.LastIndex(); err == nil && r.durable[r.id] > last {
		r.older.Store(true)
	}
}

// observeFollowers calls noteDurable with the entries that the followers of this leader have.
func (r *replica) observeFollowers() {
	if !r.leads.Load() {
		return
	}
	indexes := map[uint64]uint64{}
	r.do(func() {
		status := r.raw.Status()
		for id, p := range status.Progress {
			indexes[id] = min(p.Match, status.HardState.GetCommit())
		}
	})
	r.noteDurable(indexes)
}

// durableIndexes returns a copy of durable for the nodes that are in the cluster.
func (r *replica) durableIndexes() map[uint64]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	nodes := r.state.Load().Nodes
	maps.DeleteFunc(r.durable, func(id, _ uint64) bool { return nodes[id].Name == "" && len(nodes) > 0 })
	return maps.Clone(r.durable)
}

// run owns raft until the Cluster is closed or an error makes the node stop.
func (r *replica) run() {
	defer func() {
		if p := recover(); p != nil { // raft panics if its log lacks entries that this node has confirmed
			r.stop(fmt.Errorf("raft stopped: %v: %w", p, errOlder))
		}
	}()
	ticker := time.NewTicker(tickInterval)
	defer ticker.Stop()
	for {
		select {
		case <-r.c.ctx.Done():
			return
		case <-ticker.C:
			r.raw.Tick()
		case m := <-r.inbox:
			_ = r.raw.Step(m) // an error means that raft ignores the message
			for more := true; more; {
				select {
				case m := <-r.inbox:
					_ = r.raw.Step(m)
				default:
					more = false
				}
			}
		case call := <-r.calls:
			call.run()
			call.done <- true
		}
		for r.raw.HasReady() {
			if err := r.handle(r.raw.Ready()); err != nil {
				r.stop(err)
				return
			}
		}
	}
}

// call is a function for the goroutine that owns raft.
type call struct {
	run  func()
	done chan bool // whether it ran
}

// do runs f on the goroutine that owns raft. It returns false if that goroutine has stopped or is waiting for the disk.
func (r *replica) do(f func()) bool {
	done := make(chan bool, 1)
	select {
	case r.calls <- call{f, done}:
	case <-r.c.ctx.Done():
		return false
	case <-r.c.replicaDone:
		return false
	}
	select {
	case ran := <-done:
		return ran
	case <-r.c.replicaDone:
	}
	select {
	case ran := <-done: // it may have run before the end
		return ran
	default:
		return false
	}
}

// stop makes Follow return an error, the first one, and ends the leadership.
func (r *replica) stop(err error) {
	if r.c.ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	r.err = cmp.Or(r.err, err)
	r.mu.Unlock()
	r.leader.Store(0)
	r.setLeads(false)
	r.notify()
}

func (r *replica) notify() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// handle writes raft's decisions to disk, then sends its messages and applies the committed entries.
func (r *replica) handle(rd raft.Ready) error {
	if err := r.save(&rd); err != nil {
		return err
	}
	if !raft.IsEmptySnap(rd.Snapshot) {
		if err := r.applySnapshot(rd.Snapshot); err != nil {
			return err
		}
	}
	if rd.SoftState != nil {
		r.leader.Store(rd.SoftState.Lead)
		r.setLeads(rd.SoftState.RaftState == raft.StateLeader)
		r.c.logger.Debug("raft", "leader", rd.SoftState.Lead, "state", rd.SoftState.RaftState.String())
	}
	for _, m := range rd.Messages {
		r.send(m)
	}
	for _, state := range rd.ReadStates {
		r.confirmed(state)
	}
	for _, e := range rd.CommittedEntries {
		if err := r.apply(e); err != nil {
			return err
		}
	}
	if len(rd.CommittedEntries) > 0 {
		r.notify()
	}
	r.raw.Advance(rd)
	return r.compact()
}

// save retries while the disk is full. Meanwhile this node sends no message, so the others elect another leader.
func (r *replica) save(rd *raft.Ready) error {
	for {
		err := r.store.save(rd)
		r.diskFull.Store(errors.Is(err, wal.ErrNoSpace))
		if !errors.Is(err, wal.ErrNoSpace) {
			return err
		}
		if err := r.pause(spaceRetryInterval); err != nil {
			return err
		}
	}
}

// pause waits for d. Meanwhile it rejects calls, because their callers must not wait for a disk.
func (r *replica) pause(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return nil
		case call := <-r.calls:
			call.done <- false
		case <-r.c.ctx.Done():
			return r.c.ctx.Err()
		}
	}
}

func (r *replica) setLeads(leads bool) {
	r.mu.Lock()
	if leads && !r.leads.Load() {
		r.ledSince = r.c.config.Clock()
	}
	r.leads.Store(leads)
	r.mu.Unlock()
	if !leads {
		r.endLeadership()
	}
}

// endLeadership ends the term in which this node decides. The outcome of a record that it has proposed is unknown.
func (r *replica) endLeadership() {
	if l, lost := r.leadership.Swap(nil), r.c.lost.Load(); l != nil && lost != nil {
		(*lost)(l.term)
	}
}

// lead begins the term of an entry if this node leads in it. The first entry of the term is empty, and everything
// before it is from earlier terms. It is called before the entry is applied.
func (r *replica) lead(e *pb.Entry) {
	if l := r.leadership.Load(); !r.leads.Load() || l != nil && l.term == e.GetTerm() || r.raw.BasicStatus().HardState.GetTerm() != e.GetTerm() {
		return
	}
	r.endLeadership() // this node has lost and won an election since
	r.leadership.Store(&leadership{e.GetTerm(), r.state.Load().Sequence})
}

// confirmed handles the answer of a majority to requestReadIndex.
func (r *replica) confirmed(state raft.ReadState) {
	r.readIndex.Store(max(1, state.Index))
	var asked time.Duration
	if _, err := binary.Decode(state.RequestCtx, binary.LittleEndian, &asked); err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := r.began.Add(asked); at.After(r.readIndexAskedAt) {
		r.readIndexAskedAt = at
	}
}

func (r *replica) send(m *pb.Message) {
	if l := r.c.transport.link(r.name(m.GetTo())); l != nil {
		l.send(kindRaft, mustMarshal(m))
	}
	if m.GetType() == pb.MsgSnap {
		r.raw.ReportSnapshot(m.GetTo(), raft.SnapshotFinish) // raft sends it again if the node does not have it
	}
}

// name returns the name of a node. A new node has no entries yet, and gets the names of others only from their
// heartbeats.
func (r *replica) name(id uint64) string {
	if n, known := r.state.Load().Nodes[id]; known {
		return n.Name
	}
	return r.c.peers.nameOf(id)
}

func mustMarshal(m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		panic(err) // messages of this program always have an encoding
	}
	return b
}

func (r *replica) applySnapshot(snapshot *pb.Snapshot) error {
	state, err := decodeReplicated(snapshot.Data)
	if err != nil {
		return fmt.Errorf("read raft's snapshot: %w", err)
	}
	r.state.Store(&state)
	r.base.Store(&state)
	r.conf.Store(snapshot.GetMetadata().GetConfState())
	r.applied.Store(snapshot.GetMetadata().GetIndex())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.offer = nil
	return nil
}

func (r *replica) apply(e *pb.Entry) error {
	r.lead(e)
	if e.GetType() == pb.EntryConfChange {
		if err := r.applyConf(e.Data); err != nil {
			return fmt.Errorf("read a change of the members: %w", err)
		}
	} else if f, ok := decodeFrame(e); ok {
		if state := *r.state.Load(); f.sequence == state.Sequence+1 { // nodes ignore a record that does not continue the stream
			state.Sequence, state.Checksum = f.sequence, checksum(f.record)
			r.state.Store(&state)
		}
	}
	r.applied.Store(e.GetIndex())
	return nil
}

func (r *replica) applyConf(data []byte) error {
	cc := new(pb.ConfChange)
	if err := proto.Unmarshal(data, cc); err != nil {
		return err
	}
	r.conf.Store(r.raw.ApplyConfChange(cc))
	state := *r.state.Load()
	state.Nodes = maps.Clone(state.Nodes)
	if cc.GetType() == pb.ConfChangeRemoveNode {
		delete(state.Nodes, cc.GetNodeId())
		state.Removed = append(slices.Clone(state.Removed), cc.GetNodeId())
	} else {
		var name nodeName
		if err := json.Unmarshal(cc.Context, &name); err != nil {
			return err
		}
		state.Nodes[cc.GetNodeId()] = name
	}
	r.state.Store(&state)
	r.c.logger.Info("members of the cluster changed", "change", cc.GetType().String(), "node", string(cc.Context), "voters", len(r.voters()))
	return nil
}

// compact writes a checkpoint if one is due and the local log has the records of all applied entries.
func (r *replica) compact() error {
	applied, state := r.applied.Load(), r.state.Load()
	if !r.store.checkpointDue(applied) || r.c.last.Load() != state.Sequence {
		return nil
	}
	err := r.store.checkpoint(applied, r.conf.Load(), *state)
	if errors.Is(err, wal.ErrNoSpace) {
		return nil // a later call tries again
	}
	return err
}

// step queues a message of another node for raft.
func (r *replica) step(m *pb.Message) {
	if m.GetTo() != r.id || r.older.Load() {
		return // sent to an earlier node with this name, or this node must not vote
	}
	if m.GetType() == pb.MsgSnap && !r.acceptSnapshot(m.GetSnapshot()) {
		return
	}
	select {
	case r.inbox <- m:
	default: // raft sends it again
	}
}

// tooFarBehind reports whether the leader can send only snapshots, because it no longer has the entries that this node
// lacks. One snapshot proves nothing: a new leader does not know yet which entries this node has, so it may send a
// snapshot first, and entries soon after. The caller must hold mu.
func (r *replica) tooFarBehind() bool {
	return r.offer != nil && r.offeredTo == r.applied.Load() && r.c.config.Clock().Sub(r.offeredAt) > unusableSnapshotsMax
}

// lacksState reports whether the local log lacks records before raft's oldest entry. Then this node must copy another
// node's state.
func (r *replica) lacksState() bool { return r.c.last.Load() < r.base.Load().Sequence }

// acceptSnapshot reports whether raft can use a snapshot: if it is of this node's stream, and the local log has all its
// records. A node that joins copies a state with these records later, so that it gets the entries that are committed
// meanwhile. If the snapshot is unusable, acceptSnapshot keeps its state as an offer.
func (r *replica) acceptSnapshot(snapshot *pb.Snapshot) bool {
	state, err := decodeReplicated(snapshot.GetData())
	self := r.c.self.Load()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && state.Stream == self.Stream && (r.c.Journal() == nil || r.c.last.Load() >= state.Sequence) {
		return true
	}
	if err == nil && (r.offer == nil || r.offeredTo != r.applied.Load()) {
		r.offeredAt, r.offeredTo = r.c.config.Clock(), r.applied.Load()
	}
	if err == nil {
		r.offer = &state
		r.notify()
	}
	return false
}

// propose proposes a record in a term in which this node leads. It returns false if it does not, and then nothing was
// proposed. All earlier proposals must have been applied.
func (r *replica) propose(term uint64, record []byte) (ok bool) {
	return r.do(func() {
		status, state := r.raw.BasicStatus(), r.state.Load()
		f := frame{sequence: state.Sequence + 1, previous: state.Checksum, record: record}
		ok = status.RaftState == raft.StateLeader && status.HardState.GetTerm() == term && r.raw.Propose(f.encode()) == nil
	}) && ok
}

// caughtUp reports whether this node has applied all entries up to the read index, and so is up to date.
func (r *replica) caughtUp() bool {
	index := r.readIndex.Load()
	return index > 0 && r.applied.Load() >= index
}

// caughtUpSince reports whether this node has applied all entries that were committed at some time later than start.
func (r *replica) caughtUpSince(start time.Time) bool {
	r.mu.Lock()
	asked := r.readIndexAskedAt
	r.mu.Unlock()
	return asked.After(start) && r.caughtUp()
}

// requestReadIndex asks the leader for its commit index: a node that has applied the entry with this index is up to
// date. The leader answers when a majority has confirmed that it still leads. The request contains the time of the
// call.
func (r *replica) requestReadIndex() {
	if r.leader.Load() != 0 {
		request := binary.LittleEndian.AppendUint64(nil, uint64(r.c.config.Clock().Sub(r.began))) //nolint:gosec // read again as a time
		r.do(func() { r.raw.ReadIndex(request) })
	}
}

// connectionLost is called when the connection from a node has ended. If that node was the leader, this node forgets it
// and campaigns at once. The others vote for this node only if they have lost the leader too.
func (r *replica) connectionLost(name string) {
	lost := r.leader.Load()
	if lost == 0 || lost == r.id || r.state.Load().Nodes[lost].Name != name || r.c.ctx.Err() != nil {
		return
	}
	rank := 0
	for _, id := range r.voters() {
		if id < r.id && id != lost {
			rank++
		}
	}
	r.do(func() { _ = r.raw.ForgetLeader() })
	if !r.votes() {
		return
	}
	r.c.logger.Info("lost the connection to the leader, standing for election", "leader", name)
	for range campaignsMax {
		if sleep(r.c.ctx, 5*time.Millisecond+time.Duration(rank)*campaignStagger) != nil {
			return
		}
		if l := r.leader.Load(); l != 0 {
			return
		}
		r.do(func() { _ = r.raw.Campaign() })
		if sleep(r.c.ctx, campaignInterval) != nil {
			return
		}
	}
}

// transferMax is how long this node decides nothing after it has asked another one to lead.
const transferMax = time.Second

// transfer asks the voter with the most entries to lead. It decides no more changes first, and waits for those that it
// has proposed.
func (r *replica) transfer() {
	r.transferUntil.Store(r.c.config.Clock().Add(transferMax).UnixNano())
	r.do(func() {
		if r.proposing() {
			return // the caller tries again
		}
		status := r.raw.Status()
		best, match := uint64(0), uint64(0)
		for id, p := range status.Progress {
			if id != r.id && !p.IsLearner && p.RecentActive && (best == 0 || p.Match > match) {
				best, match = id, p.Match
			}
		}
		if best == 0 {
			r.transferUntil.Store(0)
			return
		}
		r.raw.TransferLeader(best)
	})
}

// proposing reports whether entries are not committed yet, or the local log lacks the records of committed ones. With a
// full disk it does not wait for the local log.
func (r *replica) proposing() bool {
	last, err := r.store.LastIndex()
	j := r.c.Journal()
	copying := j != nil && !j.diskFull.Load() && r.c.last.Load() < r.state.Load().Sequence
	return err != nil || r.applied.Load() < last || copying
}

// create makes this node the only voter of a new cluster. Its log begins after record last.
func (r *replica) create(stream string, codeKey []byte, last uint64) error {
	state := replicated{Stream: stream, CodeKey: codeKey, Sequence: last, Nodes: map[uint64]nodeName{r.id: {r.c.config.name()}}}
	if err := r.store.bootstrap(r.id, state); err != nil {
		return err
	}
	if err := r.load(); err != nil {
		return err
	}
	return r.raw.Campaign()
}
