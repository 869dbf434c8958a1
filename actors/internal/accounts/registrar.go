package accounts

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Requests to the RegistrarActor.
type (
	codeRequest   = mailbox.Request[codeQuery, account.LoginMail]
	codeAttempt   = mailbox.Request[codeAttemptQuery, time.Time]
	signOut       = mailbox.Request[signOutQuery, struct{}]
	sessionLookup = mailbox.Request[account.Digest, uint64]
	announcement  = mailbox.Request[announcementQuery, account.KeyPolicy]
	loginUnlock   = mailbox.Request[loginUnlockQuery, struct{}]
)

type (
	codeQuery struct {
		email account.Email
		code  account.Secret
		from  account.Requester
	}
	codeAttemptQuery struct {
		email account.Email
		code  string
		token account.Digest
		from  account.Requester
	}
	signOutQuery     struct{ token account.Digest }
	loginUnlockQuery struct {
		email account.EmailID
		by    string
	}
	// announcementQuery announces the time from which API keys are required, or withdraws the announcement.
	announcementQuery struct {
		at       time.Time
		withdraw bool
		by       string
	}
)

// RegistrarActor keeps account.Registry (e-mail addresses, login codes, sessions) and the key policy (from when on API
// keys are required). It handles requests in order. For each request it makes a decision, writes the events of the
// decision, and replies when they are durable.
type RegistrarActor struct {
	self      *mailbox.Ref
	journal   *mailbox.Ref
	shards    *shards
	clock     *monotonicClock
	registry  *account.Registry
	keyPolicy *atomic.Pointer[account.KeyPolicy]
	usedUp    *atomic.Pointer[account.CodesUsedUp]
	limit     int // maximum length of pending

	pending   []*decision   // decisions whose events wait for the next write
	inFlight  []*decision   // decisions whose events are being written
	writing   bool          // the journal has not sent the result of the newest write yet
	remoteSeq uint64        // number of RemoteEvents messages (events of other nodes) received
	stopped   *engine.Error // why the node has stopped, or nil
}

// decision has the events that a request causes, and the function that replies to the request.
type decision struct {
	request mailbox.Message
	decide  decideFunc // makes the decision again if an event of another node invalidates it

	events    []any
	records   [][]byte            // the encoded events
	created   *account.Created    // the event of a new account, or nil
	answer    func(*engine.Error) // replies; called with nil when the events are durable and applied
	keyPolicy bool                // one of the events changes the key policy
}

// decideFunc makes a decision. again is true if an earlier decision about the same request was discarded.
type decideFunc func(again bool) (*decision, error)

// registrarRecordsMax is the maximum number of records in one write. A decision with more records is written by itself.
const registrarRecordsMax = 1024

