package accounts

import (
	"errors"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Questions to an account actor. All but admissions go through the shard of the account.
type (
	admission = mailbox.Question[admissionQuery, account.Admission]
	// Refund takes an admission back, of an account or of an anonymous client.
	Refund     = mailbox.Question[account.Admission, struct{}]
	usage      = mailbox.Question[UsageQuery, account.QuotaResult]
	accountAsk = mailbox.Question[accountQuery, accountAnswer]
	change     = mailbox.Question[changeQuery, struct{}]
)

type (
	admissionQuery struct {
		account uint64
		key     account.Digest
	}
	// UsageQuery asks for both windows without a charge: for a key, which must be valid, or for the account itself.
	UsageQuery struct {
		account uint64
		key     account.Digest
		byKey   bool
	}
	accountQuery  struct{ account uint64 }
	accountAnswer struct {
		record  account.Record
		verdict account.QuotaResult
	}
	// changeQuery decides an event of the account, nil if there is nothing to change.
	changeQuery struct {
		account uint64
		decide  func(*account.Account, account.ClockReading) (account.Event, error)
	}
)

// eventWritten is the result of writing an event of the account.
type eventWritten struct {
	mailbox.OneWay
	event account.Event
	err   *engine.Error
}

// returnLease makes an account return what is left of its lease: the node stops.
type returnLease struct{ mailbox.OneWay }

// AccountActor owns one account that is in use. Its shard loads the account, and evicts it when it is idle.
type AccountActor struct {
	*accountCommon
	ID        uint64
	Account   *account.Account
	remoteSeq uint64 // messages of other nodes' records so far
	asked     bool   // since the shard's last sweep

	Leasing  bool         // a lease is being written
	urgent   bool         // a request waits for it
	stopping bool         // the node stops: leases are returned
	parked   []*admission // wait for the lease
	changes  []*change    // wait for InFlight
	InFlight *change
	stopped  *engine.Error // not nil: no leases and changes any more
}

// accountCommon is what the accounts of a shard share. It is constant.
type accountCommon struct {
	quotaPolicy account.QuotaPolicy
	clock       *steadyClock
	quorum      commitlog.Quorum
	outbox      *outbox
	parkedMax   int
	changesMax  int
}

// Receive implements mailbox.Actor.
func (a *AccountActor) Receive(l mailbox.Message) {
	a.asked = a.asked || l.Asked()
	switch m := l.(type) {
	case *admission:
		a.admit(m)
	case *Refund:
		a.Account.Refund(m.Query.At)
		m.Reply(struct{}{}, nil)
	case *usage:
		m.Reply(a.usage(m.Query))
	case *accountAsk:
		m.Reply(accountAnswer{a.Account.Record(), a.Account.Usage(a.clock.Now(), a.quotaPolicy)}, nil)
	case *change:
		a.change(m)
	case *eventWritten:
		a.written(m)
	case *commitlog.RemoteEvents[account.Event]:
		a.remote(m)
	case *checkReturn:
		a.checkReturn()
	case *commitlog.SnapshotRequest:
		m.SetAccount(EncodeEvicted(a.Account))
	case *returnLease:
		a.stopping = true
		a.expedite()
		a.giveLeaseBack()
	case *mailbox.Halt:
		a.Abort(m.Why)
	}
}

// Fatal implements mailbox.Actor: after a panic over an admission or a usage question the counts may be too high by
// one; after others the state may be wrong.
func (a *AccountActor) Fatal(l mailbox.Message) bool {
	switch l.(type) {
	case *admission, *Refund, *usage, *accountAsk:
		return false
	}
	return true
}

// admit answers at once, or when the lease that it needs is durable.
func (a *AccountActor) admit(m *admission) {
	if a.stopping {
		m.Reject(mailbox.ErrStopped)
		return
	}
	now := a.clock.Now()
	verdict, needsLease := a.Account.Admit(m.Query.key, now, a.quotaPolicy)
	if needsLease {
		a.park(m, now)
		return
	}
	if verdict.Admitted && !a.Leasing && a.stopped == nil {
		a.lease(m.Query.key, now, 0)
	}
	a.reply(m, verdict, now)
}

// reply answers an admission. It is taken back if the caller has gone.
func (a *AccountActor) reply(m *admission, verdict account.QuotaResult, now account.ClockReading) {
	now = a.Account.WithDay(now)
	heard := m.Reply(account.Admission{QuotaResult: verdict, Account: a.ID, At: now}, nil)
	if !heard && verdict.Admitted {
		a.Account.Refund(now)
	}
}

// park keeps a question until a lease is durable. It makes sure that one is being written.
func (a *AccountActor) park(m *admission, now account.ClockReading) {
	switch {
	case a.stopped != nil:
		m.Reject(a.stopped)
		return
	case a.quorum.Lost():
		m.Reject(commitlog.ReadOnly(commitlog.ErrNoMajority))
		return
	case len(a.parked) >= a.parkedMax:
		m.Reject(mailbox.ErrOverloaded)
		return
	}
	if !a.Leasing {
		a.lease(m.Query.key, now, len(a.parked)+1)
	}
	if !a.Leasing {
		m.Reject(errNoLease)
		return
	}
	a.expedite()
	a.parked = append(a.parked, m)
}

// errNoLease is an internal error: the rules need a lease and give none.
var errNoLease = &engine.Error{
	Code: engine.CodeInternalError, Message: "an internal error", Cause: errors.New("an account needs a lease and may not ask for one"),
}

// lease has the next lease written if it is time.
func (a *AccountActor) lease(key account.Digest, now account.ClockReading, waiting int) {
	event := a.Account.NextLease(key, now, a.quotaPolicy, waiting)
	if event == nil {
		return
	}
	record, err := record.Encode(event)
	if err != nil {
		a.Account.AbortLease()
		return
	}
	a.Leasing, a.urgent = true, waiting > 0
	a.outbox.post(pendingEvent{account: a.ID, event: event, record: record, remoteSeq: a.remoteSeq}, a.urgent)
}

// expedite has the lease written at once: a request waits for it now.
func (a *AccountActor) expedite() {
	if a.Leasing && !a.urgent {
		a.urgent = true
		a.outbox.notify()
	}
}

// leased continues after a lease has been written, or not.
func (a *AccountActor) leased(m *eventWritten) {
	a.Leasing = false
	switch {
	case m.err == commitlog.ErrConflict && !a.stopping:
		a.Account.AbortLease()
		a.admitParked()
		return
	case m.err == commitlog.ErrConflict:
		m.err = mailbox.ErrStopped
	}
	if m.err != nil {
		a.Account.AbortLease()
		a.RejectParked(m.err)
		a.giveLeaseBack()
		return
	}
	a.Account.Apply(m.event)
	if a.stopping {
		a.RejectParked(mailbox.ErrStopped)
		a.giveLeaseBack()
		return
	}
	a.admitParked()
}

// admitParked decides the parked questions again.
func (a *AccountActor) admitParked() {
	now := a.clock.Now()
	questions := a.parked
	a.parked = nil
	for i, m := range questions {
		if m.Abandoned() {
			m.Reject(mailbox.ErrExpired)
			continue
		}
		key := m.Query.key
		verdict, needsLease := a.Account.Admit(key, now, a.quotaPolicy)
		if needsLease {
			a.parked = append(a.parked, questions[i:]...)
			a.lease(key, now, len(a.parked))
			break
		}
		a.reply(m, verdict, now)
	}
	if len(a.parked) > 0 && !a.Leasing {
		a.RejectParked(errNoLease)
	}
}

// RejectParked rejects the parked questions.
func (a *AccountActor) RejectParked(why *engine.Error) {
	questions := a.parked
	a.parked = nil
	for _, m := range questions {
		m.Reject(why)
	}
}

// usage returns both windows, or the error of a key that is not valid.
func (a *AccountActor) usage(q UsageQuery) (account.QuotaResult, error) {
	if q.byKey {
		key, known := a.Account.Key(q.key)
		switch {
		case !known:
			return account.QuotaResult{}, errInvalidKey
		case !key.Active():
			return account.QuotaResult{}, errRevokedKey
		case !a.Account.Record().SuspendedAt.IsZero():
			return account.QuotaResult{}, errSuspended
		}
	}
	return a.Account.Usage(a.clock.Now(), a.quotaPolicy), nil
}

// idle reports whether the account can be evicted: nothing is counted only in memory and nothing is under way. Only its
// shard calls it, while the actor is idle.
func (a *AccountActor) idle(now account.ClockReading) bool {
	return !a.Leasing && a.InFlight == nil && len(a.parked) == 0 && len(a.changes) == 0 && a.Account.Idle(now)
}

// giveLeaseBack returns the lease when the node stops, once no event of the account is being written.
func (a *AccountActor) giveLeaseBack() {
	if !a.stopping || a.Leasing || a.InFlight != nil {
		return
	}
	w := pendingEvent{account: a.ID, unconditional: true, final: true}
	if a.stopped == nil {
		if event := a.Account.Return(a.clock.Now()); event != nil {
			if record, err := record.Encode(event); err == nil {
				w.event, w.record = event, record
			}
		}
	}
	a.stopped = mailbox.ErrStopped
	a.outbox.post(w, true)
}

// Abort implements mailbox.Actor: it rejects all questions.
func (a *AccountActor) Abort(why *engine.Error) {
	a.stopped = why
	a.RejectParked(why)
	if a.InFlight != nil {
		a.InFlight.Reject(why)
		a.InFlight = nil
	}
	for _, m := range a.changes {
		m.Reject(why)
	}
	a.changes = nil
}
