package accounts

import (
	"slices"
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Requests to the RegistrarActor.
type (
	registryChange = mailbox.Request[registryQuery, struct{}]
	registryQuery  struct{ decide decideFunc }
	sessionLookup  = mailbox.Request[account.Digest, uint64]
)

// RegistrarActor owns account.Registry (e-mail addresses, login codes, sessions) and the key policy. It handles
// requests in order: it decides the events of a request, writes them, and replies when they are durable.
type RegistrarActor struct {
	parent   *Accounts
	log      *commitlog.Log
	self     *mailbox.Ref
	registry *account.Registry

	pending  []*decision   // decisions to be written next
	inFlight []*decision   // decisions being written
	writing  bool          // the newest write has no result yet
	stopped  *engine.Error // not nil: why the node has stopped
}

// decision holds the events that a request leads to, until they are durable.
type decision struct {
	request *registryChange
	term    uint64 // of Log.Decides before the decision

	events    []any
	records   [][]byte         // the encoded events
	created   *account.Created // the event of a new account, or nil
	done      func() error     // called after the events are durable and applied; returns the reply; may be nil
	keyPolicy bool             // one of the events changes the key policy
}

// decideFunc makes a decision.
type decideFunc func(r *RegistrarActor) (*decision, error)

// registrarRecordsMax is the maximum number of records in one write. A larger decision is written by itself.
const registrarRecordsMax = 1024

// Receive implements mailbox.Actor.
func (r *RegistrarActor) Receive(msg mailbox.Message) {
	switch m := msg.(type) {
	case *sessionLookup:
		m.Reply(r.registry.Session(m.Query, r.parent.clock.Now()))
	case *registryChange:
		r.decide(m)
	case *commitlog.WriteResult:
		r.committed(m)
	case *commitlog.RemoteEvents[any]:
		r.remote(m)
	case *commitlog.SnapshotRequest:
		r.share(m)
	case *mailbox.NodeFailed:
		r.RejectAll(m.Err)
	}
}

// FailsNode implements mailbox.Actor. After a panic in a request, at most one login attempt too many is counted.
func (r *RegistrarActor) FailsNode(msg mailbox.Message) bool { return !msg.IsRequest() }

// decide makes a decision and starts to write it. It rejects the request if this node must not decide or too many
// decisions are pending.
func (r *RegistrarActor) decide(m *registryChange) {
	switch {
	case r.stopped != nil:
		m.Reject(r.stopped)
	case len(r.pending) >= r.parent.config.MailboxMax:
		m.Reject(mailbox.ErrOverloaded)
	default:
		r.queueDecision(m)
		r.write()
	}
}

// queueDecision makes a decision and adds it to pending. If the decision fails, it rejects the request.
func (r *RegistrarActor) queueDecision(m *registryChange) {
	term, decides := r.log.Decides()
	if !decides {
		m.Reject(commitlog.ErrNotLeader)
		return
	}
	d, err := m.Query.decide(r)
	if err != nil {
		m.Reject(AsEngineError(err))
		return
	}
	for _, event := range d.events {
		record, err := record.Encode(event)
		if err != nil {
			r.undo(d)
			m.Reject(Internal(err))
			return
		}
		d.records = append(d.records, record)
	}
	d.request, d.term = m, term
	r.pending = append(r.pending, d)
}

func (r *RegistrarActor) requestCode(email account.EmailID, code account.Secret, from account.Requester, expires *time.Time) (*decision, error) {
	event, err := r.registry.RequestCode(email, from, r.parent.clock.Now())
	if err != nil {
		r.publishCodesUsedUp()
		return nil, err
	}
	r.registry.Seal(event, code)
	return &decision{events: []any{event}, done: func() error {
		r.registry.ActivateCode(event, code, from)
		*expires = event.At.Add(account.CodeLifetime)
		return nil
	}}, nil
}

// publishCodesUsedUp copies the state of the registry for Accounts.LoginsCondition.
func (r *RegistrarActor) publishCodesUsedUp() {
	usedUp := r.registry.CodesUsedUp()
	r.parent.codesUsedUp.Store(&usedUp)
}

// checkCode writes a record for every wrong code, so that response times do not reveal which codes exist. Without
// another event, the record is a CodeRefused.
func (r *RegistrarActor) checkCode(email account.EmailID, code string, token account.Digest, from account.Requester, expires *time.Time) (*decision, error) {
	now := r.parent.clock.Now()
	event, attemptErr := r.registry.TryCode(email, code, token, from, now)
	if event == nil && AsEngineError(attemptErr).Code != engine.CodeInvalidCode {
		return nil, attemptErr
	}
	d := &decision{done: func() error { return attemptErr }}
	switch e := event.(type) {
	case nil:
		d.events = []any{&record.CodeRefused{Email: email, At: wallTime(now)}}
	case *account.SessionOpened:
		*expires = e.Expires
		if e.New {
			d.created = &account.Created{Account: e.Account, Email: e.Email, At: e.At}
			d.events = append(d.events, d.created)
		}
		d.events = append(d.events, e)
	default:
		d.events = []any{e}
	}
	return d, nil
}

// wallTime returns the wall time of an event, in UTC and without a monotonic reading.
func wallTime(now account.ClockReading) time.Time { return now.Wall.Round(0).UTC() }

// write sends the events of pending decisions to the journal. It does nothing while a write is in flight. It rejects
// decisions of an earlier term.
func (r *RegistrarActor) write() {
	if r.writing || len(r.pending) == 0 {
		return
	}
	term, decides := r.log.Decides()
	if !decides || r.pending[0].term != term {
		r.dropDecisions()
		return
	}
	w := &commitlog.Write{From: r.self, Term: term}
	created := map[*mailbox.Ref][]*account.Created{}
	count := 0
	for _, d := range r.pending {
		if d.term != term || count > 0 && len(w.Records)+len(d.records) > registrarRecordsMax {
			break
		}
		count++
		w.Records = append(w.Records, d.records...)
		if d.created != nil {
			shard := r.parent.shardOf(d.created.Account)
			created[shard] = append(created[shard], d.created)
		}
	}
	for shard, events := range created {
		w.Notifications = append(w.Notifications, commitlog.Notification{To: shard, Message: &accountsCreated{events: events}})
	}
	r.inFlight = r.pending[:count:count]
	r.pending = r.pending[count:]
	r.writing = true
	r.log.Ref.Send(w)
}

// committed handles the result of a write: it applies durable events and replies to the callers. inFlight is empty if
// remote has dropped the decisions.
func (r *RegistrarActor) committed(m *commitlog.WriteResult) {
	done := r.inFlight
	r.inFlight, r.writing = nil, false
	for _, d := range done {
		if m.Err != nil {
			r.undo(d)
			d.request.Reject(m.Err)
			continue
		}
		var err error
		if r.apply(d.events); d.done != nil {
			err = d.done()
		}
		d.request.Reply(struct{}{}, err)
	}
	r.write()
}

func (r *RegistrarActor) apply(events []any) {
	for _, event := range events {
		switch e := event.(type) {
		case account.RegistryEvent:
			r.registry.Apply(e)
		case *account.Announced:
			r.parent.keyPolicy.Store(&e.KeyPolicy)
		case *account.AnnouncementWithdrawn:
			r.parent.keyPolicy.Store(&account.KeyPolicy{})
		}
	}
}

// undo reverts what a decision has changed in the registry. Call it if the events will not become durable.
func (r *RegistrarActor) undo(d *decision) {
	for _, event := range d.events {
		if e, ok := event.(account.RegistryEvent); ok {
			r.registry.Abort(e)
		}
	}
}

// share adds the registry and the key policy to a snapshot.
func (r *RegistrarActor) share(m *commitlog.SnapshotRequest) {
	if r.stopped != nil {
		m.Reject(r.stopped)
		return
	}
	m.SetRegistry(record.Snapshot{Registry: r.registry.Snapshot(), KeyPolicy: *r.parent.keyPolicy.Load(), Monotonic: r.parent.clock.Now().Monotonic})
}

// RejectAll implements mailbox.Actor. It rejects the requests of all decisions.
func (r *RegistrarActor) RejectAll(err *engine.Error) {
	r.stopped = err
	for _, decisions := range [][]*decision{r.inFlight, r.pending} {
		for _, d := range decisions {
			d.request.Reject(err)
		}
	}
	r.inFlight, r.pending = nil, nil
}

// remote applies events that this node has not decided as the leader. Decisions that have no result yet are of an
// earlier term, and will not become durable.
func (r *RegistrarActor) remote(m *commitlog.RemoteEvents[any]) {
	defer m.Window.Release()
	if r.stopped != nil {
		return
	}
	r.dropDecisions()
	now := r.parent.clock.Now()
	for _, event := range m.Events {
		if e, ok := event.(account.RegistryEvent); ok {
			r.registry.ApplyRemote(e, now)
		} else {
			r.apply([]any{event})
		}
	}
}

// dropDecisions rejects all decisions. The journal has written none of them.
func (r *RegistrarActor) dropDecisions() {
	dropped := slices.Concat(r.inFlight, r.pending)
	r.inFlight, r.pending = nil, nil
	for _, d := range slices.Backward(dropped) {
		r.undo(d)
		d.request.Reject(commitlog.ErrNotLeader)
	}
}
