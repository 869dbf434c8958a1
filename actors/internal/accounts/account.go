package accounts

import (
	"errors"
	"sync/atomic"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/keyindex"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Requests to an AccountActor. An admissionRequest asks whether the quotas of the account admit one API request; it may
// go directly to the actor. All others go through the ShardActor that keeps the account.
type (
	admissionRequest = mailbox.Request[admissionQuery, account.Admission]
	// Refund takes back one counted API request of an account, or of a client without an API key.
	Refund         = mailbox.Request[account.Admission, struct{}]
	usageRequest   = mailbox.Request[UsageQuery, account.QuotaResult]
	accountRequest = mailbox.Request[accountQuery, accountReply]
	changeRequest  = mailbox.Request[changeQuery, struct{}]
)

type (
	admissionQuery struct{ key account.Digest }
	// UsageQuery asks how much of its quotas (of the day and of the minute) an account has used.
	UsageQuery struct {
		account uint64
		key     account.Digest
		byKey   bool // key must be a valid API key of the account, else the reply is an error
	}
	accountQuery struct{ account uint64 }
	accountReply struct {
		record account.Record
		usage  account.QuotaResult
	}
	// changeQuery asks an account to make a change. decide returns the event, or nil if the account stays as it is.
	changeQuery struct {
		account uint64
		decide  func(*account.Account, account.ClockReading) (account.Event, error)
	}
)

// eventWritten tells an account that one of its events is durable, or why it is not.
type eventWritten struct {
	mailbox.OneWay
	event account.Event
	err   *engine.Error
}

// eventWritten returns the message about an event. All quota leases (account.Leased), which reserve a part of a quota,
// use the same message, because the account writes one lease at a time.
func (a *AccountActor) eventWritten(event account.Event, err *engine.Error) *eventWritten {
	if _, leased := event.(*account.Leased); leased {
		a.leaseWritten = eventWritten{event: event, err: err}
		return &a.leaseWritten
	}
	return &eventWritten{event: event, err: err}
}

// returnLease tells an account that the node stops. The account then admits no more requests, and returns the unspent
// part of its quota lease.
type returnLease struct{ mailbox.OneWay }

// AccountActor is the actor of one account, with its mailbox. It exists from the start of the node, or the creation of
// the account, to the stop.
type AccountActor struct {
	Ref mailbox.Ref
	*accountCommon
	ID       uint64
	Account  *account.Account
	stopped  *engine.Error // if not nil, the error of all new leases and changes
	Leasing  bool          // a lease is being written to the log
	urgent   bool          // a request waits for that lease, or soon will
	stopping bool          // returnLease has arrived

	remoteSeq  uint32              // number of RemoteEvents messages (events of other nodes) received
	remoteSent uint32              // number of these messages that the shard has sent; only the shard uses this field
	queued     []*admissionRequest // requests that wait for that lease
	Changes    *accountChanges     // nil until the first change

	leaseWritten eventWritten         // message about the lease that is being written; reused
	firstQueued  [1]*admissionRequest // backing array of queued
}

// accountChanges are the changes that an account has not finished.
type accountChanges struct {
	waiting  []*changeRequest // not started, in order
	inFlight *changeRequest   // its event is being written; nil = none
}

// busy reports whether the event of a change is being written.
func (a *AccountActor) busy() bool { return a.Changes != nil && a.Changes.inFlight != nil }

// accountCommon is the constant data that all accounts of a shard share.
type accountCommon struct {
	quotaPolicy account.QuotaPolicy
	grants      atomic.Pointer[account.DayGrants] // set by the shard
	clock       *monotonicClock
	majority    commitlog.Majority
	keys        *keyindex.Index
	outbox      *outbox
	queuedMax   int // maximum length of AccountActor.queued
	changesMax  int // maximum length of AccountActor.changes
}

// policy returns the quota policy with the grants of the shard.
func (c *accountCommon) policy() account.QuotaPolicy {
	policy := c.quotaPolicy
	policy.Grants = c.grants.Load()
	return policy
}

// Receive implements mailbox.Actor.
func (a *AccountActor) Receive(msg mailbox.Message) {
	switch m := msg.(type) {
	case *admissionRequest:
		a.admit(m)
	case *Refund:
		a.Account.Refund(m.Query.At)
		m.Reply(struct{}{}, nil)
	case *usageRequest:
		m.Reply(a.usage(m.Query))
	case *accountRequest:
		m.Reply(accountReply{a.Account.Record(), a.Account.Usage(a.clock.Now(), a.policy())}, nil)
	case *changeRequest:
		a.change(m)
	case *eventWritten:
		a.written(m)
	case *commitlog.RemoteEvents[account.Event]:
		a.remote(m)
	case *checkReturn:
		a.checkReturn()
	case *commitlog.SnapshotRequest:
		a.Account.Shrink(a.clock.Now()) // snapshots are rare, and come to every account
		state := a.Account.State()
		m.SetAccount(record.AppendAccount(nil, &state))
	case *returnLease:
		a.stopping = true
		a.expedite()
		a.returnLeaseOnStop()
	case *mailbox.NodeFailed:
		a.RejectAll(m.Err)
	}
}

// FailsNode implements mailbox.Actor. A panic over one of the listed requests is not fatal: at most, the account has
// counted one API request too many. After a panic over any other message the state of the account may be wrong.
func (a *AccountActor) FailsNode(msg mailbox.Message) bool {
	switch msg.(type) {
	case *admissionRequest, *Refund, *usageRequest, *accountRequest:
		return false
	}
	return true
}

// admit replies at once or, if the request needs another lease, when that lease is durable.
func (a *AccountActor) admit(m *admissionRequest) {
	if a.stopping {
		m.Reject(mailbox.ErrStopped)
		return
	}
	now := a.Account.WithDay(a.clock.Now()) // computes the day once
	result, needsLease := a.Account.Admit(m.Query.key, now, a.policy())
	if needsLease {
		a.queueForLease(m, now)
		return
	}
	switch {
	case !result.Admitted || a.stopped != nil:
	case !a.Leasing:
		a.lease(m.Query.key, now, 0)
	case !a.urgent && a.Account.LeaseLow(now):
		a.urgent = true
		a.outbox.flusher.hurry()
	}
	a.reply(m, result, now)
}

// reply sends the result of an admission. If the caller no longer waits for the result, reply takes the admission back.
func (a *AccountActor) reply(m *admissionRequest, result account.QuotaResult, now account.ClockReading) {
	now = a.Account.WithDay(now)
	delivered := m.Reply(account.Admission{QuotaResult: result, Account: a.ID, At: now}, nil)
	if !delivered && result.Admitted {
		a.Account.Refund(now)
	}
}

// queueForLease queues a request until the next lease is durable. It asks for that lease if no lease is being written.
func (a *AccountActor) queueForLease(m *admissionRequest, now account.ClockReading) {
	switch {
	case a.stopped != nil:
		m.Reject(a.stopped)
		return
	case a.majority.Lost():
		m.Reject(errLeaseUnavailable)
		return
	case len(a.queued) >= a.queuedMax:
		m.Reject(mailbox.ErrOverloaded)
		return
	}
	if !a.Leasing {
		a.lease(m.Query.key, now, len(a.queued)+1)
	}
	if !a.Leasing {
		m.Reject(errNoLease)
		return
	}
	a.expedite()
	if a.queued == nil {
		a.queued = a.firstQueued[:0]
	}
	a.queued = append(a.queued, m)
}

// errNoLease means that Account.Admit asked for a lease and Account.NextLease gave none, which is a bug.
var errNoLease = &engine.Error{
	Code: engine.CodeInternalError, Message: "an internal error", Cause: errors.New("a request needs a lease, but the account's rules give none"),
}

// lease posts the next quota lease to the outbox of the shard (its list of events to write), if the account needs one.
// waiting is the number of requests that wait for this lease.
func (a *AccountActor) lease(key account.Digest, now account.ClockReading, waiting int) {
	event := a.Account.NextLease(key, now, a.policy(), waiting)
	if event == nil {
		return
	}
	record, err := a.outbox.encode(event)
	if err != nil {
		a.Account.AbortLease()
		return
	}
	a.Leasing, a.urgent = true, waiting > 0
	a.outbox.post(pendingEvent{account: a, event: event, record: record, remoteSeq: a.remoteSeq}, a.urgent)
}

// expedite makes the shard write the posted lease at once instead of after FlushDelay.
func (a *AccountActor) expedite() {
	if a.Leasing && !a.urgent {
		a.urgent = true
		a.outbox.notify()
	}
}

// leased handles the result of writing a lease. After a conflict with an event of another node it calls admitQueued,
// which may ask for another lease.
func (a *AccountActor) leased(m *eventWritten) {
	a.Leasing = false
	switch {
	case m.err == commitlog.ErrConflict && !a.stopping:
		a.Account.AbortLease()
		a.admitQueued()
		return
	case m.err == commitlog.ErrConflict:
		m.err = mailbox.ErrStopped
	}
	if m.err != nil {
		a.Account.AbortLease()
		if m.err.Code == engine.CodeNoMajority {
			m.err = errLeaseUnavailable
		}
		a.RejectQueued(m.err)
		a.returnLeaseOnStop()
		return
	}
	a.Account.Apply(m.event)
	a.leaseWritten = eventWritten{}
	if a.stopping {
		a.RejectQueued(mailbox.ErrStopped)
		a.returnLeaseOnStop()
		return
	}
	a.admitQueued()
}

// admitQueued tries to admit the queued requests. If the lease is spent before all are admitted, it asks for the next
// lease.
func (a *AccountActor) admitQueued() {
	now := a.clock.Now()
	requests := a.queued
	a.queued = nil
	for i, m := range requests {
		if m.Abandoned() {
			m.Reject(mailbox.ErrExpired)
			continue
		}
		key := m.Query.key
		result, needsLease := a.Account.Admit(key, now, a.policy())
		if needsLease {
			a.queued = append(a.queued, requests[i:]...)
			a.lease(key, now, len(a.queued))
			break
		}
		a.reply(m, result, now)
	}
	if len(a.queued) > 0 && !a.Leasing {
		a.RejectQueued(errNoLease)
	}
}

// RejectQueued rejects the queued requests.
func (a *AccountActor) RejectQueued(err *engine.Error) {
	requests := a.queued
	a.queued = nil
	for _, m := range requests {
		m.Reject(err)
	}
}

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
	return a.Account.Usage(a.clock.Now(), a.policy()), nil
}

// returnLeaseOnStop posts the return of the lease when the node stops. While an event of the account is being written
// it does nothing: leased and written call it again afterwards.
func (a *AccountActor) returnLeaseOnStop() {
	if !a.stopping || a.Leasing || a.busy() {
		return
	}
	if a.stopped == nil {
		if event := a.Account.Return(a.clock.Now()); event != nil {
			if record, err := record.Encode(event); err == nil {
				a.outbox.post(pendingEvent{account: a, event: event, record: record, unconditional: true}, true)
			}
		}
	}
	a.outbox.returned(a.stopped == nil)
	a.stopped = mailbox.ErrStopped
}

// RejectAll implements mailbox.Actor. It rejects all waiting requests.
func (a *AccountActor) RejectAll(err *engine.Error) {
	a.stopped = err
	a.RejectQueued(err)
	if a.Changes == nil {
		return
	}
	if a.busy() {
		a.Changes.inFlight.Reject(err)
	}
	for _, m := range a.Changes.waiting {
		m.Reject(err)
	}
	a.Changes = nil
}
