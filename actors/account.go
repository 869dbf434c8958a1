package actors

import (
	"errors"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// The questions that an account actor answers. They go to the shard of the account, which passes them on.
type (
	admission  = mailbox.Question[admissionQuery, account.Grant]
	refund     = mailbox.Question[account.Grant, struct{}]
	usage      = mailbox.Question[usageQuery, account.Verdict]
	accountAsk = mailbox.Question[accountQuery, accountAnswer]
	change     = mailbox.Question[changeQuery, struct{}]
)

type (
	admissionQuery struct {
		account uint64
		key     account.Digest
	}
	// usageQuery asks for both windows, not charged: in the name of a key, which must authenticate, or of
	// the account itself.
	usageQuery struct {
		account uint64
		key     account.Digest
		byKey   bool
	}
	accountQuery  struct{ account uint64 }
	accountAnswer struct {
		record  account.Record
		verdict account.Verdict
	}
	// changeQuery decides an event of the account; it gives none when there is nothing to change.
	changeQuery struct {
		account uint64
		decide  func(*account.Account, account.Moment) (account.Event, error)
	}
)

// kept tells an account how the journal took one of its events.
type kept struct {
	mailbox.OneWay
	event account.Event
	err   *engine.Error
}

// returning asks an account to give back what it has leased and not spent: the node stops.
type returning struct{ mailbox.OneWay }

// accountActor owns one account that somebody asks about. It is spawned by its shard, which alone sends to
// it, and put aside by it when it is idle.
type accountActor struct {
	id      uint64
	account *account.Account
	terms   account.Terms
	clock   *steadyClock
	quorum  quorum
	outbox  *outbox // of the shard
	limits  accountLimits
	heard   uint64 // messages about other nodes' records

	parked  []*admission // wait for the lease that is in flight
	leasing bool         // a lease is in flight
	pressed bool         // somebody waits for it
	waiting []*change    // wait for the change that is in flight
	flight  *change
	leaving bool          // the node stops: what is leased goes back
	stopped *engine.Error // why nothing is leased or changed any more
}

// accountLimits bound what may wait for one account.
type accountLimits struct{ parked, changes int }

// Receive is one line for each message.
func (a *accountActor) Receive(l mailbox.Message) {
	switch m := l.(type) {
	case *admission:
		a.admit(m)
	case *refund:
		a.account.Refund(m.Query.At)
		m.Reply(struct{}{}, nil)
	case *usage:
		m.Reply(a.usage(m.Query))
	case *accountAsk:
		m.Reply(accountAnswer{a.account.Record(), a.account.Windows(a.clock.now(), a.terms)}, nil)
	case *change:
		a.change(m)
	case *kept:
		a.kept(m)
	case *foreignEvents[account.Event]:
		a.foreign(m)
	case *rest:
		a.rest()
	case *share:
		m.handAccount(putAside(a.account))
	case *returning:
		a.leaving = true
		a.press()
		a.leave()
	case *mailbox.Halt:
		a.Abort(m.Why)
	}
}

// Fatal is mailbox.Actor: what a question about the windows counts is at worst counted twice; everything else may be half
// changed or lost.
func (a *accountActor) Fatal(l mailbox.Message) bool {
	switch l.(type) {
	case *admission, *refund, *usage, *accountAsk:
		return false
	}
	return true
}

// admit answers at once, or when the lease that it needs is durable.
func (a *accountActor) admit(m *admission) {
	if a.leaving {
		m.Reject(mailbox.ErrStopped)
		return
	}
	now := a.clock.now()
	verdict, need := a.account.Admit(m.Query.key, now, a.terms)
	if need == account.LeaseNeeded {
		a.park(m, now)
		return
	}
	if verdict.Admitted && !a.leasing && a.stopped == nil {
		a.lease(m.Query.key, now, 0)
	}
	a.grant(m, verdict, now)
}

// grant answers a question. An admission that nobody hears of any more costs nothing.
func (a *accountActor) grant(m *admission, verdict account.Verdict, now account.Moment) {
	now = a.account.Dated(now)
	heard := m.Reply(account.Grant{Verdict: verdict, Account: a.id, At: now}, nil)
	if !heard && verdict.Admitted {
		a.account.Refund(now)
	}
}

// park keeps a question until the lease is durable. Nothing is parked without a lease in flight.
func (a *accountActor) park(m *admission, now account.Moment) {
	switch {
	case a.stopped != nil:
		m.Reject(a.stopped)
		return
	case a.quorum.lost():
		m.Reject(readOnly(errNoMajority))
		return
	case len(a.parked) >= a.limits.parked:
		m.Reject(mailbox.ErrOverloaded)
		return
	}
	if !a.leasing {
		a.lease(m.Query.key, now, len(a.parked)+1)
	}
	if !a.leasing {
		m.Reject(errNoLease)
		return
	}
	a.press()
	a.parked = append(a.parked, m)
}

// errNoLease cannot happen: the rules want a lease and give none.
var errNoLease = &engine.Error{
	Code: engine.CodeInternalError, Message: "an internal error", Cause: errors.New("an account needs a lease and may not ask for one"),
}

// lease asks the journal for the next lease when it is time.
func (a *accountActor) lease(key account.Digest, now account.Moment, waiting int) {
	event := a.account.NextLease(key, now, a.terms, waiting)
	if event == nil {
		return
	}
	record, err := record.Encode(event)
	if err != nil {
		a.account.LeaseLost()
		return
	}
	a.leasing, a.pressed = true, waiting > 0
	a.outbox.post(wish{account: a.id, event: event, record: record, heard: a.heard}, a.pressed)
}

// press has the lease in flight written at once: it was asked for in time, and somebody waits for it now.
func (a *accountActor) press() {
	if a.leasing && !a.pressed {
		a.pressed = true
		a.outbox.tell()
	}
}

// leased goes on after a lease has become durable, or not.
func (a *accountActor) leased(m *kept) {
	a.leasing = false
	switch {
	case m.err == errConflict && !a.leaving:
		a.account.LeaseLost()
		a.serve()
		return
	case m.err == errConflict:
		m.err = mailbox.ErrStopped
	}
	if m.err != nil {
		a.account.LeaseLost()
		a.settleParked(m.err)
		a.leave()
		return
	}
	a.account.Apply(m.event)
	if a.leaving {
		a.settleParked(mailbox.ErrStopped)
		a.leave()
		return
	}
	a.serve()
}

// serve asks again for those who waited.
func (a *accountActor) serve() {
	now := a.clock.now()
	questions := a.parked
	a.parked = nil
	for i, m := range questions {
		if m.Abandoned() {
			m.Reject(mailbox.ErrExpired)
			continue
		}
		key := m.Query.key
		verdict, need := a.account.Admit(key, now, a.terms)
		if need == account.LeaseNeeded {
			a.parked = append(a.parked, questions[i:]...)
			a.lease(key, now, len(a.parked))
			break
		}
		a.grant(m, verdict, now)
	}
	if len(a.parked) > 0 && !a.leasing {
		a.settleParked(errNoLease)
	}
}

func (a *accountActor) settleParked(why *engine.Error) {
	questions := a.parked
	a.parked = nil
	for _, m := range questions {
		m.Reject(why)
	}
}

// usage are both windows; in the name of a key, or the reason why the key is refused.
func (a *accountActor) usage(q usageQuery) (account.Verdict, error) {
	if q.byKey {
		key, known := a.account.Key(q.key)
		switch {
		case !known:
			return account.Verdict{}, errInvalidKey
		case !key.Active():
			return account.Verdict{}, errRevokedKey
		case !a.account.Record().SuspendedAt.IsZero():
			return account.Verdict{}, errSuspended
		}
	}
	return a.account.Windows(a.clock.now(), a.terms), nil
}

// idle reports that the account needs no actor: nothing is counted in memory alone and nothing is awaited.
// Only for the shard, while the actor is quiet.
func (a *accountActor) idle(now account.Moment) bool {
	return !a.leasing && a.flight == nil && len(a.parked) == 0 && len(a.waiting) == 0 && a.account.Idle(now)
}

// leave gives the lease back when the node stops and nothing of the account is in flight any more.
func (a *accountActor) leave() {
	if !a.leaving || a.leasing || a.flight != nil {
		return
	}
	w := wish{account: a.id, firm: true, last: true}
	if a.stopped == nil {
		if event := a.account.Return(a.clock.now()); event != nil {
			if record, err := record.Encode(event); err == nil {
				w.event, w.record = event, record
			}
		}
	}
	a.stopped = mailbox.ErrStopped
	a.outbox.post(w, true)
}

// Abort answers everybody who waits: the actor stops, or the node does.
func (a *accountActor) Abort(why *engine.Error) {
	a.stopped = why
	a.settleParked(why)
	if a.flight != nil {
		a.flight.Reject(why)
		a.flight = nil
	}
	for _, m := range a.waiting {
		m.Reject(why)
	}
	a.waiting = nil
}
