package actors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// leaderQuery is a change that every node of a cluster accepts, and that the leader makes. A node that does not lead
// sends the query to the leader in JSON, and answers when it has itself applied what the leader has changed. A node
// without a cluster does not use it. Operation tells which other fields are set.
type leaderQuery struct {
	Operation string

	// Accounts. The types of the arguments of account.Service have no JSON.
	Email, Code string            `json:",omitzero"`
	From        account.Requester `json:",omitzero"`
	Digest      account.Digest    `json:",omitzero"` // of a session token or an e-mail address
	Text        string            `json:",omitzero"` // name or ID of a key, a reason, or the mask of an e-mail address
	Account     uint64            `json:",omitzero"`
	Quota       account.Quota     `json:",omitzero"`
	RequiredAt  time.Time         `json:",omitzero"`
	By          string            `json:",omitzero"` // an operator
	Asks        [][]byte          `json:",omitzero"` // for leases; see Accounts.Grant

	// Rates.
	Refreshes []engine.Refresh `json:",omitzero"`
	Currency  string           `json:",omitzero"`
	Withdraw  engine.Withdraw  `json:",omitzero"`
	Release   engine.Release   `json:",omitzero"`
	Reject    engine.Reject    `json:",omitzero"`
}

// leaderAnswer is the answer to a leaderQuery. The result is sent with an error too.
type leaderAnswer struct {
	NotLeader bool   // nothing was done
	Sequence  uint64 // of the leader's newest record after the operation
	Error     *responseError

	Revealed string            `json:",omitzero"` // a session token or an API key
	Expires  time.Time         `json:",omitzero"` // of the session
	Key      account.KeyRecord `json:",omitzero"`
	Policy   account.KeyPolicy `json:",omitzero"`
	Leases   []*responseError  `json:",omitzero"` // a result for each ask
	Receipt  engine.Receipt    `json:",omitzero"`
}

type responseError struct {
	Code           engine.Code
	Message, Cause string
	RetryAfter     time.Duration
}

// run makes the change on the leader.
func (s *System) run(q *leaderQuery) (r leaderAnswer, err error) {
	switch q.Operation {
	case "RequestCode", "OpenSession":
		return s.runLogin(q)
	case "CloseSession":
		err = s.accounts.CloseSession(q.Digest)
	case "CreateKey":
		var secret account.Secret
		r.Key, secret, err = s.accounts.CreateKey(q.Digest, q.Text)
		r.Revealed = secret.Reveal()
	case "RevokeKey":
		err = s.accounts.RevokeKey(q.Digest, q.Text)
	case "SuspendAccount":
		err = s.accounts.SuspendAccount(q.Account, q.Text, q.By)
	case "RestoreAccount":
		err = s.accounts.RestoreAccount(q.Account, q.By)
	case "SetAccountQuota":
		err = s.accounts.SetAccountQuota(q.Account, q.Quota, q.By)
	case "UnlockLogin":
		err = s.accounts.UnlockLogin(account.NewEmailID(q.Digest, q.Text), q.By)
	case "Announce":
		r.Policy, err = s.accounts.Announce(q.RequiredAt, q.By)
	case "WithdrawAnnouncement":
		err = s.accounts.WithdrawAnnouncement(q.By)
	case "GrantLeases":
		for _, err := range s.accounts.Grant(q.Asks) {
			r.Leases = append(r.Leases, responseErrorOf(err))
		}
	case "Observe":
		r.Receipt, err = s.observe(q.Refreshes)
	case "Withdraw":
		r.Receipt, err = s.execute(q.Currency, q.Withdraw)
	case "Release":
		r.Receipt, err = s.execute(q.Currency, q.Release)
	case "Reject":
		r.Receipt, err = s.execute(q.Currency, q.Reject)
	default:
		message := "the leader does not know the operation; do all nodes have the same version?"
		err = &engine.Error{Code: engine.CodeInternalError, Message: message}
	}
	return r, err
}

