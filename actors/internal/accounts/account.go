package accounts

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/keyindex"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Requests to an AccountActor. An admissionRequest asks whether the quotas of the account admit one API request. It and
// a usageRequest may go directly to the actor. All others go through the ShardActor that keeps the account.
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
	// UsageQuery asks how much of its quotas (of the day and of the minute) the account of a valid key has used.
	UsageQuery   struct{ key account.Digest }
	accountQuery struct{ account uint64 }
	accountReply struct {
		record account.Record
		usage  account.QuotaResult
	}
	// changeQuery asks an account to make a change. decide returns the event, or nil if the account stays as it is.
	changeQuery struct {
		account uint64
		decide  decideChange
	}
	decideChange = func(*account.Account, account.ClockReading) (account.Event, error)
)

// eventWrite is an event that an account has decided and sends to its shard. The shard sends it back when the event is
// durable, or with the reason why it is not.
type eventWrite struct {
	mailbox.OneWay
	account       *AccountActor
	event         account.Event
	record        []byte         // the encoded event
	request       *changeRequest // caused the event; nil for quota leases (reserved parts of quotas) and their returns
	remoteSeq     uint32         // AccountActor.remoteSeq when the event was made
	unconditional bool           // events of other nodes cannot make the event invalid
	urgent        bool           // false: the shard may wait until more events join the write
	err           *engine.Error  // the result
}

// Reject implements mailbox.Message.
func (w *eventWrite) Reject(err *engine.Error) {
	if w.request != nil {
		w.request.Reject(err)
	}
}

// returnLease tells an account that the node stops. The account then admits no more requests, and returns the unspent
// part of its quota lease.
type returnLease struct{ mailbox.OneWay }

// checkReturn tells an account to return its quota lease if the account does not need the lease. Other nodes can then
// use that part of the quota.
type checkReturn struct{ mailbox.OneWay }

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
	Changes  int32         // number of changes whose events are being written

	remoteSeq   uint32               // number of RemoteEvents messages (events of other nodes) received
	remoteSent  uint32               // number of these messages that the shard has sent; only the shard uses this field
	queued      []*admissionRequest  // requests that wait for that lease
	firstQueued [1]*admissionRequest // backing array of queued
}

