package accounts

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/keyindex"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Requests to an AccountActor. An admissionRequest asks whether the account's quotas allow one API request. Callers
// send admissionRequest and usageRequest directly to the actor, and all others to its ShardActor, which forwards them.
type (
	admissionRequest = mailbox.Request[admissionQuery, account.Admission]
	// Refund reverts the count of one API request, of an account or of a client without an API key.
	Refund         = mailbox.Request[account.Admission, struct{}]
	usageRequest   = mailbox.Request[UsageQuery, account.QuotaResult]
	accountRequest = mailbox.Request[accountQuery, accountReply]
	changeRequest  = mailbox.Request[changeQuery, struct{}]
)

type (
	admissionQuery struct{ key account.Digest }
	// UsageQuery asks for the quota usage (day and minute) of the account of a valid key.
	UsageQuery   struct{ key account.Digest }
	accountQuery struct{ account uint64 }
	accountReply struct {
		record account.Record
		usage  account.QuotaResult
	}
	// changeQuery asks an account for a change. decide returns the event, or nil if nothing changes.
	changeQuery struct {
		account uint64
		decide  decideChange
		ask     account.Event // another node's ask for a lease or its return, instead of decide
	}
	decideChange = func(*account.Account, account.ClockReading) (account.Event, error)
)

// eventWrite is an event on its way from an account to its shard. The shard returns it when the event is durable, or
// with an error. On a node of a cluster that does not lead, the event is an ask. The event that the leader writes in
// response comes with the log, and the shard returns only errors.
type eventWrite struct {
	mailbox.OneWay
	account *AccountActor
	event   account.Event
	record  []byte         // the encoded event
	request *changeRequest // caused the event; nil for this node's quota leases and their returns
	term    uint64         // of Log.Decides before the decision
	urgent  bool           // false: the shard may wait until more events join the write
	err     *engine.Error  // the result
}

// Reject implements mailbox.Message.
func (w *eventWrite) Reject(err *engine.Error) {
	if w.request != nil {
		w.request.Reject(err)
	}
}

// returnLease tells an account that the node is stopping. The account then admits no more requests, and returns the
// unspent part of its quota lease.
type returnLease struct{ mailbox.OneWay }

// checkReturn tells an account to return its quota lease if the account is idle. Other nodes can then use that quota.
type checkReturn struct{ mailbox.OneWay }

// AccountActor is the actor of one account, with its mailbox. It runs until the node stops.
type AccountActor struct {
	Ref mailbox.Ref
	*accountCommon
	ID       uint64
	Account  *account.Account
	stopped  *engine.Error // if not nil, the error for all new leases and changes
	Leasing  bool          // a lease is being written to the log; in a cluster also another node's, and a return
	urgent   bool          // a request waits for that lease, or will soon
	stopping bool          // returnLease has arrived
	Changes  int32         // number of changes whose events are being written

	askedAt     time.Duration        // monotonic time of the newest lease or return that this node of a cluster asked for
	queued      []*admissionRequest  // requests that wait for that lease
	firstQueued [1]*admissionRequest // backing array of queued
}

// accountCommon is what all accounts of a shard share. Only grants changes.
type accountCommon struct {
	quotaPolicy account.QuotaPolicy
	grants      atomic.Pointer[account.DayGrants] // set by the shard
	clock       *monotonicClock
	majority    commitlog.Majority
	log         *commitlog.Log
	node        engine.NodeID // 0 without a cluster
	askLeader   func(records [][]byte) []error
	calls       *sync.WaitGroup // goroutines that run askLeader
	asking      *atomic.Int64   // number of these
	keys        *keyindex.Index
	shard       *mailbox.Ref
	timer       *writeTimer
	queuedMax   int // maximum length of AccountActor.queued
	changesMax  int // maximum of AccountActor.Changes
}

// policy returns the quota policy, including the shard's grants.
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
		if a.stopped == nil && !a.stopping && !a.Leasing {
			a.postReturn(a.Account.NextReturn(a.clock.Now()), false)
		}
	case *commitlog.SnapshotRequest:
		a.Account.Shrink(a.clock.Now()) // frees memory; done here because every account gets this message, but rarely
		state := a.Account.State()
		m.SetAccount(record.AppendAccount(nil, &state))
	case *returnLease:
		a.stopping = true
		a.flushLease()
		a.returnLeaseOnStop()
	case *mailbox.NodeFailed:
		a.RejectAll(m.Err)
	}
}

