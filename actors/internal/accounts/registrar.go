package accounts

import (
	"errors"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Questions to the registrar.
type (
	codeRequest   = mailbox.Question[codeQuery, account.LoginMail]
	codeAttempt   = mailbox.Question[codeAttemptQuery, time.Time]
	signOut       = mailbox.Question[signOutQuery, struct{}]
	sessionLookup = mailbox.Question[account.Digest, uint64]
	announcement  = mailbox.Question[announcementQuery, account.KeyPolicy]
)

type (
	codeQuery struct {
		email account.Email
		code  account.Secret
		from  netip.Addr
	}
	codeAttemptQuery struct {
		email account.Email
		code  string
		token account.Digest
		from  netip.Addr
	}
	signOutQuery struct{ token account.Digest }
	// announcementQuery announces required keys, or withdraws the announcement.
	announcementQuery struct {
		at       time.Time
		withdraw bool
		by       string
	}
)

// RegistrarActor owns the registry of addresses, codes and sessions, and the policy of required keys. It decides
// questions as they come, and answers each when its events are durable.
type RegistrarActor struct {
	self      *mailbox.Ref
	journal   *mailbox.Ref
	shards    *shards
	clock     *steadyClock
	registry  *account.Registry
	keyPolicy *atomic.Pointer[account.KeyPolicy]
	limit     int // of pending

	pending   []*decision
	inFlight  []*decision
	writing   bool   // a write is under way
	remoteSeq uint64 // messages of other nodes' records so far
	stopped   *engine.Error
}

// decision is a decision that is being written.
type decision struct {
	question mailbox.Message // which it answers
	decide   decideFunc      // decides again if another node's record came first

	events    []any
	records   [][]byte
	created   *account.Created    // a new account, or nil
	answer    func(*engine.Error) // called once, with nil when the events are durable and applied
	keyPolicy bool                // it changes the key policy
}

// decideFunc makes a decision; again if an earlier one was discarded.
type decideFunc func(again bool) (*decision, error)

// registrarRecordsMax is how many records go into one write of the registrar.
const registrarRecordsMax = 1024

// Receive implements mailbox.Actor.
func (r *RegistrarActor) Receive(l mailbox.Message) {
	switch m := l.(type) {
	case *sessionLookup:
		m.Reply(r.registry.Session(m.Query, r.clock.Now()))
	case *codeRequest:
		r.decide(m, func(again bool) (*decision, error) { return r.requestCode(m, again) })
	case *codeAttempt:
		r.decide(m, func(again bool) (*decision, error) { return r.checkCode(m, again) })
	case *signOut:
		r.decide(m, func(bool) (*decision, error) { return r.signOut(m) })
	case *announcement:
		r.decide(m, func(bool) (*decision, error) { return r.announce(m) })
	case *commitlog.Committed:
		r.committed(m)
	case *commitlog.RemoteEvents[any]:
		r.remote(m)
	case *commitlog.SnapshotRequest:
		r.share(m)
	case *mailbox.Halt:
		r.Abort(m.Why)
	}
}

// Fatal implements mailbox.Actor: a decision that panics has at worst counted an attempt too many.
func (r *RegistrarActor) Fatal(l mailbox.Message) bool { return !l.Asked() }

// decide decides a question if there is room for the decision.
func (r *RegistrarActor) decide(l mailbox.Message, by decideFunc) {
	switch {
	case r.stopped != nil:
		l.Reject(r.stopped)
	case len(r.pending) >= r.limit:
		l.Reject(mailbox.ErrOverloaded)
	default:
		r.queueDecision(l, by, false)
		r.write()
	}
}

// queueDecision queues a decision, or rejects its question.
func (r *RegistrarActor) queueDecision(l mailbox.Message, by decideFunc, again bool) {
	one, err := by(again)
	if err != nil {
		l.Reject(AsEngineError(err))
		return
	}
	for _, event := range one.events {
		record, err := record.Encode(event)
		if err != nil {
			r.undo(one)
			l.Reject(Internal(err))
			return
		}
		one.records = append(one.records, record)
	}
	one.question, one.decide = l, by
	r.pending = append(r.pending, one)
}

// AsEngineError returns err as an *engine.Error, an internal error if it is another one.
func AsEngineError(err error) *engine.Error {
	var known *engine.Error
	if errors.As(err, &known) {
		return known
	}
	return Internal(err)
}

func (r *RegistrarActor) requestCode(m *codeRequest, again bool) (*decision, error) {
	ask := func(now account.ClockReading) (*account.CodeIssued, error) {
		if again {
			return r.registry.RetryRequestCode(m.Query.email.ID(), now)
		}
		return r.registry.RequestCode(m.Query.email.ID(), m.Query.from, now)
	}
	event, err := ask(r.clock.Now())
	if err != nil {
		return nil, err
	}
	r.registry.Seal(event, m.Query.code)
	return &decision{events: []any{event}, answer: func(err *engine.Error) {
		if err != nil {
			m.Reject(err)
			return
		}
		letter := account.LoginMail{Expires: event.At.Add(account.CodeLifetime)}
		r.registry.ActivateCode(event, m.Query.code)
		if event.Mailed {
			letter.To, letter.Code = m.Query.email, m.Query.code
		}
		m.Reply(letter, nil)
	}}, nil
}

// checkCode always writes a record before it answers: the time of the answer must not reveal what the code was.
func (r *RegistrarActor) checkCode(m *codeAttempt, again bool) (*decision, error) {
	now, q := r.clock.Now(), &m.Query
	try := func() (account.RegistryEvent, error) {
		if again {
			return r.registry.RetryTryCode(q.email.ID(), q.code, q.token, now)
		}
		return r.registry.TryCode(q.email.ID(), q.code, q.token, q.from, now)
	}
	event, refusal := try()
	if event == nil && AsEngineError(refusal).Code != engine.CodeInvalidCode {
		return nil, refusal
	}
	one := &decision{}
	var expires time.Time
	switch e := event.(type) {
	case nil:
		one.events = []any{&record.CodeRefused{Email: m.Query.email.ID(), At: wallTime(now)}}
	case *account.SessionOpened:
		expires = e.Expires
		if e.New {
			one.created = &account.Created{Account: e.Account, Email: e.Email, At: e.At}
			one.events = append(one.events, one.created)
		}
		one.events = append(one.events, e)
	default:
		one.events = []any{e}
	}
	one.answer = func(err *engine.Error) {
		if err != nil {
			m.Reject(err)
			return
		}
		m.Reply(expires, refusal)
	}
	return one, nil
}

// wallTime returns the wall time in UTC without its monotonic part, as events hold it.
func wallTime(now account.ClockReading) time.Time { return now.Wall.Round(0).UTC() }

func (r *RegistrarActor) signOut(m *signOut) (*decision, error) {
	event, err := r.registry.CloseSession(m.Query.token, r.clock.Now())
	if err != nil {
		return nil, err
	}
	return &decision{events: []any{event}, answer: func(err *engine.Error) { m.Reply(struct{}{}, asError(err)) }}, nil
}

// announce decides one change of the key policy at a time.
func (r *RegistrarActor) announce(m *announcement) (*decision, error) {
	for _, waiting := range [][]*decision{r.inFlight, r.pending} {
		for _, one := range waiting {
			if one.keyPolicy {
				return nil, mailbox.ErrOverloaded
			}
		}
	}
	now := r.clock.Now()
	var event any
	var err error
	if present := *r.keyPolicy.Load(); m.Query.withdraw {
		event, err = present.Withdraw(now.Wall, m.Query.by)
	} else {
		event, err = present.Announce(m.Query.at, now.Wall, m.Query.by)
	}
	if err != nil {
		return nil, err
	}
	return &decision{events: []any{event}, keyPolicy: true, answer: func(err *engine.Error) {
		m.Reply(*r.keyPolicy.Load(), asError(err))
	}}, nil
}

// write sends the journal pending decisions, unless a write is under way.
func (r *RegistrarActor) write() {
	if r.writing || len(r.pending) == 0 {
		return
	}
	w := &commitlog.Write{From: r.self, RemoteSeq: r.remoteSeq}
	births := map[*mailbox.Ref][]*account.Created{}
	taken := 0
	for _, one := range r.pending {
		if taken > 0 && len(w.Records)+len(one.records) > registrarRecordsMax {
			break
		}
		taken++
		w.Records = append(w.Records, one.records...)
		if one.created != nil {
			home := r.shards.of(one.created.Account)
			births[home] = append(births[home], one.created)
		}
	}
	for home, events := range births {
		w.Notifications = append(w.Notifications, commitlog.Notification{To: home, Message: &accountsCreated{events: events}})
	}
	r.inFlight = r.pending[:taken:taken]
	r.pending = r.pending[taken:]
	r.writing = true
	r.journal.Send(w)
}

// committed applies durable events and answers. After a conflict nothing is in flight: all was decided again.
func (r *RegistrarActor) committed(m *commitlog.Committed) {
	done := r.inFlight
	r.inFlight, r.writing = nil, false
	for _, one := range done {
		if m.Err != nil {
			r.undo(one)
		} else {
			r.apply(one)
		}
		one.answer(m.Err)
	}
	r.write()
}

func (r *RegistrarActor) apply(one *decision) {
	for _, event := range one.events {
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

// undo takes a decision back that was not written.
func (r *RegistrarActor) undo(one *decision) {
	for _, event := range one.events {
		if e, ok := event.(account.RegistryEvent); ok {
			r.registry.Abort(e)
		}
	}
}

// share gives a snapshot the registry, unless the node has stopped (see commitlog.SnapshotRequest).
func (r *RegistrarActor) share(m *commitlog.SnapshotRequest) {
	if r.stopped != nil {
		m.Reject(r.stopped)
		return
	}
	m.SetRegistry(commitlog.RegistrySnapshot{Registry: r.registry.Snapshot(), KeyPolicy: *r.keyPolicy.Load(), Steady: r.clock.Now().Steady})
}

// Abort implements mailbox.Actor: it answers all decisions with an error.
func (r *RegistrarActor) Abort(why *engine.Error) {
	r.stopped = why
	for _, waiting := range [][]*decision{r.inFlight, r.pending} {
		for _, one := range waiting {
			one.answer(why)
		}
	}
	r.inFlight, r.pending = nil, nil
}
