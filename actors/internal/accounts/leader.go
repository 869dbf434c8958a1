package accounts

import (
	"errors"
	"fmt"
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Grant decides other nodes' asks for leases and returns (encoded account.Leased and account.Returned), on the leader.
// It returns a result for each: nil if what is granted is durable, ErrNotLeader if nothing was written, so that the
// node may ask again.
func (t *Accounts) Grant(asks [][]byte) []error {
	results := make([]error, len(asks))
	requests := make([]*changeRequest, len(asks))
	decoder := record.NewDecoder()
	for i := range asks {
		event, err := decoder.Event(asks[i])
		ask, ok := event.(account.Event)
		switch event.(type) {
		case *account.Leased, *account.Returned:
		default:
			ok = false
		}
		if err != nil || !ok {
			results[i] = Internal(fmt.Errorf("another node asks for %T, %w", event, err))
			continue
		}
		requests[i] = mailbox.NewRequest[changeQuery, struct{}](changeQuery{account: ask.AccountID(), ask: ask})
		t.shardOf(ask.AccountID()).Send(requests[i])
	}
	for i, m := range requests {
		if m != nil {
			_, results[i] = m.Wait(t.config.WriteTimeout)
		}
		switch {
		case errors.Is(results[i], mailbox.ErrExpired):
			results[i] = commitlog.ErrOutcomeUnknown
		case errors.Is(results[i], mailbox.ErrStopped):
			results[i] = commitlog.ErrNotLeader
		}
	}
	return results
}

// accept decides another node's ask, and writes what it grants. While an event of a lease is being written, others have
// to wait.
func (a *AccountActor) accept(m *changeRequest) {
	term, decides := a.log.Decides()
	var event account.Event
	if decides && !a.Leasing {
		switch ask := m.Query.ask.(type) {
		case *account.Leased:
			if grant := a.Account.GrantLease(ask, a.clock.Now(), a.policy()); grant != nil {
				event = grant
			}
		case *account.Returned:
			if a.Account.GrantReturn(ask) {
				event = ask
			}
		}
	}
	if event == nil {
		m.Reject(commitlog.ErrNotLeader)
		return
	}
	record, err := record.Encode(event)
	if err != nil {
		m.Reject(Internal(err))
		return
	}
	a.Leasing = true
	a.shard.Send(&eventWrite{account: a, event: event, record: record, request: m, term: term, urgent: true})
}

// accepted handles the result of accept.
func (a *AccountActor) accepted(w *eventWrite) {
	a.Leasing = false
	if w.err == nil {
		a.applyLease(w.event)
	}
	w.request.Reply(struct{}{}, asError(w.err))
	a.admitQueued()
	a.returnLeaseOnStop()
}

// answered reports whether an event, or its result, answers this node's newest ask, and then the node waits no longer.
// An ask has only one answer: once its event came with the log, the result of the call does not matter.
func (a *AccountActor) answered(event account.Event) bool {
	if !a.inCluster() {
		return true
	}
	node, asked := engine.NodeID(0), time.Duration(0)
	switch e := event.(type) {
	case *account.Leased:
		node, asked = e.Node, e.Monotonic
	case *account.Returned:
		node, asked = e.Node, e.Monotonic
	}
	if node != a.node || asked != a.askedAt {
		return false
	}
	a.askedAt = -1
	return true
}

// asked is the result of a shard's call to the leader, for each event.
type asked struct {
	mailbox.OneWay
	results []error
}

// ask sends waiting events of leases to the leader, in one call.
func (s *ShardActor) ask() {
	b := &s.batch
	count, bytes := 0, 0
	var asks [][]byte
	for _, w := range b.waiting {
		if count == shardRecordsMax || count > 0 && bytes+len(w.record) > shardBytesMax {
			break
		}
		asks, bytes, count = append(asks, w.record), bytes+len(w.record), count+1
	}
	b.inFlight, b.waiting = b.waiting[:count:count], b.waiting[count:]
	b.due = len(b.waiting) > 0
	if count == 0 {
		return
	}
	s.common.asking.Add(1)
	s.common.calls.Go(func() {
		results := s.common.askLeader(asks)
		s.common.asking.Add(-1)
		s.self.Send(&asked{results: results})
	})
}

// askDone passes the results to the accounts. An event that the leader has written comes with the log.
func (s *ShardActor) askDone(m *asked) {
	done := s.batch.inFlight
	s.batch.inFlight = nil
	for i, w := range done {
		switch err := m.results[i]; {
		case err != nil:
			s.reply(w, AsEngineError(err))
		default:
			s.leases.Add(1)
		}
	}
	s.write()
	s.endDrain()
}
