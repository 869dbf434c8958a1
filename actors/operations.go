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

// leaderOperation is a change that every node of a cluster accepts, and that the leader makes. A node that does not
// lead sends the query to the leader, and answers when it has itself applied what the leader has changed. A node
// without a cluster does not use it.
type leaderOperation[Q, A any] struct {
	name string
	run  func(*System, Q) (A, error)
}

// operations are all operations by name, for the queries of other nodes. An answer is sent with an error too.
var operations = map[string]func(*System, []byte) (answer any, err error){}

func newOperation[Q, A any](name string, run func(*System, Q) (A, error)) *leaderOperation[Q, A] {
	operations[name] = func(s *System, data []byte) (any, error) {
		var query Q
		if err := json.Unmarshal(data, &query); err != nil {
			return nil, accounts.Internal(fmt.Errorf("read the query of another node: %w", err))
		}
		return run(s, query)
	}
	return &leaderOperation[Q, A]{name, run}
}

// Request and response of a query to the leader, in JSON.
type (
	leaderRequest struct {
		Operation string
		Query     any
	}
	receivedRequest struct {
		Operation string
		Query     json.RawMessage
	}
	leaderResponse[A any] struct {
		NotLeader bool   // nothing was done
		Sequence  uint64 // of the leader's newest record after the operation
		Answer    A
		Error     *responseError
	}
	responseError struct {
		Code           engine.Code
		Message, Cause string
		RetryAfter     time.Duration
	}
)

const (
	retryLeader     = 10 * time.Millisecond  // time after which a query is sent again that no leader has accepted
	problemInterval = 250 * time.Millisecond // interval of checks whether a node can apply a change
)