// FailsNode implements mailbox.Actor. A panic in a request of the listed types is not fatal: at most, one API request
// too many is counted. After a panic in any other message the account's state may be wrong.
func (a *AccountActor) FailsNode(msg mailbox.Message) bool {
	switch msg.(type) {
	case *admissionRequest, *Refund, *usageRequest, *accountRequest:
		return false
	}
	return true
}

// admit replies at once, or, if the request needs another lease, when that lease is durable.
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
		a.timer.flushNow()
	}
	a.reply(m, result, now)
}

// reply sends the result of an admission. If the caller has stopped waiting, it reverts the admission.
func (a *AccountActor) reply(m *admissionRequest, result account.QuotaResult, now account.ClockReading) {
	now = a.Account.WithDay(now)
	delivered := m.Reply(account.Admission{QuotaResult: result, Account: a.ID, At: now}, nil)
	if !delivered && result.Admitted {
		a.Account.Refund(now)
	}
}

// queueForLease queues a request until the next lease is durable. It asks for that lease unless it is already being
// written.
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
		m.Reject(a.noLease())
		return
	}
	a.flushLease()
	if a.queued == nil {
		a.queued = a.firstQueued[:0]
	}
	a.queued = append(a.queued, m)
}

// errNoLease means that Account.Admit asked for a lease and Account.NextLease gave none, which is a bug.
var errNoLease = &engine.Error{
	Code: engine.CodeInternalError, Message: "an internal error", Cause: errors.New("a request needs a lease, but the account's rules give none"),
}

// lease sends the next quota lease to the shard if the account needs one. waiting is the length of the queue.
func (a *AccountActor) lease(key account.Digest, now account.ClockReading, waiting int) {
	term, decides := a.log.Decides()
	event := a.Account.NextLease(key, now, a.policy(), waiting)
	if event == nil {
		return
	}
	if a.askedAt = event.Monotonic; decides && a.inCluster() {
		if event = a.Account.GrantLease(event, now, a.policy()); event == nil {
			a.Account.AbortLease()
			return
		}
	}
	record, err := record.Encode(event)
	if err != nil {
		a.Account.AbortLease()
		return
	}
	a.Leasing, a.urgent = true, waiting > 0
	a.shard.Send(&eventWrite{account: a, event: event, record: record, term: term, urgent: a.urgent})
}

func (a *AccountActor) inCluster() bool { return a.log.Shared != nil }

// applyLease applies a durable event of a lease. In a cluster all nodes apply it in the same way.
func (a *AccountActor) applyLease(event account.Event) {
	if a.inCluster() {
		a.Account.ApplyRemote(event, a.clock.Now())
	} else {
		a.Account.Apply(event)
	}
}

// flushLease makes the shard write the lease at once instead of after FlushDelay.
func (a *AccountActor) flushLease() {
	if a.Leasing && !a.urgent {
		a.urgent = true
		a.shard.Send(&Flush{})
	}
}

// leased handles the result of writing a lease. If the lease must be decided again it calls admitQueued, which may ask
// for another one. If its outcome is unknown it counts as used once it is in the log.
func (a *AccountActor) leased(w *eventWrite) {
	if !a.answered(w.event) {
		return
	}
	a.Leasing = false
	if w.err == nil {
		a.applyLease(w.event)
	} else {
		a.Account.AbortLease()
	}
	again := w.err == commitlog.ErrNotLeader || w.err == commitlog.ErrOutcomeUnknown
	switch {
	case a.stopping:
		a.RejectQueued(mailbox.ErrStopped)
		a.returnLeaseOnStop()
	case w.err == nil || again && !a.majority.Lost():
		a.admitQueued()
	case again || w.err.Code == engine.CodeNoMajority:
		a.RejectQueued(errLeaseUnavailable)
	default:
		a.RejectQueued(w.err)
	}
}

// admitQueued admits queued requests until the lease is spent. Then it asks for the next lease.
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
		a.RejectQueued(a.noLease())
	}
}

