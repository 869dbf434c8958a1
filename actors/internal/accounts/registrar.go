package accounts

import (
	"fmt"
	"runtime/debug"
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
// requests in order: it decides the events of a request, writes them, and replies when they are durable. While a change
// is being written, later requests wait, because they are decided with the change or, if the write fails, without it.
type RegistrarActor struct {
	parent   *Accounts
	log      *commitlog.Log
	self     *mailbox.Ref
	registry *account.Registry

	waiting []*registryChange // requests not decided yet
	pending []*decision       // decisions being written, in order; at most one changes the registry or the key policy
	stopped *engine.Error     // not nil: why the node has stopped
}

// decision holds the events that a request leads to, until they are durable.
type decision struct {
	request *registryChange
	write   *commitlog.Write
	events  []any
	done    func() error // called after the events are durable and applied; returns the reply; may be nil
	refused bool         // the event is a CodeRefused, which changes nothing
}

// decideFunc makes a decision.
type decideFunc func(r *RegistrarActor) (*decision, error)

// Receive implements mailbox.Actor.
func (r *RegistrarActor) Receive(msg mailbox.Message) {
	switch m := msg.(type) {
	case *sessionLookup:
		m.Reply(r.registry.Session(m.Query, r.parent.clock.Now()))
	case *registryChange:
		r.enqueue(m)
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

// enqueue queues a request, unless there are too many.
func (r *RegistrarActor) enqueue(m *registryChange) {
	switch {
	case r.stopped != nil:
		m.Reject(r.stopped)
	case len(r.waiting)+len(r.pending) >= r.parent.config.MailboxMax:
		m.Reject(mailbox.ErrOverloaded)
	default:
		r.waiting = append(r.waiting, m)
		r.advance()
	}
}

// advance decides the waiting requests, up to the first that makes a change.
func (r *RegistrarActor) advance() {
	for len(r.waiting) > 0 && !slices.ContainsFunc(r.pending, func(d *decision) bool { return !d.refused }) {
		m := r.waiting[0]
		r.waiting = r.waiting[1:]
		if m.Abandoned() {
			m.Reject(mailbox.ErrExpired)
		} else {
			r.decide(m)
		}
	}
}

// decide makes a decision and starts to write it. It rejects the request if this node must not decide, or the decision
// fails. A panic fails only this request.
func (r *RegistrarActor) decide(m *registryChange) {
	defer rejectPanic(m)
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
	d.request, d.write = m, &commitlog.Write{From: r.self, Term: term}
	for _, event := range d.events {
		encoded, err := record.Encode(event)
		if err != nil {
			m.Reject(Internal(err))
			return
		}
		d.write.Records = append(d.write.Records, encoded)
		if created, ok := event.(*account.Created); ok {
			notification := commitlog.Notification{To: r.parent.shardOf(created.Account), Message: &accountCreated{event: created}}
			d.write.Notifications = append(d.write.Notifications, notification)
		}
	}
	r.pending = append(r.pending, d)
	r.log.Ref.Send(d.write)
}

// rejectPanic must be deferred. It rejects a request whose decision panics.
func rejectPanic(m mailbox.Message) {
	if reason := recover(); reason != nil {
		m.Reject(Internal(fmt.Errorf("panic while deciding: %v\n%s", reason, debug.Stack())))
	}
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
	usedUp := r.registry.UsedUp
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
		d.events, d.refused = []any{&record.CodeRefused{Email: email, At: wallTime(now)}}, true
	case *account.SessionOpened:
		*expires = e.Expires
		if e.New {
			d.events = append(d.events, &account.Created{Account: e.Account, Email: e.Email, At: e.At})
		}
		d.events = append(d.events, e)
	default:
		d.events = []any{e}
	}
	return d, nil
}

// wallTime returns the wall time of an event, in UTC and without a monotonic reading.
func wallTime(now account.ClockReading) time.Time { return now.Wall.Round(0).UTC() }

// committed handles the result of a write: it applies durable events and replies to the caller. The decision is missing
// if remote has dropped it.
func (r *RegistrarActor) committed(m *commitlog.WriteResult) {
	i := slices.IndexFunc(r.pending, func(d *decision) bool { return d.write == m.Write })
	if i < 0 {
		return
	}
	d := r.pending[i]
	r.pending = slices.Delete(r.pending, i, i+1)
	if m.Err != nil {
		d.request.Reject(m.Err)
	} else {
		var err error
		if r.apply(d.events); d.done != nil {
			err = d.done()
		}
		d.request.Reply(struct{}{}, err)
	}
	r.advance()
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
	r.rejectPending(err)
	for _, m := range r.waiting {
		m.Reject(err)
	}
	r.waiting = nil
}

func (r *RegistrarActor) rejectPending(err *engine.Error) {
	for _, d := range r.pending {
		d.request.Reject(err)
	}
	r.pending = nil
}

// remote applies events that this node has not decided as the leader. Decisions that have no result yet are of an
// earlier term, and will not become durable.
func (r *RegistrarActor) remote(m *commitlog.RemoteEvents[any]) {
	defer m.Window.Release()
	if r.stopped != nil {
		return
	}
	r.rejectPending(commitlog.ErrNotLeader)
	now := r.parent.clock.Now().Monotonic
	for _, event := range m.Events {
		if e, ok := event.(account.RegistryEvent); ok {
			r.registry.ApplyAt(e, now)
		} else {
			r.apply([]any{event})
		}
	}
	r.advance()
}
