package accounts

import (
	"fmt"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Requests to an AccountActor. An admissionRequest asks whether the account's quotas allow one API request. Callers
// send admissionRequest and usageRequest directly to the actor, and all others to its ShardActor, which forwards them.
type (
	admissionRequest = mailbox.Request[account.Digest, account.Admission] // of a key
	// Refund reverts the count of one API request, of an account or of a client without an API key.
	Refund = mailbox.Request[account.Admission, struct{}]
	// usageRequest asks for the quota usage (day and minute) of the account of a valid key.
	usageRequest   = mailbox.Request[account.Digest, account.QuotaResult]
	accountRequest = mailbox.Request[uint64, accountReply]
	changeRequest  = mailbox.Request[changeQuery, struct{}]
)

type (
	accountReply struct {
		record account.Record
		usage  account.QuotaResult
	}
	// changeQuery asks an account for a change. decide returns the event, or nil if nothing changes.
	changeQuery struct {
		account uint64
		decide  decideChange
	}
	decideChange = func(*AccountActor, account.ClockReading) (account.Event, error)
)

// accountBytesMost is enough for most encoded accounts, so that a snapshot leaves little garbage.
const accountBytesMost = 256

// eventWrite is an event on its way from an account to its shard. The shard returns it when the event is durable, or
// with an error. On a node of a cluster that does not lead, the event is an ask. The event that the leader writes in
// response comes with the log, and the shard returns only errors.
type eventWrite struct {
	mailbox.OneWay
	account *AccountActor
	event   account.Event
	record  []byte         // the encoded event
	request *changeRequest // caused the event; nil for what this node asks for: quota leases and their returns
	term    uint64         // of Log.Decides before the decision
	decided bool           // false: the leader must decide
	urgent  bool           // false: the shard may wait for more events
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
	Ref      mailbox.Ref
	shard    *ShardActor // the account uses only its constant fields, and grants
	ID       uint64
	Account  *account.Account
	stopped  *engine.Error // if not nil, the error for all new leases and changes
	urgent   bool          // a request waits for the lease that the account asks for, or will soon
	stopping bool          // returnLease has arrived
	Changes  int32         // number of changes whose events are being written, including grants
	Granting bool          // a lease or return of another node is being written

	queued      []*admissionRequest  // requests that wait for a lease
	firstQueued [1]*admissionRequest // backing array of queued
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
		m.Reply(accountReply{a.Account.Record(), a.Account.Usage(a.shard.parent.clock.Now(), a.shard.policy())}, nil)
	case *changeRequest:
		a.change(m)
	case *eventWrite:
		a.written(m)
	case *commitlog.RemoteEvents[account.Event]:
		a.remote(m)
	case *checkReturn:
		if now := a.shard.parent.clock.Now(); a.stopped == nil && !a.stopping && !a.leasing() {
			if event := a.Account.NextReturn(now); event != nil {
				a.ask(event, now, false)
			}
		}
	case *commitlog.SnapshotRequest:
		a.Account.Shrink(a.shard.parent.clock.Now()) // frees memory; done here because every account gets this message, but rarely
		state := a.Account.State()
		m.SetAccount(record.AppendAccount(make([]byte, 0, accountBytesMost), &state))
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
	now := a.Account.WithDay(a.shard.parent.clock.Now()) // computes the day once
	result, needsLease := a.Account.Admit(m.Query, now, a.shard.policy())
	if needsLease {
		a.queueForLease(m, now)
		return
	}
	switch {
	case !result.Admitted || a.stopped != nil:
	case !a.leasing():
		a.lease(m.Query, now, 0)
	case !a.urgent && a.Account.LeaseLow(now):
		a.urgent = true
		a.shard.parent.timer.flushNow()
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
	case a.shard.parent.Majority.Lost():
		m.Reject(errLeaseUnavailable)
		return
	case len(a.queued) >= a.shard.parent.config.MailboxMax:
		m.Reject(mailbox.ErrOverloaded)
		return
	}
	if !a.leasing() {
		a.lease(m.Query, now, len(a.queued)+1)
	}
	if !a.leasing() {
		m.Reject(mailbox.ErrOverloaded) // other nodes of a cluster may have what is left
		return
	}
	a.flushLease()
	if a.queued == nil {
		a.queued = a.firstQueued[:0]
	}
	a.queued = append(a.queued, m)
}

// lease asks for the next quota lease if the account needs one. waiting is the length of the queue.
func (a *AccountActor) lease(key account.Digest, now account.ClockReading, waiting int) {
	if event := a.Account.NextLease(key, now, a.shard.policy(), waiting); event != nil {
		a.ask(event, now, waiting > 0)
	}
}

// ask sends this node's ask for a lease, or for its return, to the shard. It first grants the ask if this node decides.
func (a *AccountActor) ask(ask account.Event, now account.ClockReading, urgent bool) {
	event := ask
	term, decides := a.shard.log.Decides()
	if decides {
		event = a.Account.Grant(ask, now, a.shard.policy())
	}
	var encoded []byte
	var err error
	if event != nil {
		encoded, err = record.Encode(event)
	}
	if event == nil || err != nil {
		a.Account.Abort(ask, false)
		return
	}
	a.urgent = urgent
	a.shard.self.Send(&eventWrite{account: a, event: event, record: encoded, term: term, decided: decides, urgent: urgent})
}

// leasing reports whether a lease or return of this or another node is being written. Until then there is no other.
func (a *AccountActor) leasing() bool { return a.Granting || a.Account.Asking() }

// flushLease makes the shard write the lease at once instead of after FlushDelay.
func (a *AccountActor) flushLease() {
	if a.Account.Asking() && !a.urgent {
		a.urgent = true
		a.shard.self.Send(&Flush{})
	}
}

// leaseWritten goes on after the result of a lease or return. If it must be decided again, it admits the queued
// requests again, which may ask for another lease.
func (a *AccountActor) leaseWritten(err *engine.Error) {
	again := err == commitlog.ErrNotLeader || err == commitlog.ErrOutcomeUnknown
	switch {
	case a.leasing():
	case a.stopping:
		a.RejectQueued(mailbox.ErrStopped)
	case err == nil || again && !a.shard.parent.Majority.Lost():
		a.admitQueued()
	case again || err.Code == engine.CodeNoMajority:
		a.RejectQueued(errLeaseUnavailable)
	default:
		a.RejectQueued(err)
	}
}

// admitQueued admits queued requests until the lease is spent. Then it asks for the next lease.
func (a *AccountActor) admitQueued() {
	now := a.shard.parent.clock.Now()
	requests := a.queued
	a.queued = nil
	for i, m := range requests {
		if m.Abandoned() {
			m.Reject(mailbox.ErrExpired)
			continue
		}
		key := m.Query
		result, needsLease := a.Account.Admit(key, now, a.shard.policy())
		if needsLease {
			a.queued = append(a.queued, requests[i:]...)
			a.lease(key, now, len(a.queued))
			break
		}
		a.reply(m, result, now)
	}
	if len(a.queued) > 0 && !a.leasing() {
		a.RejectQueued(mailbox.ErrOverloaded)
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
	return a.Account.Usage(a.shard.parent.clock.Now(), a.shard.policy()), nil
}

// change starts a change. Other changes see its effect only after its event is durable.
func (a *AccountActor) change(m *changeRequest) {
	switch {
	case a.stopping:
		m.Reject(mailbox.ErrStopped)
	case a.stopped != nil:
		m.Reject(a.stopped)
	case int(a.Changes) >= a.shard.parent.config.PendingWritesMax:
		m.Reject(mailbox.ErrOverloaded)
	default:
		a.decide(m)
	}
}

// decide makes the event of a change and sends it to the shard. A panic fails only this change.
func (a *AccountActor) decide(m *changeRequest) {
	defer rejectPanic(m)
	term, decides := a.shard.log.Decides()
	if !decides {
		m.Reject(commitlog.ErrNotLeader)
		return
	}
	event, err := m.Query.decide(a, a.shard.parent.clock.Now())
	if err != nil || event == nil {
		m.Reply(struct{}{}, err)
		return
	}
	record, err := record.Encode(event)
	if err != nil {
		a.Account.Written(event)
		m.Reply(struct{}{}, err)
		return
	}
	a.Changes++
	a.Granting = a.Granting || ofLease(event)
	a.shard.self.Send(&eventWrite{account: a, event: event, record: record, request: m, term: term, decided: true, urgent: true})
}

// ofLease reports whether an event takes or returns a lease.
func ofLease(event account.Event) bool {
	switch event.(type) {
	case *account.Leased, *account.Returned:
		return true
	}
	return false
}

// written handles the result of writing an event. It applies a durable event and replies to the caller of the change.
func (a *AccountActor) written(w *eventWrite) {
	leased := ofLease(w.event)
	if a.Account.Written(w.event); w.err == nil {
		a.apply(w.event, a.shard.parent.clock.Now())
	} else {
		a.Account.Abort(w.event, w.err == commitlog.ErrOutcomeUnknown)
	}
	if w.request != nil {
		a.Changes--
		a.Granting = a.Granting && !leased
		if w.err != nil {
			w.request.Reject(w.err)
		} else {
			w.request.Reply(struct{}{}, nil)
		}
	}
	if leased {
		a.leaseWritten(w.err)
	}
	a.returnLeaseOnStop()
}

// apply applies a durable event. It makes a new key known to Accounts.Admit.
func (a *AccountActor) apply(event account.Event, now account.ClockReading) {
	a.Account.Apply(event, now)
	if created, ok := event.(*account.KeyCreated); ok && !a.shard.parent.keys.add(created.Key.Digest, &a.Ref) {
		panic(fmt.Errorf("apply the new key of account %d: another account has a key with the same fingerprint", a.ID))
	}
}

// remote applies events that this node has not decided as the leader. One of them may be the lease that it waits for.
func (a *AccountActor) remote(m *commitlog.RemoteEvents[account.Event]) {
	defer m.Window.Release()
	now, asking := a.shard.parent.clock.Now(), a.Account.Asking()
	for _, event := range m.Events {
		a.apply(event, now)
	}
	if asking && !a.Account.Asking() {
		a.leaseWritten(nil)
		a.returnLeaseOnStop()
	}
}

// returnLeaseOnStop returns the lease when the node stops. While an event of the account is being written it does
// nothing; written or remote calls it again afterwards.
func (a *AccountActor) returnLeaseOnStop() {
	if !a.stopping || a.stopped == mailbox.ErrStopped || a.leasing() || a.Changes > 0 {
		return
	}
	failed, now := a.stopped != nil, a.shard.parent.clock.Now()
	a.stopped = mailbox.ErrStopped
	if !failed {
		if event := a.Account.Return(now); event != nil {
			a.ask(event, now, true)
		}
	}
	a.shard.self.Send(&leaseReturned{failed: failed})
}

// RejectAll implements mailbox.Actor. It rejects the requests that wait for a lease. The shard rejects the requests for
// changes.
func (a *AccountActor) RejectAll(err *engine.Error) {
	a.stopped = err
	a.RejectQueued(err)
}