// accountCommon is the constant data that all accounts of a shard share.
type accountCommon struct {
	quotaPolicy account.QuotaPolicy
	grants      atomic.Pointer[account.DayGrants] // set by the shard
	clock       *monotonicClock
	majority    commitlog.Majority
	keys        *keyindex.Index
	shard       *mailbox.Ref
	timer       *writeTimer
	queuedMax   int // maximum length of AccountActor.queued
	changesMax  int // maximum of AccountActor.Changes
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
		m.Reply(a.usage(m.Query.key))
	case *accountRequest:
		m.Reply(accountReply{a.Account.Record(), a.Account.Usage(a.clock.Now(), a.policy())}, nil)
	case *changeRequest:
		a.change(m)
	case *eventWrite:
		a.written(m)
	case *commitlog.RemoteEvents[account.Event]:
		a.remote(m)
	case *checkReturn:
		if a.stopped == nil && !a.stopping {
			a.postReturn(a.Account.NextReturn(a.clock.Now()), false)
		}
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
		a.timer.hurry()
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

// lease sends the next quota lease to the shard, if the account needs one. waiting is the number of requests that wait
// for this lease.
func (a *AccountActor) lease(key account.Digest, now account.ClockReading, waiting int) {
	event := a.Account.NextLease(key, now, a.policy(), waiting)
	if event == nil {
		return
	}
	record, err := record.Encode(event)
	if err != nil {
		a.Account.AbortLease()
		return
	}
	a.Leasing, a.urgent = true, waiting > 0
	a.shard.Send(&eventWrite{account: a, event: event, record: record, remoteSeq: a.remoteSeq, urgent: a.urgent})
}

// expedite makes the shard write the lease at once instead of after FlushDelay.
func (a *AccountActor) expedite() {
	if a.Leasing && !a.urgent {
		a.urgent = true
		a.shard.Send(&Flush{})
	}
}

// leased handles the result of writing a lease. After a conflict with an event of another node it calls admitQueued,
// which may ask for another lease.
func (a *AccountActor) leased(w *eventWrite) {
	a.Leasing = false
	if w.err == nil {
		a.Account.Apply(w.event)
	} else {
		a.Account.AbortLease()
	}
	switch {
	case a.stopping:
		a.RejectQueued(mailbox.ErrStopped)
		a.returnLeaseOnStop()
	case w.err == nil || w.err == commitlog.ErrConflict:
		a.admitQueued()
	case w.err.Code == engine.CodeNoMajority:
		a.RejectQueued(errLeaseUnavailable)
	default:
		a.RejectQueued(w.err)
	}
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

// usage returns an error if key is not a valid API key of the account.
func (a *AccountActor) usage(key account.Digest) (account.QuotaResult, error) {
	if err := keyError(a.Account.Authenticate(key)); err != nil {
		return account.QuotaResult{}, err
	}
	return a.Account.Usage(a.clock.Now(), a.policy()), nil
}

// change starts to make a change. Until its event is durable, other changes do not see it.
func (a *AccountActor) change(m *changeRequest) {
	switch {
	case a.stopping:
		m.Reject(mailbox.ErrStopped)
	case a.stopped != nil:
		m.Reject(a.stopped)
	case int(a.Changes) >= a.changesMax:
		m.Reject(mailbox.ErrOverloaded)
	default:
		a.decide(m)
	}
}

// decide makes the event of a change and sends it to the shard. If the change panics, only this change fails.
func (a *AccountActor) decide(m *changeRequest) {
	defer func() {
		if reason := recover(); reason != nil {
			m.Reject(Internal(fmt.Errorf("panic while deciding: %v\n%s", reason, debug.Stack())))
		}
	}()
	event, err := m.Query.decide(a.Account, a.clock.Now())
	if err != nil || event == nil {
		m.Reply(struct{}{}, err)
		return
	}
	record, err := record.Encode(event)
	if err != nil {
		a.undo(event)
		m.Reply(struct{}{}, err)
		return
	}
	a.Changes++
	a.shard.Send(&eventWrite{account: a, event: event, record: record, request: m, remoteSeq: a.remoteSeq, urgent: true})
}

// undo reverts what decide changed in the account for an event that will not become durable.
func (a *AccountActor) undo(event account.Event) {
	if _, ok := event.(*account.KeyCreated); ok {
		a.Account.AbortKey()
	}
}

// written handles the result of writing an event. It applies a durable event and replies to the caller of the change.
// After a conflict with an event of another node it makes the change again.
func (a *AccountActor) written(w *eventWrite) {
	switch e := w.event.(type) {
	case *account.Leased:
		a.leased(w)
		return
	case *account.Returned:
		if w.err == nil {
			a.Account.Apply(e)
		} else {
			a.Account.AbortReturn(e)
		}
		return
	}
	a.Changes--
	if w.err == nil {
		a.Account.Apply(w.event)
		a.indexKey(w.event)
	} else {
		a.undo(w.event)
	}
	switch {
	case w.err != commitlog.ErrConflict:
		w.request.Reply(struct{}{}, asError(w.err))
	case w.request.Abandoned():
		w.request.Reject(mailbox.ErrExpired)
	default:
		a.decide(w.request)
	}
	a.returnLeaseOnStop()
}

// indexKey makes the key of an event known to Accounts.Admit. Another account cannot have the fingerprint of the key:
// the node that made the key has reserved it.
func (a *AccountActor) indexKey(event account.Event) {
	if created, ok := event.(*account.KeyCreated); ok && !a.keys.SetActor(created.Key.Digest, a.ID, &a.Ref) {
		panic(fmt.Errorf("apply the new key of account %d: another account has a key with the same fingerprint", a.ID))
	}
}

// asError converts a nil pointer to a nil interface.
func asError(err *engine.Error) error {
	if err == nil {
		return nil
	}
	return err
}

// remote applies events of another node. An event that this node has decided but not yet written then conflicts with
// them: its write fails with ErrConflict, unless the event is unconditional (eventWrite.unconditional).
func (a *AccountActor) remote(m *commitlog.RemoteEvents[account.Event]) {
	defer m.Window.Release()
	a.remoteSeq++
	now := a.clock.Now()
	for _, event := range m.Events {
		a.Account.ApplyRemote(event, now)
		a.indexKey(event)
	}
}

// postReturn sends the return of a lease to the shard. event may be nil.
func (a *AccountActor) postReturn(event *account.Returned, urgent bool) {
	if event == nil {
		return
	}
	record, err := record.Encode(event)
	if err != nil {
		a.Account.AbortReturn(event)
		return
	}
	a.shard.Send(&eventWrite{account: a, event: event, record: record, unconditional: true, urgent: urgent})
}

// returnLeaseOnStop returns the lease when the node stops. While an event of the account is being written it does
// nothing: leased and written call it again afterwards.
func (a *AccountActor) returnLeaseOnStop() {
	if !a.stopping || a.Leasing || a.Changes > 0 {
		return
	}
	if a.stopped == nil {
		a.postReturn(a.Account.Return(a.clock.Now()), true)
	}
	a.shard.Send(&leaseReturned{failed: a.stopped != nil})
	a.stopped = mailbox.ErrStopped
}

// RejectAll implements mailbox.Actor. It rejects all waiting requests. The shard rejects those of changes.
func (a *AccountActor) RejectAll(err *engine.Error) {
	a.stopped = err
	a.RejectQueued(err)
}
