package accounts

import (
	"errors"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Requests to an account actor. All but admissions go through the shard of the account.
type (
	admission = mailbox.Request[admissionQuery, account.Admission]
	// Refund takes an admission back, of an account or of an anonymous client.
	Refund     = mailbox.Request[account.Admission, struct{}]
	usage      = mailbox.Request[UsageQuery, account.QuotaResult]
	accountAsk = mailbox.Request[accountQuery, accountAnswer]
	change     = mailbox.Request[changeQuery, struct{}]
)

type (
	admissionQuery struct {
		account uint64
		key     account.Digest
	}
	// UsageQuery asks for both windows and charges nothing. With byKey the key must be valid.
	UsageQuery struct {
		account uint64
		key     account.Digest
		byKey   bool
	}
	accountQuery  struct{ account uint64 }
	accountAnswer struct {
		record account.Record
		usage  account.QuotaResult
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

// returnLease makes an account return the rest of its lease, because the node stops.
type returnLease struct{ mailbox.OneWay }

// AccountActor owns one account that is in use. Its shard loads the account, and evicts it when it is idle.
type AccountActor struct {
	*accountCommon
	ID        uint64
	Account   *account.Account
	remoteSeq uint64 // messages with records of other nodes so far
	asked     bool   // a request came since the last sweep of the shard

	Leasing  bool          // a lease is being written
	urgent   bool          // a request waits for the lease
	stopping bool          // the node stops, so the lease is returned
	parked   []*admission  // requests that wait for the lease
	changes  []*change     // changes that wait for InFlight
	InFlight *change       // the change whose event is being written, or nil
	stopped  *engine.Error // not nil: leases and changes are refused with it
}

// accountCommon is shared by the accounts of a shard and constant.
type accountCommon struct {
	quotaPolicy account.QuotaPolicy
	clock       *steadyClock
	quorum      commitlog.Quorum
	outbox      *outbox
	parkedMax   int // parked requests of an account
	changesMax  int
}

// Receive implements mailbox.Actor.
func (a *AccountActor) Receive(msg mailbox.Message) {
	a.asked = a.asked || msg.IsRequest()
	switch m := msg.(type) {
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
		a.returnLeaseOnStop()
	case *mailbox.Halt:
		a.Abort(m.Err)
	}
}

// Fatal implements mailbox.Actor. After a panic over a request about admission or usage a count may be too high by
// one. After a panic over another message the state may be wrong.
func (a *AccountActor) Fatal(msg mailbox.Message) bool {
	switch msg.(type) {
	case *admission, *Refund, *usage, *accountAsk:
		return false
	}
	return true
}

// admit answers a request at once or, if it needs a lease, when the lease is durable.
func (a *AccountActor) admit(m *admission) {
	if a.stopping {
		m.Reject(mailbox.ErrStopped)
		return
	}
	now := a.clock.Now()
	result, needsLease := a.Account.Admit(m.Query.key, now, a.quotaPolicy)
	if needsLease {
		a.park(m, now)
		return
	}
	if result.Admitted && !a.Leasing && a.stopped == nil {
		a.lease(m.Query.key, now, 0)
	}
	a.reply(m, result, now)
}

// reply answers an admission, and takes it back if the caller has gone.
func (a *AccountActor) reply(m *admission, result account.QuotaResult, now account.ClockReading) {
	now = a.Account.WithDay(now)
	delivered := m.Reply(account.Admission{QuotaResult: result, Account: a.ID, At: now}, nil)
	if !delivered && result.Admitted {
		a.Account.Refund(now)
	}
}

// park keeps a request until the next lease is durable, and has that lease written.
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

// errNoLease is an internal error: the rules say that a request needs a lease, and refuse a lease.
var errNoLease = &engine.Error{
	Code: engine.CodeInternalError, Message: "an internal error", Cause: errors.New("an account needs a lease and may not ask for one"),
}

// lease has the next lease written if the account needs one.
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

// expedite has the lease written at once, because a request waits for it.
func (a *AccountActor) expedite() {
	if a.Leasing && !a.urgent {
		a.urgent = true
		a.outbox.notify()
	}
}

// leased handles the result of writing a lease.
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
		a.returnLeaseOnStop()
		return
	}
	a.Account.Apply(m.event)
	if a.stopping {
		a.RejectParked(mailbox.ErrStopped)
		a.returnLeaseOnStop()
		return
	}
	a.admitParked()
}

// admitParked decides the parked requests again.
func (a *AccountActor) admitParked() {
	now := a.clock.Now()
	requests := a.parked
	a.parked = nil
	for i, m := range requests {
		if m.Abandoned() {
			m.Reject(mailbox.ErrExpired)
			continue
		}
		key := m.Query.key
		result, needsLease := a.Account.Admit(key, now, a.quotaPolicy)
		if needsLease {
			a.parked = append(a.parked, requests[i:]...)
			a.lease(key, now, len(a.parked))
			break
		}
		a.reply(m, result, now)
	}
	if len(a.parked) > 0 && !a.Leasing {
		a.RejectParked(errNoLease)
	}
}

// RejectParked rejects the parked requests.
func (a *AccountActor) RejectParked(err *engine.Error) {
	requests := a.parked
	a.parked = nil
	for _, m := range requests {
		m.Reject(err)
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

// idle reports whether the account can be evicted: no count is only in memory and nothing is under way. Only the shard
// calls it, while the actor is idle.
func (a *AccountActor) idle(now account.ClockReading) bool {
	return !a.Leasing && a.InFlight == nil && len(a.parked) == 0 && len(a.changes) == 0 && a.Account.Idle(now)
}

// returnLeaseOnStop returns the lease when the node stops, once no event of the account is being written.
func (a *AccountActor) returnLeaseOnStop() {
	if !a.stopping || a.Leasing || a.InFlight != nil {
		return
	}
	last := pendingEvent{account: a.ID, unconditional: true, final: true}
	if a.stopped == nil {
		if event := a.Account.Return(a.clock.Now()); event != nil {
			if record, err := record.Encode(event); err == nil {
				last.event, last.record = event, record
			}
		}
	}
	a.stopped = mailbox.ErrStopped
	a.outbox.post(last, true)
}

// Abort implements mailbox.Actor: it rejects all requests.
func (a *AccountActor) Abort(err *engine.Error) {
	a.stopped = err
	a.RejectParked(err)
	if a.InFlight != nil {
		a.InFlight.Reject(err)
		a.InFlight = nil
	}
	for _, m := range a.changes {
		m.Reject(err)
	}
	a.changes = nil
}
