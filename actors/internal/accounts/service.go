package accounts

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// byOwner is the name in the log for changes that the owner of an account makes.
const byOwner = "owner"

const retryNoMail = time.Minute

var errNoMail = &engine.Error{
	Code: engine.CodeMailUnavailable, Message: "this node sends no e-mail, so logins are not possible; its operator has to set up a mail server",
	RetryAfter: retryNoMail,
}

// RequestCode implements account.Service. It queues the e-mail with the code, and does not wait until it is sent. If
// the e-mail cannot be queued, it returns an error, but the code is valid.
func (t *Accounts) RequestCode(email account.Email, from account.Requester) error {
	if t.config.Mail == nil {
		return errNoMail
	}
	if err := t.host.BeginChange(); err != nil {
		return err
	}
	defer t.host.EndChange()
	code, err := account.NewCode(t.Random)
	if err != nil {
		return Internal(err)
	}
	mail, err := commitlog.AskChange[account.LoginMail](t.Registrar, codeQuery{email, code, from}, t.config.WriteTimeout, t.Majority)
	if err != nil {
		return err
	}
	if err := t.config.Mail(mail); err != nil {
		return AsEngineError(fmt.Errorf("queue the e-mail: %w", err))
	}
	return nil
}

// OpenSession implements account.Service.
func (t *Accounts) OpenSession(email account.Email, code string, from account.Requester) (account.Secret, time.Time, error) {
	if err := t.host.BeginChange(); err != nil {
		return account.Secret{}, time.Time{}, err
	}
	defer t.host.EndChange()
	token, err := account.NewSessionToken(t.Random)
	if err != nil {
		return account.Secret{}, time.Time{}, Internal(err)
	}
	expires, err := commitlog.AskChange[time.Time](t.Registrar, codeAttemptQuery{email, code, token.Digest(), from}, t.config.WriteTimeout, t.Majority)
	if err != nil {
		return account.Secret{}, time.Time{}, err
	}
	return token, expires, nil
}

// CloseSession implements account.Service.
func (t *Accounts) CloseSession(token account.Digest) error {
	if err := t.host.BeginChange(); err != nil {
		return err
	}
	defer t.host.EndChange()
	_, err := commitlog.AskChange[struct{}](t.Registrar, signOutQuery{token}, t.config.WriteTimeout, t.Majority)
	return err
}

// Keys implements account.Service.
func (t *Accounts) Keys(token account.Digest) ([]account.KeyRecord, error) {
	account, err := t.session(token)
	if err != nil {
		return nil, err
	}
	answer, err := t.account(account)
	return answer.record.Keys, err
}

func (t *Accounts) account(id uint64) (accountReply, error) {
	m := mailbox.NewRequest[accountQuery, accountReply](accountQuery{id})
	t.Shards.of(id).Send(m)
	return m.Wait(AskTimeout)
}

// Usage implements account.Service.
func (t *Accounts) Usage(token account.Digest) (account.QuotaResult, error) {
	id, err := t.session(token)
	if err != nil {
		return account.QuotaResult{}, err
	}
	return t.requestPools.usages.Ask(t.Shards.of(id), UsageQuery{account: id}, AskTimeout)
}

// CreateKey implements account.Service.
func (t *Accounts) CreateKey(token account.Digest, name string) (account.KeyRecord, account.Secret, error) {
	if !account.ValidKeyName(name) {
		return account.KeyRecord{}, account.Secret{}, &engine.Error{Code: engine.CodeInvalidParameters, Message: "the name is too long, is a key, or has characters that can't be shown"}
	}
	if err := t.host.BeginChange(); err != nil {
		return account.KeyRecord{}, account.Secret{}, err
	}
	defer t.host.EndChange()
	id, err := t.session(token)
	if err != nil {
		return account.KeyRecord{}, account.Secret{}, err
	}
	return t.CreateKeyFor(id, name)
}

