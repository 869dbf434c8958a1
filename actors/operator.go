package actors

import (
	"cmp"
	"slices"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

// ListAccounts is engine.Operator: all accounts by number, each as it was at some moment of the call.
func (s *System) ListAccounts() ([]engine.AccountSummary, error) {
	if err := s.available(); err != nil {
		return nil, err
	}
	var questions []*census
	for _, shard := range s.tenants.shards.refs {
		m := mailbox.NewQuestion[censusQuery, *cut](censusQuery{})
		shard.Send(m)
		questions = append(questions, m)
	}
	list := []engine.AccountSummary{}
	for _, m := range questions {
		c, err := m.Wait(s.config.WriteTimeout)
		if err != nil {
			return nil, err
		}
		for _, state := range c.ledgers[0] {
			summary, err := s.summary(state)
			if err != nil {
				return nil, internal(err)
			}
			list = append(list, summary)
		}
	}
	slices.SortFunc(list, func(a, b engine.AccountSummary) int { return cmp.Compare(a.ID, b.ID) })
	return list, nil
}

func (s *System) summary(state dormant) (engine.AccountSummary, error) {
	account, err := state.wakeOn(s.tenants.node, s.tenants.clock.start())
	if err != nil {
		return engine.AccountSummary{}, err
	}
	record, windows := account.Record(), account.Windows(s.tenants.clock.now(), s.config.Terms)
	summary := engine.AccountSummary{
		ID: record.ID, Email: record.Email, CreatedAt: record.CreatedAt, Suspended: !record.SuspendedAt.IsZero(),
		Allowance: record.Allowance, SpentToday: windows.Day.Limit - windows.Day.Remaining,
	}
	for i := range record.Keys {
		if record.Keys[i].Active() {
			summary.ActiveKeys++
		}
	}
	return summary, nil
}

// ShowAccount is engine.Operator.
func (s *System) ShowAccount(id uint64) (engine.AccountRecord, engine.Verdict, error) {
	if err := s.available(); err != nil {
		return engine.AccountRecord{}, engine.Verdict{}, err
	}
	answer, err := s.account(id)
	return answer.record, answer.verdict, err
}

// SuspendAccount is engine.Operator. Suspending again gives the newer reason.
func (s *System) SuspendAccount(id uint64, reason, by string) error {
	if err := checkText("the reason", reason, suspensionMax); err != nil {
		return err
	}
	return s.operate(id, by, func(_ *engine.Account, now engine.Moment) (engine.AccountEvent, error) {
		return &engine.Suspended{Account: id, Reason: reason, At: wallOf(now), By: by}, nil
	})
}

// RestoreAccount is engine.Operator. An account in good standing stays as it is.
func (s *System) RestoreAccount(id uint64, by string) error {
	return s.operate(id, by, func(a *engine.Account, now engine.Moment) (engine.AccountEvent, error) {
		if a.Record().SuspendedAt.IsZero() {
			return nil, nil
		}
		return &engine.Restored{Account: id, At: wallOf(now), By: by}, nil
	})
}

// LimitAccount is engine.Operator. Zero fields are the node's own limits.
func (s *System) LimitAccount(id uint64, allowance engine.Allowance, by string) error {
	if err := checkAllowance(allowance); err != nil {
		return &engine.Error{Code: engine.CodeInvalidParameters, Message: err.Error()}
	}
	return s.operate(id, by, func(a *engine.Account, now engine.Moment) (engine.AccountEvent, error) {
		return a.Limit(allowance, by, wallOf(now))
	})
}

// operate is a change that an operator makes.
func (s *System) operate(id uint64, by string, decide func(*engine.Account, engine.Moment) (engine.AccountEvent, error)) error {
	if err := checkText("who does it", by, operatorMax); err != nil {
		return err
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.calls.leave()
	return s.change(id, decide)
}

// Announce is engine.Operator.
func (s *System) Announce(requiredAt time.Time, by string) (engine.Transition, error) {
	return s.announce(announcementQuery{at: requiredAt, by: by})
}

// WithdrawAnnouncement is engine.Operator.
func (s *System) WithdrawAnnouncement(by string) error {
	_, err := s.announce(announcementQuery{withdraw: true, by: by})
	return err
}

func (s *System) announce(q announcementQuery) (engine.Transition, error) {
	if err := checkText("who does it", q.by, operatorMax); err != nil {
		return engine.Transition{}, err
	}
	if err := s.enter(); err != nil {
		return engine.Transition{}, err
	}
	defer s.calls.leave()
	return put(s, s.tenants.registrar, mailbox.NewQuestion[announcementQuery, engine.Transition](q))
}