// runLogin is run for the operations that name a person by the e-mail address.
func (s *System) runLogin(q *leaderQuery) (r leaderAnswer, err error) {
	email, err := account.ParseEmail(q.Email)
	switch {
	case err != nil:
	case q.Operation == "RequestCode":
		err = s.accounts.RequestCode(email, q.From)
	default:
		var token account.Secret
		token, r.Expires, err = s.accounts.OpenSession(email, q.Code, q.From)
		r.Revealed = token.Reveal()
	}
	return r, err
}

// retryLeader is the time after which a query is sent again that no leader has accepted.
const retryLeader = 10 * time.Millisecond

// lead makes a change on the leader. It tries again only while it is certain that nothing was done: during the election
// of a leader.
func (s *System) lead(q leaderQuery) (r leaderAnswer, err error) {
	if err := s.beginChange(); err != nil {
		return r, err
	}
	defer s.calls.leave()
	ctx, cancel := context.WithTimeout(context.Background(), s.config.WriteTimeout)
	defer cancel()
	for {
		if _, leads := s.log.Decides(); leads {
			r, err = s.run(&q)
		} else {
			r, err = s.ask(ctx, &q)
		}
		if !errors.Is(err, commitlog.ErrNotLeader) {
			return r, err
		}
		if problem := s.log.WriteProblem(); problem != nil {
			return r, commitlog.ReadOnly(problem)
		}
		if !pause(ctx, retryLeader) {
			return r, err
		}
	}
}

// pause waits for d. It returns false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// ask sends the query to the leader. After an answer it waits until this node has applied the leader's change.
func (s *System) ask(ctx context.Context, q *leaderQuery) (r leaderAnswer, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return r, accounts.Internal(err)
	}
	data, err := s.log.Shared.Ask(ctx, body)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return leaderAnswer{}, accounts.Internal(fmt.Errorf("read the leader's answer: %w", err))
	}
	switch {
	case r.NotLeader:
		err = commitlog.ErrNotLeader
	case r.Error != nil:
		err = r.Error.error()
	case !s.log.AwaitApplied(ctx, r.Sequence):
		return leaderAnswer{}, commitlog.ErrOutcomeUnknown
	}
	return r, err
}

// answer makes a change for another node, if this node leads.
func (s *System) answer(body []byte) []byte {
	var q leaderQuery
	var r leaderAnswer
	err := json.Unmarshal(body, &q)
	_, leads := s.log.Decides()
	switch {
	case s.available() != nil || !leads:
		r.NotLeader = true
	case err != nil:
		r.Error = responseErrorOf(accounts.Internal(fmt.Errorf("read the query of another node: %w", err)))
	default:
		if r, err = s.run(&q); errors.Is(err, commitlog.ErrNotLeader) {
			r = leaderAnswer{NotLeader: true}
		} else if err != nil {
			r.Error = responseErrorOf(err)
		}
	}
	r.Sequence = s.Sequence()
	data, err := json.Marshal(&r)
	if err != nil {
		panic(err) // all answers have an encoding
	}
	return data
}

func responseErrorOf(err error) *responseError {
	if err == nil {
		return nil
	}
	known := accounts.AsEngineError(err)
	e := &responseError{Code: known.Code, Message: known.Message, RetryAfter: known.RetryAfter}
	if known.Cause != nil {
		e.Cause = known.Cause.Error()
	}
	return e
}

func (e *responseError) error() error {
	if e == nil {
		return nil
	}
	switch e.Message {
	case commitlog.ErrOutcomeUnknown.Message:
		return commitlog.ErrOutcomeUnknown
	case commitlog.ErrNotLeader.Message:
		return commitlog.ErrNotLeader
	}
	err := &engine.Error{Code: e.Code, Message: e.Message, RetryAfter: e.RetryAfter}
	if e.Cause != "" {
		err.Cause = errors.New("at the leader: " + e.Cause)
	}
	return err
}

// leaderAccounts is the accountsAPI of a node in a cluster: the leader makes the changes, this node answers the rest.
type leaderAccounts struct {
	*accounts.Accounts
	system *System
}

func (a *leaderAccounts) change(q leaderQuery) error {
	_, err := a.system.lead(q)
	return err
}

