package accounts

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// byOwner marks changes in the log that the account's owner has made.
const byOwner = "owner"

const retryNoMail = time.Minute

var errNoMail = &engine.Error{
	Code: engine.CodeMailUnavailable, Message: "this node sends no e-mail, so logins are not possible; its operator has to set up a mail server",
	RetryAfter: retryNoMail,
}

// RequestCode implements account.Service. It queues the e-mail with the code and returns without waiting for delivery.
// If the queue rejects the e-mail, RequestCode returns an error, although the code is valid.
func (t *Accounts) RequestCode(email account.Email, from account.Requester) error {
	if t.config.Mail == nil {
		return errNoMail
	}
	code, err := account.NewCode(t.config.Random)
	if err != nil {
		return Internal(err)
	}
	var expires time.Time
	if err = t.changeRegistry(func(r *RegistrarActor) (*decision, error) {
		return r.requestCode(email.ID(), code, from, &expires)
	}); err != nil {
		return err
	}
	if err := t.config.Mail(account.LoginMail{To: email, Code: code, Expires: expires}); err != nil {
		return AsEngineError(fmt.Errorf("queue the e-mail: %w", err))
	}
	return nil
}

// OpenSession implements account.Service.
func (t *Accounts) OpenSession(email account.Email, code string, from account.Requester) (account.Secret, time.Time, error) {
	token, err := account.NewSessionToken(t.config.Random)
	if err != nil {
		return account.Secret{}, time.Time{}, Internal(err)
	}
	var expires time.Time
	if err = t.changeRegistry(func(r *RegistrarActor) (*decision, error) {
		return r.checkCode(email.ID(), code, token.Digest(), from, &expires)
	}); err != nil {
		return account.Secret{}, time.Time{}, err
	}
	return token, expires, nil
}

// CloseSession implements account.Service.
func (t *Accounts) CloseSession(token account.Digest) error {
	return t.changeRegistry(func(r *RegistrarActor) (*decision, error) {
		event, err := r.registry.CloseSession(token, t.clock.Now())
		return &decision{events: []any{event}}, err
	})
}

// changeRegistry changes the registry or the key policy. If it returns nil, the decision's events are durable and
// applied. After a timeout the decision may still run: do not read any variable that decide sets.
func (t *Accounts) changeRegistry(decide decideFunc) error {
	return ask(t, t.Registrar, registryQuery{decide})
}

// ask asks an actor for a change and waits until the change is durable.
func ask[Q any](t *Accounts, owner *mailbox.Ref, query Q) error {
	if err := t.config.BeginChange(); err != nil {
		return err
	}
	defer t.config.EndChange()
	_, err := commitlog.AskChange[struct{}](owner, query, t.config.WriteTimeout, t.Majority)
	return err
}

// Keys implements account.Service.
func (t *Accounts) Keys(token account.Digest) ([]account.KeyRecord, error) {
	answer, err := t.sessionAccount(token)
	return answer.record.Keys, err
}

// sessionAccount returns the account of an open session.
func (t *Accounts) sessionAccount(token account.Digest) (accountReply, error) {
	id, err := t.session(token)
	if err != nil {
		return accountReply{}, err
	}
	return t.account(id)
}

func (t *Accounts) account(id uint64) (accountReply, error) {
	if err := t.config.Available(); err != nil {
		return accountReply{}, err
	}
	m := mailbox.NewRequest[uint64, accountReply](id)
	t.shardOf(id).Send(m)
	return m.Wait(AskTimeout)
}

// Usage implements account.Service.
func (t *Accounts) Usage(token account.Digest) (account.QuotaResult, error) {
	answer, err := t.sessionAccount(token)
	return answer.usage, err
}

