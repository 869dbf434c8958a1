package accounts

import (
	"cmp"
	"slices"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// ListAccounts implements account.Operator. The list is not a consistent snapshot: accounts may change while it is
// made.
func (t *Accounts) ListAccounts() ([]account.Summary, error) {
	if err := t.config.Available(); err != nil {
		return nil, err
	}
	list := []account.Summary{}
	for _, shard := range t.Shards {
		m := mailbox.NewRequest[ListQuery, []uint64](ListQuery{})
		shard.Send(m)
		ids, err := m.Wait(t.config.WriteTimeout)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			one, err := t.account(id)
			if err != nil {
				return nil, err
			}
			list = append(list, summaryOf(&one.record, &one.usage))
		}
	}
	slices.SortFunc(list, func(a, b account.Summary) int { return cmp.Compare(a.ID, b.ID) })
	return list, nil
}

func summaryOf(record *account.Record, windows *account.QuotaResult) account.Summary {
	summary := account.Summary{
		ID: record.ID, Email: record.Email, CreatedAt: record.CreatedAt, Suspended: !record.SuspendedAt.IsZero(),
		Quota: record.Quota, SpentToday: windows.Day.Limit - windows.Day.Remaining,
	}
	for i := range record.Keys {
		if record.Keys[i].Active() {
			summary.ActiveKeys++
		}
	}
	return summary
}

// ShowAccount implements account.Operator.
func (t *Accounts) ShowAccount(id uint64) (account.Record, account.QuotaResult, error) {
	if err := t.config.Available(); err != nil {
		return account.Record{}, account.QuotaResult{}, err
	}
	answer, err := t.account(id)
	return answer.record, answer.usage, err
}

// SuspendAccount implements account.Operator. Suspending a suspended account replaces the reason.
func (t *Accounts) SuspendAccount(id uint64, reason, by string) error {
	if err := checkText("the reason", reason, suspensionMax); err != nil {
		return err
	}
	return t.operatorChange(id, by, func(_ *AccountActor, now account.ClockReading) (account.Event, error) {
		return &account.Suspended{Account: id, Reason: reason, At: wallTime(now), By: by}, nil
	})
}

// RestoreAccount implements account.Operator. For an account that is not suspended it does nothing.
func (t *Accounts) RestoreAccount(id uint64, by string) error {
	return t.operatorChange(id, by, func(a *AccountActor, now account.ClockReading) (account.Event, error) {
		if a.Account.Record().SuspendedAt.IsZero() {
			return nil, nil
		}
		return &account.Restored{Account: id, At: wallTime(now), By: by}, nil
	})
}

// SetAccountQuota implements account.Operator. A zero field of quota means the node's default.
func (t *Accounts) SetAccountQuota(id uint64, quota account.Quota, by string) error {
	if err := CheckQuota(quota); err != nil {
		return &engine.Error{Code: engine.CodeInvalidParameters, Message: err.Error()}
	}
	return t.operatorChange(id, by, func(_ *AccountActor, now account.ClockReading) (account.Event, error) {
		return &account.QuotaSet{Account: id, Quota: quota, At: wallTime(now), By: by}, nil
	})
}

func (t *Accounts) operatorChange(id uint64, by string, decide decideChange) error {
	if err := checkText("the operator's name", by, operatorMax); err != nil {
		return err
	}
	return t.change(id, decide)
}

// UnlockLogin implements account.Operator.
func (t *Accounts) UnlockLogin(email account.EmailID, by string) error {
	if err := checkText("the operator's name", by, operatorMax); err != nil {
		return err
	}
	return t.changeRegistry(func(r *RegistrarActor) (*decision, error) {
		event := &account.LoginUnlocked{Email: email, At: wallTime(r.clock.Now()), By: by}
		return &decision{events: []any{event}, done: func() error { r.publishCodesUsedUp(); return nil }}, nil
	})
}

// Announce implements account.Operator.
func (t *Accounts) Announce(requiredAt time.Time, by string) (account.KeyPolicy, error) {
	return t.announce(by, func(policy account.KeyPolicy, now time.Time) (any, error) {
		return policy.Announce(requiredAt, now, by)
	})
}

// WithdrawAnnouncement implements account.Operator.
func (t *Accounts) WithdrawAnnouncement(by string) error {
	_, err := t.announce(by, func(policy account.KeyPolicy, now time.Time) (any, error) { return policy.Withdraw(now, by) })
	return err
}

// announce changes the key policy. It returns an error until the previous change of the policy is durable.
func (t *Accounts) announce(by string, decide func(account.KeyPolicy, time.Time) (any, error)) (policy account.KeyPolicy, err error) {
	if err := checkText("the operator's name", by, operatorMax); err != nil {
		return account.KeyPolicy{}, err
	}
	err = t.changeRegistry(func(r *RegistrarActor) (*decision, error) {
		if slices.ContainsFunc(slices.Concat(r.inFlight, r.pending), func(d *decision) bool { return d.keyPolicy }) {
			return nil, mailbox.ErrOverloaded
		}
		event, err := decide(*r.keyPolicy.Load(), r.clock.Now().Wall)
		return &decision{events: []any{event}, keyPolicy: true, done: func() error { policy = *r.keyPolicy.Load(); return nil }}, err
	})
	return policy, err
}