// RequestCode implements account.Service. The leader sends the e-mail.
func (a *leaderAccounts) RequestCode(email account.Email, from account.Requester) error {
	return a.change(leaderQuery{Operation: "RequestCode", Email: email.String(), From: from})
}

// OpenSession implements account.Service.
func (a *leaderAccounts) OpenSession(email account.Email, code string, from account.Requester) (account.Secret, time.Time, error) {
	r, err := a.system.lead(leaderQuery{Operation: "OpenSession", Email: email.String(), Code: code, From: from})
	return account.SecretOf(r.Revealed), r.Expires, err
}

// CloseSession implements account.Service.
func (a *leaderAccounts) CloseSession(token account.Digest) error {
	return a.change(leaderQuery{Operation: "CloseSession", Digest: token})
}

// CreateKey implements account.Service.
func (a *leaderAccounts) CreateKey(token account.Digest, name string) (account.KeyRecord, account.Secret, error) {
	r, err := a.system.lead(leaderQuery{Operation: "CreateKey", Digest: token, Text: name})
	secret := account.SecretOf(r.Revealed)
	r.Key.Digest = secret.Digest()
	return r.Key, secret, err
}

// RevokeKey implements account.Service.
func (a *leaderAccounts) RevokeKey(token account.Digest, id string) error {
	return a.change(leaderQuery{Operation: "RevokeKey", Digest: token, Text: id})
}

// SuspendAccount implements account.Operator.
func (a *leaderAccounts) SuspendAccount(id uint64, reason, by string) error {
	return a.change(leaderQuery{Operation: "SuspendAccount", Account: id, Text: reason, By: by})
}

// RestoreAccount implements account.Operator.
func (a *leaderAccounts) RestoreAccount(id uint64, by string) error {
	return a.change(leaderQuery{Operation: "RestoreAccount", Account: id, By: by})
}

// SetAccountQuota implements account.Operator.
func (a *leaderAccounts) SetAccountQuota(id uint64, quota account.Quota, by string) error {
	return a.change(leaderQuery{Operation: "SetAccountQuota", Account: id, Quota: quota, By: by})
}

// UnlockLogin implements account.Operator.
func (a *leaderAccounts) UnlockLogin(email account.EmailID, by string) error {
	return a.change(leaderQuery{Operation: "UnlockLogin", Digest: email.Digest(), Text: email.String(), By: by})
}

// Announce implements account.Operator.
func (a *leaderAccounts) Announce(requiredAt time.Time, by string) (account.KeyPolicy, error) {
	r, err := a.system.lead(leaderQuery{Operation: "Announce", RequiredAt: requiredAt, By: by})
	return r.Policy, err
}

// WithdrawAnnouncement implements account.Operator.
func (a *leaderAccounts) WithdrawAnnouncement(by string) error {
	return a.change(leaderQuery{Operation: "WithdrawAnnouncement", By: by})
}

// refusedPause is the time after which a node asks again for a lease that the leader has refused.
const refusedPause = 5 * time.Millisecond

// askLeader sends asks for leases to the leader. It tries again while no leader accepts them.
func (s *System) askLeader(asks [][]byte) []error {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.WriteTimeout)
	defer cancel()
	results := make([]error, len(asks))
	for {
		var r leaderAnswer
		problem := s.log.WriteProblem()
		err := error(commitlog.ReadOnly(problem))
		if problem == nil {
			r, err = s.ask(ctx, &leaderQuery{Operation: "GrantLeases", Asks: asks})
		}
		if _, leads := s.log.Decides(); errors.Is(err, commitlog.ErrNotLeader) && !leads && pause(ctx, retryLeader) {
			continue
		}
		for i := range results {
			switch {
			case err != nil:
				results[i] = err
			case i < len(r.Leases):
				results[i] = r.Leases[i].error()
			}
		}
		if slices.Contains(results, error(commitlog.ErrNotLeader)) {
			pause(ctx, refusedPause) // the node may ask again, with what it has applied meanwhile
		}
		return results
	}
}
