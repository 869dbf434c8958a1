package accounts

import (
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// The refusals of a caller once keys are required (K6). They are shared: nobody may change them.
var (
	errMissingKey = &engine.Error{Code: engine.CodeMissingKey, Message: "a key is required; send it as Authorization: Bearer"}
	errInvalidKey = &engine.Error{Code: engine.CodeInvalidKey, Message: "the key is not valid"}
	errRevokedKey = &engine.Error{Code: engine.CodeRevokedKey, Message: "the key is revoked"}
	errSuspended  = &engine.Error{Code: engine.CodeAccountSuspended, Message: "the account of the key is suspended"}
)

// Enforced is account.Gate.
func (t *Accounts) Enforced() bool { return !t.config.LimitsOff }

// Transition is account.Gate. Until the log is replayed none is known.
func (t *Accounts) Transition() account.Transition { return *t.transition.Load() }

// Admit is account.Gate. With a key it takes two messages, without one it takes one; none of them
// allocates, but for one request in eight, which asks for the next lease. With limits off it counts
// nothing and asks for keys only once they are required.
func (t *Accounts) Admit(c account.Caller) (account.Grant, error) {
	if err := t.host.Available(); err != nil {
		return account.Grant{}, err
	}
	required := t.keysRequired()
	if t.config.LimitsOff {
		return t.admitUncounted(c, required)
	}
	switch {
	case c.HasKey:
		grant, err := t.admitKey(c.Key)
		refusal := keyRefusal(grant.Violated)
		switch {
		case err != nil:
			return account.Grant{}, err
		case refusal == nil:
			return grant, nil
		case required:
			return account.Grant{}, refusal
		}
	case required && c.Refused:
		return account.Grant{}, errInvalidKey
	case required:
		return account.Grant{}, errMissingKey
	}
	return t.asks.strangers.Ask(t.strangers.of(c.Address), strangerQuery{c.Address}, t.config.AskTimeout)
}

// keysRequired reads the clock only when there is something to compare with it.
func (t *Accounts) keysRequired() bool {
	transition := t.transition.Load()
	return !transition.RequiredAt.IsZero() && transition.Required(t.config.Clock())
}

// admitKey asks the account of a key. A key of no account is refused like one that its account does not
// know.
func (t *Accounts) admitKey(key account.Digest) (account.Grant, error) {
	id := t.keys.Account(key)
	if id == 0 {
		return account.Grant{Verdict: account.Verdict{Violated: engine.CodeInvalidKey}}, nil
	}
	return t.asks.admissions.Ask(t.Shards.of(id), admissionQuery{id, key}, t.config.AskTimeout)
}

// keyRefusal is the error behind the code that refuses a key, nil for every other code.
func keyRefusal(code engine.Code) error {
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

// admitUncounted is Admit with limits off.
func (t *Accounts) admitUncounted(c account.Caller, required bool) (account.Grant, error) {
	granted := account.Grant{Verdict: account.Verdict{Admitted: true}, Address: c.Address}
	switch {
	case !required:
		return granted, nil
	case c.HasKey:
		_, err := t.KeyUsage(c.Key)
		return granted, err
	case c.Refused:
		return account.Grant{}, errInvalidKey
	}
	return account.Grant{}, errMissingKey
}

// Refund is account.Gate. A refund that finds no room is given up: what was charged stays charged.
func (t *Accounts) Refund(g account.Grant) {
	if !g.Admitted || t.config.LimitsOff || t.host.Available() != nil {
		return
	}
	to := t.Shards.of(g.Account)
	if g.Account == 0 {
		to = t.strangers.of(g.Address)
	}
	_, _ = t.asks.refunds.Ask(to, g, t.config.AskTimeout)
}

// KeyUsage is account.Service.
func (t *Accounts) KeyUsage(key account.Digest) (account.Verdict, error) {
	if err := t.host.Available(); err != nil {
		return account.Verdict{}, err
	}
	id := t.keys.Account(key)
	if id == 0 {
		return account.Verdict{}, errInvalidKey
	}
	return t.asks.usages.Ask(t.Shards.of(id), UsageQuery{account: id, key: key, byKey: true}, t.config.AskTimeout)
}

// session is the account of a session.
func (t *Accounts) session(token account.Digest) (uint64, error) {
	if err := t.host.Available(); err != nil {
		return 0, err
	}
	return t.asks.sessions.Ask(t.Registrar, token, t.config.AskTimeout)
}
