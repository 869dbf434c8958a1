package accounts

import (
	"cmp"
	"slices"
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// ListAccounts implements account.Operator. Accounts may change while it runs, so the list is not a consistent
// snapshot.
func (t *Accounts) ListAccounts() ([]account.Summary, error) {
	if err := t.host.Available(); err != nil {
		return nil, err
	}
	list := []account.Summary{}
	for _, shard := range t.Shards.Refs {
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
	if err := t.host.Available(); err != nil {
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
	return t.operatorChange(id, by, func(_ *account.Account, now account.ClockReading) (account.Event, error) {
		return &account.Suspended{Account: id, Reason: reason, At: wallTime(now), By: by}, nil
	})
}

// RestoreAccount implements account.Operator. It does nothing to an account that is not suspended.
func (t *Accounts) RestoreAccount(id uint64, by string) error {
	return t.operatorChange(id, by, func(a *account.Account, now account.ClockReading) (account.Event, error) {
		if a.Record().SuspendedAt.IsZero() {
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
	return t.operatorChange(id, by, func(a *account.Account, now account.ClockReading) (account.Event, error) {
		return a.SetQuota(quota, by, wallTime(now))
	})
}

func (t *Accounts) operatorChange(id uint64, by string, decide func(*account.Account, account.ClockReading) (account.Event, error)) error {
	if err := checkText("the operator's name", by, operatorMax); err != nil {
		return err
	}
	if err := t.host.BeginChange(); err != nil {
		return err
	}
	defer t.host.EndChange()
	return t.change(id, decide)
}

// UnlockLogin implements account.Operator.
func (t *Accounts) UnlockLogin(email account.EmailID, by string) error {
	if err := checkText("the operator's name", by, operatorMax); err != nil {
		return err
	}
	if err := t.host.BeginChange(); err != nil {
		return err
	}
	defer t.host.EndChange()
	_, err := commitlog.AskChange[struct{}](t.Registrar, loginUnlockQuery{email, by}, t.config.WriteTimeout, t.Majority)
	return err
}

// Announce implements account.Operator.
func (t *Accounts) Announce(requiredAt time.Time, by string) (account.KeyPolicy, error) {
	return t.announce(announcementQuery{at: requiredAt, by: by})
}

// WithdrawAnnouncement implements account.Operator.
func (t *Accounts) WithdrawAnnouncement(by string) error {
	_, err := t.announce(announcementQuery{withdraw: true, by: by})
	return err
}

func (t *Accounts) announce(q announcementQuery) (account.KeyPolicy, error) {
	if err := checkText("the operator's name", q.by, operatorMax); err != nil {
		return account.KeyPolicy{}, err
	}
	if err := t.host.BeginChange(); err != nil {
		return account.KeyPolicy{}, err
	}
	defer t.host.EndChange()
	return commitlog.AskChange[account.KeyPolicy](t.Registrar, q, t.config.WriteTimeout, t.Majority)
}
