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
	"github.com/tasard/tasard/engine/account"
)

// byOwner is who revokes a key through the API.
const byOwner = "owner"

const retryNoMail = time.Minute

var errNoMail = &engine.Error{
	Code: engine.CodeDataUnavailable, Message: "this node sends no mail, so nobody can log in; its operator has to set up a mail server",
	RetryAfter: retryNoMail,
}

// RequestCode is account.Service. The letter is in the mailer's queue when it returns; an error of the
// queue is returned, and the code stays valid although nobody knows it.
func (s *System) RequestCode(email account.Email, from netip.Addr) error {
	if s.config.Mailer == nil {
		return errNoMail
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.calls.leave()
	code, err := account.NewCode(s.tenants.random)
	if err != nil {
		return internal(err)
	}
	letter, err := put(s, s.tenants.registrar, mailbox.NewQuestion[codeQuery, account.Letter](codeQuery{email, code, from}))
	if err != nil || letter.To.IsZero() {
		return err
	}
	if err := s.config.Mailer.Send(letter); err != nil {
		return asEngineError(fmt.Errorf("queue a letter: %w", err))
	}
	return nil
}

// OpenSession is account.Service.
func (s *System) OpenSession(email account.Email, code string, from netip.Addr) (account.Secret, time.Time, error) {
	if err := s.enter(); err != nil {
		return account.Secret{}, time.Time{}, err
	}
	defer s.calls.leave()
	token, err := account.NewSession(s.tenants.random)
	if err != nil {
		return account.Secret{}, time.Time{}, internal(err)
	}
	expires, err := put(s, s.tenants.registrar, mailbox.NewQuestion[codeTryQuery, time.Time](codeTryQuery{email, code, token.Digest(), from}))
	if err != nil {
		return account.Secret{}, time.Time{}, err
	}
	return token, expires, nil
}

// CloseSession is account.Service.
func (s *System) CloseSession(token account.Digest) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.calls.leave()
	_, err := put(s, s.tenants.registrar, mailbox.NewQuestion[signOutQuery, struct{}](signOutQuery{token}))
	return err
}

// Keys is account.Service.
func (s *System) Keys(token account.Digest) ([]account.KeyRecord, error) {
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

// Usage is account.Service.
func (s *System) Usage(token account.Digest) (account.Verdict, error) {
	id, err := s.session(token)
	if err != nil {
		return account.Verdict{}, err
	}
	return s.tenants.asks.usages.Ask(s.tenants.shards.of(id), usageQuery{account: id}, s.config.AskTimeout)
}

// CreateKey is account.Service. The name has at most 80 characters, none of them a control character.
func (s *System) CreateKey(token account.Digest, name string) (account.KeyRecord, account.Secret, error) {
	if err := checkText("the name", name, account.KeyNameMax); err != nil {
		return account.KeyRecord{}, account.Secret{}, err
	}
	if err := s.enter(); err != nil {
		return account.KeyRecord{}, account.Secret{}, err
	}
	defer s.calls.leave()
	id, err := s.session(token)
	if err != nil {
		return account.KeyRecord{}, account.Secret{}, err
	}
	return s.createKey(id, name)
}

func (s *System) createKey(id uint64, name string) (account.KeyRecord, account.Secret, error) {
	key, secret, err := s.drawKey(id)
	if err != nil {
		return account.KeyRecord{}, account.Secret{}, err
	}
	key.Name = name
	made := key
	err = s.change(id, func(a *account.Account, now account.Moment) (account.Event, error) {
		made.CreatedAt = wallOf(now)
		return a.CreateKey(made)
	})
	if err != nil {
		s.forget(key.Digest, id, err)
		return account.KeyRecord{}, account.Secret{}, err
	}
	return made, secret, nil
}

// forget takes a key out of the index that was certainly not made.
func (s *System) forget(digest account.Digest, account uint64, why error) {
	switch asEngineError(why).Code {
	case engine.CodeKeyLimitReached, engine.CodeNotFound, engine.CodeReadOnly:
		s.tenants.keys.Release(digest, account)
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
func (s *System) drawKey(number uint64) (account.KeyRecord, account.Secret, error) {
	var id [keyIDBytes]byte
	if _, err := io.ReadFull(s.tenants.random, id[:]); err != nil {
		return account.KeyRecord{}, account.Secret{}, internal(err)
	}
	for range keyDrawsMax {
		secret, err := account.NewKey(s.tenants.random, s.config.KeyPrefix)
		if err != nil {
			return account.KeyRecord{}, account.Secret{}, internal(err)
		}
		if digest := secret.Digest(); s.tenants.keys.Claim(digest, number) {
			return account.KeyRecord{ID: keyIDPrefix + hex.EncodeToString(id[:]), Hint: secret.Hint(), Digest: digest}, secret, nil
		}
	}
	return account.KeyRecord{}, account.Secret{}, internal(errors.New("the source of random bytes repeats itself"))
}

// RevokeKey is account.Service.
func (s *System) RevokeKey(token account.Digest, id string) error {
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

func (s *System) revokeKey(number uint64, id string) error {
	return s.change(number, func(a *account.Account, now account.Moment) (account.Event, error) {
		return a.RevokeKey(id, byOwner, wallOf(now))
	})
}

// change has an account decide an event; when it returns without an error the event is durable and true.
func (s *System) change(account uint64, decide func(*account.Account, account.Moment) (account.Event, error)) error {
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
