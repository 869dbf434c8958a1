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

// The questions that the registrar answers.
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
	// announcementQuery announces required keys, or takes the announcement back.
	announcementQuery struct {
		at       time.Time
		withdraw bool
		by       string
	}
)

// RegistrarActor owns the registry: who may log in; and the transition to required keys. It decides as
// questions come and answers when what it decided is durable; meanwhile it goes on deciding.
type RegistrarActor struct {
	self      *mailbox.Ref
	journal   *mailbox.Ref
	shards    *shards
	clock     *steadyClock
	registry  *account.Registry
	keyPolicy *atomic.Pointer[account.KeyPolicy]
	limit     int // of decisions that wait for the journal

	pending   []*decision
	inFlight  []*decision
	writing   bool   // a write is under way, of what is in flight or was
	remoteSeq uint64 // messages about other nodes' records
	stopped   *engine.Error
}

// decision is a decision on its way into the journal.
type decision struct {
	question mailbox.Message // that it answers
	decide   decideFunc      // that made it, and makes it again when another node was first

	events    []any
	records   [][]byte
	created   *account.Created    // nil: no new account
	answer    func(*engine.Error) // called once: nil when the events are durable and true
	keyPolicy bool                // it is about the transition
}

// decideFunc makes a ruling; again, when it was made before and is void.
type decideFunc func(again bool) (*decision, error)

// registrarRecordsMax is how many records go into one write of the registrar.
const registrarRecordsMax = 1024

// Receive is one line for each message.
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

// Fatal is mailbox.Actor: a decision that fails half way has at worst counted a try that nobody made.
func (r *RegistrarActor) Fatal(l mailbox.Message) bool { return !l.Asked() }

// decide answers a question by a ruling, when there is room for one.
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

// decideFunc takes a ruling on its way, or settles its question.
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

// AsEngineError is an error of the rules.
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

// checkCode always leads to a record and an answer behind it: what a code was must not show in the time
// that the answer takes.
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

// wallTime is the instant of a moment as events hold it: in UTC, without a monotonic part.
func wallTime(now account.ClockReading) time.Time { return now.Wall.Round(0).UTC() }

func (r *RegistrarActor) signOut(m *signOut) (*decision, error) {
	event, err := r.registry.CloseSession(m.Query.token, r.clock.Now())
	if err != nil {
		return nil, err
	}
	return &decision{events: []any{event}, answer: func(err *engine.Error) { m.Reply(struct{}{}, asError(err)) }}, nil
}

// announce decides one change of the transition at a time.
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

// write sends the journal what is pending, unless a write is under way.
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

// committed makes durable events true and answers. Of a conflict nothing is in flight any more: all was ruled again.
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

// undo tells the registry what will never be true.
func (r *RegistrarActor) undo(one *decision) {
	for _, event := range one.events {
		if e, ok := event.(account.RegistryEvent); ok {
			r.registry.Abort(e)
		}
	}
}

// shareRegistry hands over the registry as it is now, unless the node has stopped (see commitlog.SnapshotRequest); nobody who logs in waits for it.
func (r *RegistrarActor) share(m *commitlog.SnapshotRequest) {
	if r.stopped != nil {
		m.Reject(r.stopped)
		return
	}
	m.SetRegistry(commitlog.RegistrySnapshot{Registry: r.registry.Snapshot(), KeyPolicy: *r.keyPolicy.Load(), Steady: r.clock.Now().Steady})
}

// Abort answers everybody who waits: the actor stops, or the node does.
func (r *RegistrarActor) Abort(why *engine.Error) {
	r.stopped = why
	for _, waiting := range [][]*decision{r.inFlight, r.pending} {
		for _, one := range waiting {
			one.answer(why)
		}
	}
	r.inFlight, r.pending = nil, nil
}
