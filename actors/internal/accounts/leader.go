package accounts

import (
	"errors"
	"fmt"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
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
		if err != nil || !ok || !ofLease(ask) {
			results[i] = Internal(fmt.Errorf("another node asks for %T, %w", event, err))
			continue
		}
		requests[i] = mailbox.NewRequest[changeQuery, struct{}](changeQuery{ask.AccountID(), func(a *AccountActor, now account.ClockReading) (account.Event, error) {
			if !a.leasing() {
				if event := a.Account.Grant(ask, now, a.policy()); event != nil {
					return event, nil
				}
			}
			return nil, commitlog.ErrNotLeader
		}})
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