// CreateKey implements account.Service.
func (t *Accounts) CreateKey(token account.Digest, name string) (account.KeyRecord, account.Secret, error) {
	if !account.ValidKeyName(name) {
		return account.KeyRecord{}, account.Secret{}, &engine.Error{Code: engine.CodeInvalidParameters, Message: "the name is too long, is a key, or has characters that can't be shown"}
	}
	id, err := t.session(token)
	if err != nil {
		return account.KeyRecord{}, account.Secret{}, err
	}
	key, secret, err := t.newKey()
	if err != nil {
		return account.KeyRecord{}, account.Secret{}, Internal(err)
	}
	key.Name = name
	err = t.change(id, func(a *AccountActor, now account.ClockReading) (account.Event, error) {
		if t.keys.lookup(key.Digest) != nil {
			return nil, Internal(errors.New("the new key has the fingerprint of another key"))
		}
		key.CreatedAt = wallTime(now)
		return a.Account.CreateKey(key)
	})
	if err != nil {
		return account.KeyRecord{}, account.Secret{}, err
	}
	return key, secret, nil
}

const (
	keyIDBytes    = 8
	keyIDPrefix   = "key_"
	operatorMax   = 100 // maximum length of an operator's name, in characters
	suspensionMax = 500 // maximum length of the reason for a suspension, in characters
)

// newKey generates an API key.
func (t *Accounts) newKey() (account.KeyRecord, account.Secret, error) {
	var id [keyIDBytes]byte
	if _, err := io.ReadFull(t.config.Random, id[:]); err != nil {
		return account.KeyRecord{}, account.Secret{}, err
	}
	secret, err := account.NewKey(t.config.Random, t.config.KeyPrefix)
	return account.KeyRecord{ID: keyIDPrefix + hex.EncodeToString(id[:]), Hint: secret.Hint(), Digest: secret.Digest()}, secret, err
}

// RevokeKey implements account.Service.
func (t *Accounts) RevokeKey(token account.Digest, id string) error {
	accountID, err := t.session(token)
	if err != nil {
		return err
	}
	return t.change(accountID, func(a *AccountActor, now account.ClockReading) (account.Event, error) {
		return a.Account.RevokeKey(id, byOwner, wallTime(now))
	})
}

// change changes an account. If it returns nil, the event from decide is durable and applied.
func (t *Accounts) change(account uint64, decide decideChange) error {
	return ask(t, t.shardOf(account), changeQuery{account: account, decide: decide})
}

// Internal returns an error with CodeInternalError.
func Internal(cause error) *engine.Error {
	return &engine.Error{Code: engine.CodeInternalError, Message: "an internal error", Cause: cause}
}

// AsEngineError returns the *engine.Error in err, or an internal error with err as its cause.
func AsEngineError(err error) *engine.Error {
	var known *engine.Error
	if errors.As(err, &known) {
		return known
	}
	return Internal(err)
}

// checkText rejects a text that is too long or contains control characters, which could harm an operator's terminal.
func checkText(field, text string, limit int) error {
	switch {
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return &engine.Error{Code: engine.CodeInvalidParameters, Message: field + " has characters that can't be shown"}
	case utf8.RuneCountInString(text) > limit:
		return &engine.Error{Code: engine.CodeInvalidParameters, Message: fmt.Sprintf("%s is longer than %d characters", field, limit)}
	}
	return nil
}

// ListAccounts implements account.Operator. The list is not a consistent snapshot: accounts may change while it is
// made.
func (t *Accounts) ListAccounts() ([]account.Summary, error) {
	if err := t.config.Available(); err != nil {
		return nil, err
	}
	list := []account.Summary{}
	for _, shard := range t.Shards {
		m := mailbox.NewRequest[struct{}, []uint64](struct{}{})
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
		event := &account.LoginUnlocked{Email: email, At: wallTime(t.clock.Now()), By: by}
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

// announce changes the key policy.
func (t *Accounts) announce(by string, decide func(account.KeyPolicy, time.Time) (any, error)) (account.KeyPolicy, error) {
	if err := checkText("the operator's name", by, operatorMax); err != nil {
		return account.KeyPolicy{}, err
	}
	var policy account.KeyPolicy
	err := t.changeRegistry(func(r *RegistrarActor) (*decision, error) {
		event, err := decide(*t.keyPolicy.Load(), t.clock.Now().Wall)
		return &decision{events: []any{event}, done: func() error { policy = *t.keyPolicy.Load(); return nil }}, err
	})
	if err != nil { // after a timeout the decision may still set policy
		return account.KeyPolicy{}, err
	}
	return policy, nil
}