// Receive implements mailbox.Actor.
func (r *RegistrarActor) Receive(msg mailbox.Message) {
	switch m := msg.(type) {
	case *sessionLookup:
		m.Reply(r.registry.Session(m.Query, r.clock.Now()))
	case *codeRequest:
		r.decide(m, func(again bool) (*decision, error) { return r.requestCode(m, again) })
	case *codeAttempt:
		r.decide(m, func(again bool) (*decision, error) { return r.checkCode(m, again) })
	case *signOut:
		r.decide(m, func(bool) (*decision, error) { return r.signOut(m) })
	case *loginUnlock:
		r.decide(m, func(bool) (*decision, error) { return r.unlock(m) })
	case *announcement:
		r.decide(m, func(bool) (*decision, error) { return r.announce(m) })
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

// FailsNode implements mailbox.Actor. A panic over a request is not fatal: at most it counts one login attempt too
// many.
func (r *RegistrarActor) FailsNode(msg mailbox.Message) bool { return !msg.IsRequest() }

// decide makes a decision and starts to write its events. It rejects the request if the node has stopped or too many
// decisions are pending.
func (r *RegistrarActor) decide(msg mailbox.Message, by decideFunc) {
	switch {
	case r.stopped != nil:
		msg.Reject(r.stopped)
	case len(r.pending) >= r.limit:
		msg.Reject(mailbox.ErrOverloaded)
	default:
		r.queueDecision(msg, by, false)
		r.write()
	}
}

// queueDecision makes a decision and adds it to pending. If the decision fails, it rejects the request.
func (r *RegistrarActor) queueDecision(msg mailbox.Message, by decideFunc, again bool) {
	d, err := by(again)
	if err != nil {
		msg.Reject(AsEngineError(err))
		return
	}
	for _, event := range d.events {
		record, err := record.Encode(event)
		if err != nil {
			r.undo(d)
			msg.Reject(Internal(err))
			return
		}
		d.records = append(d.records, record)
	}
	d.request, d.decide = msg, by
	r.pending = append(r.pending, d)
}

// AsEngineError returns the *engine.Error in err, or an internal error with err as its cause.
func AsEngineError(err error) *engine.Error {
	var known *engine.Error
	if errors.As(err, &known) {
		return known
	}
	return Internal(err)
}

func (r *RegistrarActor) requestCode(m *codeRequest, again bool) (*decision, error) {
	request := func(now account.ClockReading) (*account.CodeIssued, error) {
		if again {
			return r.registry.RetryRequestCode(m.Query.email.ID(), m.Query.from, now)
		}
		return r.registry.RequestCode(m.Query.email.ID(), m.Query.from, now)
	}
	event, err := request(r.clock.Now())
	if err != nil {
		r.showCodesUsedUp()
		return nil, err
	}
	r.registry.Seal(event, m.Query.code)
	return &decision{events: []any{event}, answer: func(err *engine.Error) {
		if err != nil {
			m.Reject(err)
			return
		}
		r.registry.ActivateCode(event, m.Query.code, m.Query.from)
		m.Reply(account.LoginMail{To: m.Query.email, Code: m.Query.code, Expires: event.At.Add(account.CodeLifetime)}, nil)
	}}, nil
}

// showCodesUsedUp copies the state of the registry for Accounts.LoginsCondition.
func (r *RegistrarActor) showCodesUsedUp() {
	usedUp := r.registry.CodesUsedUp()
	r.usedUp.Store(&usedUp)
}

// checkCode writes a record for every wrong code, so that response times do not reveal which codes exist. If the code
// causes no other event, the record is a CodeRefused.
func (r *RegistrarActor) checkCode(m *codeAttempt, again bool) (*decision, error) {
	now, q := r.clock.Now(), &m.Query
	attempt := func() (account.RegistryEvent, error) {
		if again {
			return r.registry.RetryTryCode(q.email.ID(), q.code, q.token, q.from, now)
		}
		return r.registry.TryCode(q.email.ID(), q.code, q.token, q.from, now)
	}
	event, attemptErr := attempt()
	if event == nil && AsEngineError(attemptErr).Code != engine.CodeInvalidCode {
		return nil, attemptErr
	}
	d := &decision{}
	var expires time.Time
	switch e := event.(type) {
	case nil:
		d.events = []any{&record.CodeRefused{Email: m.Query.email.ID(), At: wallTime(now)}}
	case *account.SessionOpened:
		expires = e.Expires
		if e.New {
			d.created = &account.Created{Account: e.Account, Email: e.Email, At: e.At}
			d.events = append(d.events, d.created)
		}
		d.events = append(d.events, e)
	default:
		d.events = []any{e}
	}
	d.answer = func(err *engine.Error) {
		if err != nil {
			m.Reject(err)
			return
		}
		m.Reply(expires, attemptErr)
	}
	return d, nil
}

// wallTime returns the wall time of an event: in UTC and without a monotonic reading.
func wallTime(now account.ClockReading) time.Time { return now.Wall.Round(0).UTC() }

func (r *RegistrarActor) signOut(m *signOut) (*decision, error) {
	event, err := r.registry.CloseSession(m.Query.token, r.clock.Now())
	if err != nil {
		return nil, err
	}
	return &decision{events: []any{event}, answer: func(err *engine.Error) { m.Reply(struct{}{}, asError(err)) }}, nil
}

func (r *RegistrarActor) unlock(m *loginUnlock) (*decision, error) {
	event := &account.LoginUnlocked{Email: m.Query.email, At: wallTime(r.clock.Now()), By: m.Query.by}
	return &decision{events: []any{event}, answer: func(err *engine.Error) {
		r.showCodesUsedUp()
		m.Reply(struct{}{}, asError(err))
	}}, nil
}

// announce changes the key policy. It returns an error while another such change is not durable.
func (r *RegistrarActor) announce(m *announcement) (*decision, error) {
	for _, decisions := range [][]*decision{r.inFlight, r.pending} {
		for _, d := range decisions {
			if d.keyPolicy {
				return nil, mailbox.ErrOverloaded
			}
		}
	}
	now := r.clock.Now()
	var event any
	var err error
	if policy := *r.keyPolicy.Load(); m.Query.withdraw {
		event, err = policy.Withdraw(now.Wall, m.Query.by)
	} else {
		event, err = policy.Announce(m.Query.at, now.Wall, m.Query.by)
	}
	if err != nil {
		return nil, err
	}
	return &decision{events: []any{event}, keyPolicy: true, answer: func(err *engine.Error) {
		m.Reply(*r.keyPolicy.Load(), asError(err))
	}}, nil
}

// write sends the events of pending decisions to the journal. It does nothing while a write is in flight.
func (r *RegistrarActor) write() {
	if r.writing || len(r.pending) == 0 {
		return
	}
	w := &commitlog.Write{From: r.self, RemoteSeq: r.remoteSeq}
	created := map[*mailbox.Ref][]*account.Created{}
	count := 0
	for _, d := range r.pending {
		if count > 0 && len(w.Records)+len(d.records) > registrarRecordsMax {
			break
		}
		count++
		w.Records = append(w.Records, d.records...)
		if d.created != nil {
			shard := r.shards.of(d.created.Account)
			created[shard] = append(created[shard], d.created)
		}
	}
	for shard, events := range created {
		w.Notifications = append(w.Notifications, commitlog.Notification{To: shard, Message: &accountsCreated{events: events}})
	}
	r.inFlight = r.pending[:count:count]
	r.pending = r.pending[count:]
	r.writing = true
	r.journal.Send(w)
}

// committed handles the result of a write: it applies durable events and replies to the callers. After a conflict with
// an event of another node inFlight is empty, because remote has moved all decisions to pending.
func (r *RegistrarActor) committed(m *commitlog.WriteResult) {
	done := r.inFlight
	r.inFlight, r.writing = nil, false
	for _, d := range done {
		if m.Err != nil {
			r.undo(d)
		} else {
			r.apply(d)
		}
		d.answer(m.Err)
	}
	r.write()
}

func (r *RegistrarActor) apply(d *decision) {
	for _, event := range d.events {
		switch e := event.(type) {
		case account.RegistryEvent:
			r.registry.Apply(e)
		case *account.Announced:
			r.keyPolicy.Store(&e.KeyPolicy)
		case *account.AnnouncementWithdrawn:
			r.keyPolicy.Store(&account.KeyPolicy{})
		}
	}
}

// undo reverts what a decision changed in the registry, because its events will not become durable.
func (r *RegistrarActor) undo(d *decision) {
	for _, event := range d.events {
		if e, ok := event.(account.RegistryEvent); ok {
			r.registry.Abort(e)
		}
	}
}

func (r *RegistrarActor) share(m *commitlog.SnapshotRequest) {
	if r.stopped != nil {
		m.Reject(r.stopped)
		return
	}
	m.SetRegistry(commitlog.RegistrySnapshot{Registry: r.registry.Snapshot(), KeyPolicy: *r.keyPolicy.Load(), Monotonic: r.clock.Now().Monotonic})
}

// RejectAll implements mailbox.Actor. It replies to the requests of all decisions with an error.
func (r *RegistrarActor) RejectAll(err *engine.Error) {
	r.stopped = err
	for _, decisions := range [][]*decision{r.inFlight, r.pending} {
		for _, d := range decisions {
			d.answer(err)
		}
	}
	r.inFlight, r.pending = nil, nil
}
