package actors

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

// byOwner is who revokes a key through the API.
const byOwner = "owner"

const retryNoMail = time.Minute

var errNoMail = &engine.Error{
	Code: engine.CodeDataUnavailable, Message: "this node sends no mail, so nobody can log in; its operator has to set up a mail server",
	RetryAfter: retryNoMail,
}

// RequestCode is engine.Accounts. The letter is in the mailer's queue when it returns; an error of the
// queue is returned, and the code stays valid although nobody knows it.
func (s *System) RequestCode(email engine.Email, from netip.Addr) error {
	if s.config.Mailer == nil {
		return errNoMail
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.calls.leave()
	code, err := engine.NewCode(s.tenants.random)
	if err != nil {
		return internal(err)
	}
	letter, err := put(s, s.tenants.registrar, mailbox.NewQuestion[codeQuery, engine.Letter](codeQuery{email, code, from}))
	if err != nil || letter.To.IsZero() {
		return err
	}
	if err := s.config.Mailer.Send(letter); err != nil {
		return asEngineError(fmt.Errorf("queue a letter: %w", err))
	}
	return nil
}

// OpenSession is engine.Accounts.
func (s *System) OpenSession(email engine.Email, code string, from netip.Addr) (engine.Secret, time.Time, error) {
	if err := s.enter(); err != nil {
		return engine.Secret{}, time.Time{}, err
	}
	defer s.calls.leave()
	token, err := engine.NewSession(s.tenants.random)
	if err != nil {
		return engine.Secret{}, time.Time{}, internal(err)
	}
	expires, err := put(s, s.tenants.registrar, mailbox.NewQuestion[codeTryQuery, time.Time](codeTryQuery{email, code, token.Digest(), from}))
	if err != nil {
		return engine.Secret{}, time.Time{}, err
	}
	return token, expires, nil
}

// CloseSession is engine.Accounts.
func (s *System) CloseSession(token engine.Digest) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.calls.leave()
	_, err := put(s, s.tenants.registrar, mailbox.NewQuestion[signOutQuery, struct{}](signOutQuery{token}))
	return err
}

// Keys is engine.Accounts.
func (s *System) Keys(token engine.Digest) ([]engine.KeyRecord, error) {
	account, err := s.session(token)
	if err != nil {
		return nil, err
	}
	answer, err := s.account(account)
	return answer.record.Keys, err
}

// account is what is known of an account.
func (s *System) account(id uint64) (accountAnswer, error) {
	m := mailbox.NewQuestion[accountQuery, accountAnswer](accountQuery{id})
	s.tenants.shards.of(id).Send(m)
	return m.Wait(s.config.AskTimeout)
}

// Usage is engine.Accounts.
func (s *System) Usage(token engine.Digest) (engine.Verdict, error) {
	account, err := s.session(token)
	if err != nil {
		return engine.Verdict{}, err
	}
	return s.tenants.asks.usages.Ask(s.tenants.shards.of(account), usageQuery{account: account})
}

// CreateKey is engine.Accounts. The name has at most 80 characters, none of them a control character.
func (s *System) CreateKey(token engine.Digest, name string) (engine.KeyRecord, engine.Secret, error) {
	if err := checkText("the name", name, engine.KeyNameMax); err != nil {
		return engine.KeyRecord{}, engine.Secret{}, err
	}
	if err := s.enter(); err != nil {
		return engine.KeyRecord{}, engine.Secret{}, err
	}
	defer s.calls.leave()
	account, err := s.session(token)
	if err != nil {
		return engine.KeyRecord{}, engine.Secret{}, err
	}
	return s.createKey(account, name)
}

func (s *System) createKey(account uint64, name string) (engine.KeyRecord, engine.Secret, error) {
	key, secret, err := s.drawKey(account)
	if err != nil {
		return engine.KeyRecord{}, engine.Secret{}, err
	}
	key.Name = name
	made := key
	err = s.change(account, func(a *engine.Account, now engine.Moment) (engine.AccountEvent, error) {
		made.CreatedAt = wallOf(now)
		return a.CreateKey(made)
	})
	if err != nil {
		s.forget(key.Digest, account, err)
		return engine.KeyRecord{}, engine.Secret{}, err
	}
	return made, secret, nil
}

// forget takes a key out of the index that was certainly not made.
func (s *System) forget(digest engine.Digest, account uint64, why error) {
	switch asEngineError(why).Code {
	case engine.CodeKeyLimitReached, engine.CodeNotFound, engine.CodeReadOnly:
		s.tenants.keys.release(digest, account)
	}
}

const (
	keyIDBytes    = 8
	keyDrawsMax   = 4 // two keys with the same print have never been drawn
	keyIDPrefix   = "key_"
	operatorMax   = 100 // characters of who does something
	suspensionMax = 500 // characters of a reason
)

// drawKey makes a key that the index leads to the account. It is not valid before its event is durable.
func (s *System) drawKey(account uint64) (engine.KeyRecord, engine.Secret, error) {
	var id [keyIDBytes]byte
	if _, err := io.ReadFull(s.tenants.random, id[:]); err != nil {
		return engine.KeyRecord{}, engine.Secret{}, internal(err)
	}
	for range keyDrawsMax {
		secret, err := engine.NewKey(s.tenants.random, s.config.KeyPrefix)
		if err != nil {
			return engine.KeyRecord{}, engine.Secret{}, internal(err)
		}
		if digest := secret.Digest(); s.tenants.keys.claim(digest, account) {
			return engine.KeyRecord{ID: keyIDPrefix + hex.EncodeToString(id[:]), Hint: secret.Hint(), Digest: digest}, secret, nil
		}
	}
	return engine.KeyRecord{}, engine.Secret{}, internal(errors.New("the source of random bytes repeats itself"))
}

// RevokeKey is engine.Accounts.
func (s *System) RevokeKey(token engine.Digest, id string) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.calls.leave()
	account, err := s.session(token)
	if err != nil {
		return err
	}
	return s.revokeKey(account, id)
}

func (s *System) revokeKey(account uint64, id string) error {
	return s.change(account, func(a *engine.Account, now engine.Moment) (engine.AccountEvent, error) {
		return a.RevokeKey(id, byOwner, wallOf(now))
	})
}

// change has an account decide an event; when it returns without an error the event is durable and true.
func (s *System) change(account uint64, decide func(*engine.Account, engine.Moment) (engine.AccountEvent, error)) error {
	_, err := put(s, s.tenants.shards.of(account), mailbox.NewQuestion[changeQuery, struct{}](changeQuery{account, decide}))
	return err
}

// checkText keeps out of the log what no terminal should show.
func checkText(what, text string, most int) error {
	switch {
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return &engine.Error{Code: engine.CodeInvalidParameters, Message: what + " has characters that can't be shown"}
	case utf8.RuneCountInString(text) > most:
		return &engine.Error{Code: engine.CodeInvalidParameters, Message: fmt.Sprintf("%s is longer than %d characters", what, most)}
	}
	return nil
}
