package accounts

import (
	"errors"
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Errors for a missing or unacceptable API key. They are shared values: do not modify them.
var (
	errMissingKey = &engine.Error{Code: engine.CodeMissingKey, Message: "a key is required: make a free one at /account and send it as Authorization: Bearer KEY"}
	errInvalidKey = &engine.Error{Code: engine.CodeInvalidKey, Message: "the key is not valid: check that it is complete, or make a new one at /account"}
	errRevokedKey = &engine.Error{Code: engine.CodeRevokedKey, Message: "the key is revoked: make a new one at /account"}
	errSuspended  = &engine.Error{Code: engine.CodeAccountSuspended, Message: "the account of the key is suspended"}
)

// LimitsEnforced implements account.Admitter.
func (t *Accounts) LimitsEnforced() bool { return !t.config.LimitsOff }

// KeyPolicy implements account.Admitter. During the replay it returns the zero value: no API keys are required.
func (t *Accounts) KeyPolicy() account.KeyPolicy { return *t.keyPolicy.Load() }

// Admit implements account.Admitter. It allocates memory only for a new quota lease. With Config.LimitsOff it counts no
// requests, and checks API keys only if they are required.
func (t *Accounts) Admit(c account.Caller) (account.Admission, error) {
	if err := t.config.Available(); err != nil {
		return account.Admission{}, err
	}
	required := t.keysRequired()
	if t.config.LimitsOff {
		return t.admitUncounted(c, required)
	}
	switch {
	case c.HasKey:
		admission, err := t.admitKey(c.Key)
		keyErr := keyError(admission.DenyCode)
		switch {
		case err != nil:
			return account.Admission{}, err
		case keyErr == nil:
			return admission, nil
		case required:
			return account.Admission{}, keyErr
		}
	case required && c.HasMalformedKey:
		return account.Admission{}, errInvalidKey
	case required:
		return account.Admission{}, errMissingKey
	}
	return t.requestPools.anonymous.Ask(t.anonymous.of(c.Address), anonymousQuery{c.Address}, AskTimeout)
}

// keysRequired reports whether every request needs an API key now. It reads the clock only if an operator has announced
// the date from which this holds.
func (t *Accounts) keysRequired() bool {
	policy := t.keyPolicy.Load()
	return !policy.RequiredAt.IsZero() && policy.Required(t.config.Clock())
}

// admitKey asks the actor of the key's account. In a cluster it first waits at most leaseWaitMax. After this timeout it
// returns errLeaseUnavailable if the cluster has no majority, and the timeout error if a write of the journal is still
// in progress. Otherwise only this process was slow, so it asks again.
func (t *Accounts) admitKey(key account.Digest) (account.Admission, error) {
	actor := t.keys.Lookup(key)
	if actor == nil {
		return account.Admission{QuotaResult: account.QuotaResult{DenyCode: engine.CodeInvalidKey}}, nil
	}
	if t.Node == 0 {
		return t.requestPools.admissions.Ask(actor, admissionQuery{key}, AskTimeout)
	}
	admission, err := t.requestPools.admissions.Ask(actor, admissionQuery{key}, leaseWaitMax)
	switch {
	case !errors.Is(err, mailbox.ErrExpired):
		return admission, err
	case t.Majority.Lost():
		return account.Admission{}, errLeaseUnavailable
	case t.journalHealth.Waits() || t.asking.Load() > 0:
		return account.Admission{}, err
	}
	return t.requestPools.admissions.Ask(actor, admissionQuery{key}, AskTimeout)
}

// errLeaseUnavailable rejects an API request while the account has no quota lease and the cluster cannot give one.
var errLeaseUnavailable = &engine.Error{
	Code: engine.CodeNoMajority, RetryAfter: time.Second, Cause: commitlog.ErrNoMajority,
	Message: "the quota of this key can't be counted now, because too few nodes of the service reach each other; try again in a second or ask " +
		"another node",
}

// keyError returns the error for a code that rejects the key, and nil for other codes.
func keyError(code engine.Code) error {
	switch code {
	case engine.CodeInvalidKey:
		return errInvalidKey
	case engine.CodeRevokedKey:
		return errRevokedKey
	case engine.CodeAccountSuspended:
		return errSuspended
	}
	return nil
}

// admitUncounted is the part of Admit for Config.LimitsOff.
func (t *Accounts) admitUncounted(c account.Caller, required bool) (account.Admission, error) {
	admission := account.Admission{QuotaResult: account.QuotaResult{Admitted: true}, Address: c.Address}
	switch {
	case !required:
		return admission, nil
	case c.HasKey:
		_, err := t.KeyUsage(c.Key)
		return admission, err
	case c.HasMalformedKey:
		return account.Admission{}, errInvalidKey
	}
	return account.Admission{}, errMissingKey
}

// Refund implements account.Admitter. If the mailbox of the actor is full, the request stays counted.
func (t *Accounts) Refund(a account.Admission) {
	if !a.Admitted || t.config.LimitsOff || t.config.Available() != nil {
		return
	}
	to := t.shardOf(a.Account)
	if a.Account == 0 {
		to = t.anonymous.of(a.Address)
	}
	_, _ = t.requestPools.refunds.Ask(to, a, AskTimeout)
}

// KeyUsage implements account.Service.
func (t *Accounts) KeyUsage(key account.Digest) (account.QuotaResult, error) {
	if err := t.config.Available(); err != nil {
		return account.QuotaResult{}, err
	}
	actor := t.keys.Lookup(key)
	if actor == nil {
		return account.QuotaResult{}, errInvalidKey
	}
	return t.requestPools.usages.Ask(actor, UsageQuery{key}, AskTimeout)
}

// session returns the account ID of an open session.
func (t *Accounts) session(token account.Digest) (uint64, error) {
	if err := t.config.Available(); err != nil {
		return 0, err
	}
	return t.requestPools.sessions.Ask(t.Registrar, token, AskTimeout)
}