// noLease returns the error for a request that needs a lease if the rules give none. In a cluster other nodes may have
// what is left.
func (a *AccountActor) noLease() *engine.Error {
	if a.inCluster() {
		return mailbox.ErrOverloaded
	}
	return errNoLease
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

// change starts a change. Other changes see its effect only after its event is durable.
func (a *AccountActor) change(m *changeRequest) {
	switch {
	case a.stopping:
		m.Reject(mailbox.ErrStopped)
	case a.stopped != nil:
		m.Reject(a.stopped)
	case int(a.Changes) >= a.changesMax:
		m.Reject(mailbox.ErrOverloaded)
	case m.Query.ask != nil:
		a.accept(m)
	default:
		a.decide(m)
	}
}

// decide makes the event of a change and sends it to the shard. A panic fails only this change.
func (a *AccountActor) decide(m *changeRequest) {
	defer func() {
		if reason := recover(); reason != nil {
			m.Reject(Internal(fmt.Errorf("panic while deciding: %v\n%s", reason, debug.Stack())))
		}
	}()
	term, decides := a.log.Decides()
	if !decides {
		m.Reject(commitlog.ErrNotLeader)
		return
	}
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
	a.shard.Send(&eventWrite{account: a, event: event, record: record, request: m, term: term, urgent: true})
}

// undo reverts what decide has changed in the account. Call it if the event will not become durable.
func (a *AccountActor) undo(event account.Event) {
	if _, ok := event.(*account.KeyCreated); ok {
		a.Account.AbortKey()
	}
}

// written handles the result of writing an event. It applies a durable event and replies to the caller of the change.
func (a *AccountActor) written(w *eventWrite) {
	if w.request != nil && w.request.Query.ask != nil {
		a.accepted(w)
		return
	}
	switch e := w.event.(type) {
	case *account.Leased:
		a.leased(w)
		return
	case *account.Returned:
		a.returned(w, e)
		return
	}
	a.Changes--
	if w.err == nil {
		a.Account.Apply(w.event)
		a.indexKey(w.event)
	} else {
		a.undo(w.event)
	}
	w.request.Reply(struct{}{}, asError(w.err))
	a.returnLeaseOnStop()
}

// returned handles the result of returning a lease. While its outcome is unknown, what it returns stays used.
func (a *AccountActor) returned(w *eventWrite, e *account.Returned) {
	if !a.answered(e) {
		return
	}
	if a.inCluster() {
		a.Leasing = false
	}
	switch {
	case w.err == nil:
		a.applyLease(e)
	case w.err != commitlog.ErrOutcomeUnknown:
		a.Account.AbortReturn(e)
	}
	a.admitQueued()
}

// indexKey makes a new key known to Accounts.Admit. The key's fingerprint is not taken, because the node that generated
// the key has reserved it.
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

// remote applies events that this node has not decided as the leader.
func (a *AccountActor) remote(m *commitlog.RemoteEvents[account.Event]) {
	defer m.Window.Release()
	now, done := a.clock.Now(), false
	for _, event := range m.Events {
		a.Account.ApplyRemote(event, now)
		a.indexKey(event)
		done = a.answered(event) || done
	}
	if done {
		a.Leasing = false
		a.admitQueued()
		a.returnLeaseOnStop()
	}
}

// postReturn sends the return of a lease to the shard. event may be nil.
func (a *AccountActor) postReturn(event *account.Returned, urgent bool) {
	if event == nil {
		return
	}
	term, decides := a.log.Decides()
	record, err := record.Encode(event)
	if err != nil || decides && a.inCluster() && !a.Account.GrantReturn(event) {
		a.Account.AbortReturn(event)
		return
	}
	if a.inCluster() {
		a.Leasing, a.askedAt = true, event.Monotonic
	}
	a.shard.Send(&eventWrite{account: a, event: event, record: record, term: term, urgent: urgent})
}

// returnLeaseOnStop returns the lease when the node stops. While an event of the account is being written it does
// nothing; leased or written calls it again afterwards.
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

// RejectAll implements mailbox.Actor. It rejects the requests that wait for a lease. The shard rejects the requests for
// changes.
func (a *AccountActor) RejectAll(err *engine.Error) {
	a.stopped = err
	a.RejectQueued(err)
}