// CreateKeyFor creates a key for an account ID, without a session.
func (t *Accounts) CreateKeyFor(id uint64, name string) (account.KeyRecord, account.Secret, error) {
	key, secret, err := t.newKey(id)
	if err != nil {
		return account.KeyRecord{}, account.Secret{}, err
	}
	key.Name = name
	created := key
	err = t.change(id, func(a *account.Account, now account.ClockReading) (account.Event, error) {
		created.CreatedAt = wallTime(now)
		return a.CreateKey(created)
	})
	if err != nil {
		t.releaseKey(key.Digest, id, err)
		return account.KeyRecord{}, account.Secret{}, err
	}
	return created, secret, nil
}

// releaseKey removes a key from the index of keys if err guarantees that the key was not created.
func (t *Accounts) releaseKey(digest account.Digest, account uint64, err error) {
	switch AsEngineError(err).Code {
	case engine.CodeKeyLimitReached, engine.CodeAccountSuspended, engine.CodeNotFound, engine.CodeReadOnly, engine.CodeNoMajority:
		t.keys.Release(digest, account)
	}
}

const (
	keyIDBytes    = 8
	keyDrawsMax   = 4 // attempts to generate an API key that the index of keys accepts; the first nearly always succeeds
	keyIDPrefix   = "key_"
	operatorMax   = 100 // maximum number of characters of an operator's name
	suspensionMax = 500 // maximum number of characters of the reason for a suspension
)

// newKey generates an API key and adds it to the index of keys. The key becomes valid when its event is durable.
func (t *Accounts) newKey(accountID uint64) (account.KeyRecord, account.Secret, error) {
	var id [keyIDBytes]byte
	if _, err := io.ReadFull(t.Random, id[:]); err != nil {
		return account.KeyRecord{}, account.Secret{}, Internal(err)
	}
	for range keyDrawsMax {
		secret, err := account.NewKey(t.Random, t.config.KeyPrefix)
		if err != nil {
			return account.KeyRecord{}, account.Secret{}, Internal(err)
		}
		if digest := secret.Digest(); t.keys.Claim(digest, accountID) {
			return account.KeyRecord{ID: keyIDPrefix + hex.EncodeToString(id[:]), Hint: secret.Hint(), Digest: digest}, secret, nil
		}
	}
	return account.KeyRecord{}, account.Secret{}, Internal(errors.New("the source of random bytes repeats itself"))
}

// RevokeKey implements account.Service.
func (t *Accounts) RevokeKey(token account.Digest, id string) error {
	if err := t.host.BeginChange(); err != nil {
		return err
	}
	defer t.host.EndChange()
	account, err := t.session(token)
	if err != nil {
		return err
	}
	return t.RevokeKeyOf(account, id)
}

// RevokeKeyOf revokes a key of an account ID, without a session.
func (t *Accounts) RevokeKeyOf(accountID uint64, id string) error {
	return t.change(accountID, func(a *account.Account, now account.ClockReading) (account.Event, error) {
		return a.RevokeKey(id, byOwner, wallTime(now))
	})
}

// change makes a change of an account. If it returns nil, the event that decide has returned is durable and applied.
func (t *Accounts) change(account uint64, decide func(*account.Account, account.ClockReading) (account.Event, error)) error {
	_, err := commitlog.AskChange[struct{}](t.Shards.of(account), changeQuery{account, decide}, t.config.WriteTimeout, t.Majority)
	return err
}

// checkText rejects a text that is too long or has control characters, which could harm an operator's terminal.
func checkText(field, text string, limit int) error {
	switch {
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return &engine.Error{Code: engine.CodeInvalidParameters, Message: field + " has characters that can't be shown"}
	case utf8.RuneCountInString(text) > limit:
		return &engine.Error{Code: engine.CodeInvalidParameters, Message: fmt.Sprintf("%s is longer than %d characters", field, limit)}
	}
	return nil
}