// do runs the operation on the leader. It tries again only while it is certain that nothing was done: during the
// election of a leader.
func (o *leaderOperation[Q, A]) do(s *System, query Q) (answer A, err error) {
	if err := s.beginChange(); err != nil {
		return answer, err
	}
	defer s.calls.leave()
	ctx, cancel := context.WithTimeout(context.Background(), s.config.WriteTimeout)
	defer cancel()
	for {
		if _, leads := s.log.Decides(); leads {
			answer, err = o.run(s, query)
		} else {
			answer, err = o.ask(ctx, s, query)
		}
		if !errors.Is(err, commitlog.ErrNotLeader) {
			return answer, err
		}
		if problem := s.log.WriteProblem(); problem != nil {
			return answer, commitlog.ReadOnly(problem)
		}
		if !pause(ctx, retryLeader) {
			return answer, err
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
func (o *leaderOperation[Q, A]) ask(ctx context.Context, s *System, query Q) (answer A, err error) {
	body, err := json.Marshal(leaderRequest{o.name, query})
	if err != nil {
		return answer, accounts.Internal(err)
	}
	data, err := s.log.Shared.Ask(ctx, body)
	if err != nil {
		return answer, err
	}
	var r leaderResponse[A]
	if err := json.Unmarshal(data, &r); err != nil {
		return answer, accounts.Internal(fmt.Errorf("read the leader's answer: %w", err))
	}
	switch {
	case r.NotLeader:
		return answer, commitlog.ErrNotLeader
	case r.Error != nil:
		return r.Answer, r.Error.error()
	case !s.awaitApplied(ctx, r.Sequence):
		return answer, commitlog.ErrOutcomeUnknown
	}
	return r.Answer, nil
}

// awaitApplied waits until this node has applied all records up to a sequence. It returns false if it can't.
func (s *System) awaitApplied(ctx context.Context, sequence uint64) bool {
	for {
		wait, cancel := context.WithTimeout(ctx, problemInterval)
		err := s.log.AwaitApplied(wait, sequence)
		cancel()
		if err == nil {
			return true
		}
		if ctx.Err() != nil || s.log.WriteProblem() != nil {
			return false
		}
	}
}

// answer runs an operation for another node, if this node leads.
func (s *System) answer(body []byte) []byte {
	var q receivedRequest
	var r leaderResponse[any]
	err := json.Unmarshal(body, &q)
	run := operations[q.Operation]
	_, leads := s.log.Decides()
	switch {
	case s.available() != nil || !leads:
		r.NotLeader = true
	case err != nil || run == nil:
		r.Error = responseErrorOf(&engine.Error{Code: engine.CodeInternalError, Message: "the leader does not know the operation; do all nodes have the same version?"})
	default:
		if r.Answer, err = run(s, q.Query); errors.Is(err, commitlog.ErrNotLeader) {
			r = leaderResponse[any]{NotLeader: true}
		} else if err != nil {
			r.Error = responseErrorOf(err)
		}
	}
	r.Sequence = s.Sequence()
	data, err := json.Marshal(&r)
	if err != nil {
		panic(err) // all answers of operations have an encoding
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

// Queries of operations, with what JSON can't say of the arguments' types. A change is the query of an operator.
type (
	none      struct{}
	codeQuery struct {
		Email string
		From  account.Requester
	}
	sessionQuery struct {
		Email, Code string
		From        account.Requester
	}
	session struct {
		Token   string
		Expires time.Time
	}
	keyQuery struct {
		Token account.Digest
		Text  string // the name of a new key, or the ID of a key
	}
	createdKey struct {
		Key    account.KeyRecord
		Secret string
	}
	change struct {
		Account    uint64        `json:",omitzero"`
		Quota      account.Quota `json:",omitzero"`
		RequiredAt time.Time     `json:",omitzero"`
		Digest     account.Digest
		Text       string // a reason or the mask of an e-mail address
		By         string
	}
)

// Operations of account.Service.
var (
	requestCode = newOperation("RequestCode", func(s *System, q codeQuery) (none, error) {
		email, err := account.ParseEmail(q.Email)
		if err == nil {
			err = s.accounts.RequestCode(email, q.From)
		}
		return none{}, err
	})
	openSession = newOperation("OpenSession", func(s *System, q sessionQuery) (session, error) {
		email, err := account.ParseEmail(q.Email)
		if err != nil {
			return session{}, err
		}
		token, expires, err := s.accounts.OpenSession(email, q.Code, q.From)
		return session{token.Reveal(), expires}, err
	})
	closeSession = newOperation("CloseSession", func(s *System, token account.Digest) (none, error) {
		return none{}, s.accounts.CloseSession(token)
	})
	createKey = newOperation("CreateKey", func(s *System, q keyQuery) (createdKey, error) {
		key, secret, err := s.accounts.CreateKey(q.Token, q.Text)
		return createdKey{key, secret.Reveal()}, err
	})
	revokeKey = newOperation("RevokeKey", func(s *System, q keyQuery) (none, error) {
		return none{}, s.accounts.RevokeKey(q.Token, q.Text)
	})
)

// Operations of account.Operator.
var (
	suspendAccount = newOperation("SuspendAccount", func(s *System, c change) (none, error) {
		return none{}, s.accounts.SuspendAccount(c.Account, c.Text, c.By)
	})
	restoreAccount = newOperation("RestoreAccount", func(s *System, c change) (none, error) {
		return none{}, s.accounts.RestoreAccount(c.Account, c.By)
	})
	setAccountQuota = newOperation("SetAccountQuota", func(s *System, c change) (none, error) {
		return none{}, s.accounts.SetAccountQuota(c.Account, c.Quota, c.By)
	})
	unlockLogin = newOperation("UnlockLogin", func(s *System, c change) (none, error) {
		return none{}, s.accounts.UnlockLogin(account.NewEmailID(c.Digest, c.Text), c.By)
	})
	announce = newOperation("Announce", func(s *System, c change) (account.KeyPolicy, error) {
		return s.accounts.Announce(c.RequiredAt, c.By)
	})
	withdrawAnnouncement = newOperation("WithdrawAnnouncement", func(s *System, c change) (none, error) {
		return none{}, s.accounts.WithdrawAnnouncement(c.By)
	})
)

// RequestCode implements account.Service. The leader sends the e-mail.
func (a *leaderAccounts) RequestCode(email account.Email, from account.Requester) error {
	_, err := requestCode.do(a.system, codeQuery{email.String(), from})
	return err
}

// OpenSession implements account.Service.
func (a *leaderAccounts) OpenSession(email account.Email, code string, from account.Requester) (account.Secret, time.Time, error) {
	opened, err := openSession.do(a.system, sessionQuery{email.String(), code, from})
	return account.SecretOf(opened.Token), opened.Expires, err
}

// CloseSession implements account.Service.
func (a *leaderAccounts) CloseSession(token account.Digest) error {
	_, err := closeSession.do(a.system, token)
	return err
}

// CreateKey implements account.Service.
func (a *leaderAccounts) CreateKey(token account.Digest, name string) (account.KeyRecord, account.Secret, error) {
	created, err := createKey.do(a.system, keyQuery{token, name})
	secret := account.SecretOf(created.Secret)
	created.Key.Digest = secret.Digest()
	return created.Key, secret, err
}

// RevokeKey implements account.Service.
func (a *leaderAccounts) RevokeKey(token account.Digest, id string) error {
	_, err := revokeKey.do(a.system, keyQuery{token, id})
	return err
}

// SuspendAccount implements account.Operator.
func (a *leaderAccounts) SuspendAccount(id uint64, reason, by string) error {
	_, err := suspendAccount.do(a.system, change{Account: id, Text: reason, By: by})
	return err
}

// RestoreAccount implements account.Operator.
func (a *leaderAccounts) RestoreAccount(id uint64, by string) error {
	_, err := restoreAccount.do(a.system, change{Account: id, By: by})
	return err
}

// SetAccountQuota implements account.Operator.
func (a *leaderAccounts) SetAccountQuota(id uint64, quota account.Quota, by string) error {
	_, err := setAccountQuota.do(a.system, change{Account: id, Quota: quota, By: by})
	return err
}

// UnlockLogin implements account.Operator.
func (a *leaderAccounts) UnlockLogin(email account.EmailID, by string) error {
	_, err := unlockLogin.do(a.system, change{Digest: email.Digest(), Text: email.String(), By: by})
	return err
}

// Announce implements account.Operator.
func (a *leaderAccounts) Announce(requiredAt time.Time, by string) (account.KeyPolicy, error) {
	return announce.do(a.system, change{RequiredAt: requiredAt, By: by})
}

// WithdrawAnnouncement implements account.Operator.
func (a *leaderAccounts) WithdrawAnnouncement(by string) error {
	_, err := withdrawAnnouncement.do(a.system, change{By: by})
	return err
}

// grantLeases decides asks for leases of another node.
var grantLeases = newOperation("GrantLeases", func(s *System, asks [][]byte) ([]*responseError, error) {
	results := make([]*responseError, len(asks))
	for i, err := range s.accounts.Grant(asks) {
		results[i] = responseErrorOf(err)
	}
	return results, nil
})

// refusedPause is the time after which a node asks again for a lease that the leader has refused.
const refusedPause = 5 * time.Millisecond

// askLeader sends asks for leases to the leader. It tries again while no leader accepts them.
func (s *System) askLeader(asks [][]byte) []error {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.WriteTimeout)
	defer cancel()
	results := make([]error, len(asks))
	for {
		var answers []*responseError
		problem := s.log.WriteProblem()
		err := error(commitlog.ReadOnly(problem))
		if problem == nil {
			answers, err = grantLeases.ask(ctx, s, asks)
		}
		if _, leads := s.log.Decides(); errors.Is(err, commitlog.ErrNotLeader) && !leads && pause(ctx, retryLeader) {
			continue
		}
		for i := range results {
			switch {
			case err != nil:
				results[i] = err
			case i < len(answers):
				results[i] = answers[i].error()
			}
		}
		if slices.Contains(results, error(commitlog.ErrNotLeader)) {
			pause(ctx, refusedPause) // the node may ask again, with what it has applied meanwhile
		}
		return results
	}
}

// Operations on rates.
var (
	observeOperation = newOperation("Observe", (*System).observe)
	executeOperation = newOperation("Execute", func(s *System, c currencyCommand) (engine.Receipt, error) { return s.execute(c.Currency, c.command()) })
)

// currencyCommand is the query of System.Execute. One of the commands is set.
type currencyCommand struct {
	Currency string
	Withdraw *engine.Withdraw `json:",omitempty"`
	Release  *engine.Release  `json:",omitempty"`
	Reject   *engine.Reject   `json:",omitempty"`
}

func newCurrencyCommand(currency string, c engine.Command) currencyCommand {
	q := currencyCommand{Currency: currency}
	switch c := c.(type) {
	case engine.Withdraw:
		q.Withdraw = &c
	case engine.Release:
		q.Release = &c
	case engine.Reject:
		q.Reject = &c
	}
	return q
}

func (q *currencyCommand) command() engine.Command {
	switch {
	case q.Withdraw != nil:
		return *q.Withdraw
	case q.Release != nil:
		return *q.Release
	case q.Reject != nil:
		return *q.Reject
	}
	return nil
}
