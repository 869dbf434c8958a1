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
	codeRequest   = mailbox.Question[codeQuery, account.Letter]
	codeTry       = mailbox.Question[codeTryQuery, time.Time]
	signOut       = mailbox.Question[signOutQuery, struct{}]
	sessionLookup = mailbox.Question[account.Digest, uint64]
	announcement  = mailbox.Question[announcementQuery, account.Transition]
)

type (
	codeQuery struct {
		email account.Email
		code  account.Secret
		from  netip.Addr
	}
	codeTryQuery struct {
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
	self       *mailbox.Ref
	journal    *mailbox.Ref
	shards     *shards
	clock      *steadyClock
	registry   *account.Registry
	transition *atomic.Pointer[account.Transition]
	limit      int // of decisions that wait for the journal

	pending []*ruling
	flight  []*ruling
	sent    bool   // a write is under way, of what is in flight or was
	heard   uint64 // messages about other nodes' records
	stopped *engine.Error
}

// ruling is a decision on its way into the journal.
type ruling struct {
	question mailbox.Message // that it answers
	rule     rule            // that made it, and makes it again when another node was first

	events  []any
	records [][]byte
	born    *account.Created    // nil: no new account
	answer  func(*engine.Error) // called once: nil when the events are durable and true
	debated bool                // it is about the transition
}

// rule makes a ruling; again, when it was made before and is void.
type rule func(again bool) (*ruling, error)

// registrarRecordsMax is how many records go into one write of the registrar.
const registrarRecordsMax = 1024

// Receive is one line for each message.
func (r *RegistrarActor) Receive(l mailbox.Message) {
	switch m := l.(type) {
	case *sessionLookup:
		m.Reply(r.registry.Session(m.Query, r.clock.Now()))
	case *codeRequest:
		r.decide(m, func(again bool) (*ruling, error) { return r.requestCode(m, again) })
	case *codeTry:
		r.decide(m, func(again bool) (*ruling, error) { return r.tryCode(m, again) })
	case *signOut:
		r.decide(m, func(bool) (*ruling, error) { return r.signOut(m) })
	case *announcement:
		r.decide(m, func(bool) (*ruling, error) { return r.announce(m) })
	case *commitlog.Committed:
		r.committed(m)
	case *commitlog.ForeignEvents[any]:
		r.foreign(m)
	case *commitlog.Share:
		r.share(m)
	case *mailbox.Halt:
		r.Abort(m.Why)
	}
}

// Fatal is mailbox.Actor: a decision that fails half way has at worst counted a try that nobody made.
func (r *RegistrarActor) Fatal(l mailbox.Message) bool { return !l.Asked() }

// decide answers a question by a ruling, when there is room for one.
func (r *RegistrarActor) decide(l mailbox.Message, by rule) {
	switch {
	case r.stopped != nil:
		l.Reject(r.stopped)
	case len(r.pending) >= r.limit:
		l.Reject(mailbox.ErrOverloaded)
	default:
		r.rule(l, by, false)
		r.write()
	}
}

// rule takes a ruling on its way, or settles its question.
func (r *RegistrarActor) rule(l mailbox.Message, by rule, again bool) {
	one, err := by(again)
	if err != nil {
		l.Reject(AsEngineError(err))
		return
	}
	for _, event := range one.events {
		record, err := record.Encode(event)
		if err != nil {
			r.lost(one)
			l.Reject(Internal(err))
			return
		}
		one.records = append(one.records, record)
	}
	one.question, one.rule = l, by
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

func (r *RegistrarActor) requestCode(m *codeRequest, again bool) (*ruling, error) {
	ask := func(now account.Moment) (*account.CodeIssued, error) {
		if again {
			return r.registry.RequestCodeAgain(m.Query.email.ID(), now)
		}
		return r.registry.RequestCode(m.Query.email.ID(), m.Query.from, now)
	}
	event, err := ask(r.clock.Now())
	if err != nil {
		return nil, err
	}
	r.registry.Seal(event, m.Query.code)
	return &ruling{events: []any{event}, answer: func(err *engine.Error) {
		if err != nil {
			m.Reject(err)
			return
		}
		letter := account.Letter{Expires: event.At.Add(account.CodeLifetime)}
		r.registry.Issue(event, m.Query.code)
		if event.Mailed {
			letter.To, letter.Code = m.Query.email, m.Query.code
		}
		m.Reply(letter, nil)
	}}, nil
}

// tryCode always leads to a record and an answer behind it: what a code was must not show in the time
// that the answer takes.
func (r *RegistrarActor) tryCode(m *codeTry, again bool) (*ruling, error) {
	now, q := r.clock.Now(), &m.Query
	try := func() (account.RegistryEvent, error) {
		if again {
			return r.registry.TryCodeAgain(q.email.ID(), q.code, q.token, now)
		}
		return r.registry.TryCode(q.email.ID(), q.code, q.token, q.from, now)
	}
	event, refusal := try()
	if event == nil && AsEngineError(refusal).Code != engine.CodeInvalidCode {
		return nil, refusal
	}
	one := &ruling{}
	var expires time.Time
	switch e := event.(type) {
	case nil:
		one.events = []any{&record.CodeRefused{Email: m.Query.email.ID(), At: wallOf(now)}}
	case *account.SessionOpened:
		expires = e.Expires
		if e.New {
			one.born = &account.Created{Account: e.Account, Email: e.Email, At: e.At}
			one.events = append(one.events, one.born)
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

// wallOf is the instant of a moment as events hold it: in UTC, without a monotonic part.
func wallOf(now account.Moment) time.Time { return now.Wall.Round(0).UTC() }

func (r *RegistrarActor) signOut(m *signOut) (*ruling, error) {
	event, err := r.registry.CloseSession(m.Query.token, r.clock.Now())
	if err != nil {
		return nil, err
	}
	return &ruling{events: []any{event}, answer: func(err *engine.Error) { m.Reply(struct{}{}, asError(err)) }}, nil
}

// announce decides one change of the transition at a time.
func (r *RegistrarActor) announce(m *announcement) (*ruling, error) {
	for _, waiting := range [][]*ruling{r.flight, r.pending} {
		for _, one := range waiting {
			if one.debated {
				return nil, mailbox.ErrOverloaded
			}
		}
	}
	now := r.clock.Now()
	var event any
	var err error
	if present := *r.transition.Load(); m.Query.withdraw {
		event, err = present.Withdraw(now.Wall, m.Query.by)
	} else {
		event, err = present.Announce(m.Query.at, now.Wall, m.Query.by)
	}
	if err != nil {
		return nil, err
	}
	return &ruling{events: []any{event}, debated: true, answer: func(err *engine.Error) {
		m.Reply(*r.transition.Load(), asError(err))
	}}, nil
}

// write sends the journal what is pending, unless a write is under way.
func (r *RegistrarActor) write() {
	if r.sent || len(r.pending) == 0 {
		return
	}
	w := &commitlog.Write{From: r.self, Heard: r.heard}
	births := map[*mailbox.Ref][]*account.Created{}
	taken := 0
	for _, one := range r.pending {
		if taken > 0 && len(w.Records)+len(one.records) > registrarRecordsMax {
			break
		}
		taken++
		w.Records = append(w.Records, one.records...)
		if one.born != nil {
			home := r.shards.of(one.born.Account)
			births[home] = append(births[home], one.born)
		}
	}
	for home, events := range births {
		w.News = append(w.News, commitlog.News{To: home, Message: &born{events: events}})
	}
	r.flight = r.pending[:taken:taken]
	r.pending = r.pending[taken:]
	r.sent = true
	r.journal.Send(w)
}

// committed makes durable events true and answers. Of a conflict nothing is in flight any more: all was ruled again.
func (r *RegistrarActor) committed(m *commitlog.Committed) {
	done := r.flight
	r.flight, r.sent = nil, false
	for _, one := range done {
		if m.Err != nil {
			r.lost(one)
		} else {
			r.apply(one)
		}
		one.answer(m.Err)
	}
	r.write()
}

func (r *RegistrarActor) apply(one *ruling) {
	for _, event := range one.events {
		switch e := event.(type) {
		case account.RegistryEvent:
			r.registry.Apply(e)
		case *account.Announced:
			r.transition.Store(&e.Transition)
		case *account.AnnouncementWithdrawn:
			r.transition.Store(&account.Transition{})
		}
	}
}

// lost tells the registry what will never be true.
func (r *RegistrarActor) lost(one *ruling) {
	for _, event := range one.events {
		if e, ok := event.(account.RegistryEvent); ok {
			r.registry.Lost(e)
		}
	}
}

// share hands over the registry as it is now, unless the node has stopped (see commitlog.Share); nobody who logs in waits for it.
func (r *RegistrarActor) share(m *commitlog.Share) {
	if r.stopped != nil {
		m.Reject(r.stopped)
		return
	}
	m.HandRegistry(commitlog.RegistryCut{Registry: r.registry.Cut(), Transition: *r.transition.Load(), Steady: r.clock.Now().Steady})
}

// Abort answers everybody who waits: the actor stops, or the node does.
func (r *RegistrarActor) Abort(why *engine.Error) {
	r.stopped = why
	for _, waiting := range [][]*ruling{r.flight, r.pending} {
		for _, one := range waiting {
			one.answer(why)
		}
	}
	r.flight, r.pending = nil, nil
}
