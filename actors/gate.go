package actors

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
func (s *System) Enforced() bool { return !s.config.LimitsOff }

// Transition is account.Gate. Until the log is replayed none is known.
func (s *System) Transition() account.Transition { return *s.tenants.transition.Load() }

// Admit is account.Gate. With a key it takes two messages, without one it takes one; none of them
// allocates, but for one request in eight, which asks for the next lease. With limits off it counts
// nothing and asks for keys only once they are required.
func (s *System) Admit(c account.Caller) (account.Grant, error) {
	if err := s.available(); err != nil {
		return account.Grant{}, err
	}
	required := s.keysRequired()
	if s.config.LimitsOff {
		return s.admitUncounted(c, required)
	}
	switch {
	case c.HasKey:
		grant, err := s.admitKey(c.Key)
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
	return s.tenants.asks.strangers.Ask(s.tenants.strangers.of(c.Address), strangerQuery{c.Address}, s.config.AskTimeout)
}

// keysRequired reads the clock only when there is something to compare with it.
func (s *System) keysRequired() bool {
	t := s.tenants.transition.Load()
	return !t.RequiredAt.IsZero() && t.Required(s.config.Clock())
}

// admitKey asks the account of a key. A key of no account is refused like one that its account does not
// know.
func (s *System) admitKey(key account.Digest) (account.Grant, error) {
	id := s.tenants.keys.Account(key)
	if id == 0 {
		return account.Grant{Verdict: account.Verdict{Violated: engine.CodeInvalidKey}}, nil
	}
	return s.tenants.asks.admissions.Ask(s.tenants.shards.of(id), admissionQuery{id, key}, s.config.AskTimeout)
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
func (s *System) admitUncounted(c account.Caller, required bool) (account.Grant, error) {
	granted := account.Grant{Verdict: account.Verdict{Admitted: true}, Address: c.Address}
	switch {
	case !required:
		return granted, nil
	case c.HasKey:
		_, err := s.KeyUsage(c.Key)
		return granted, err
	case c.Refused:
		return account.Grant{}, errInvalidKey
	}
	return account.Grant{}, errMissingKey
}

// Refund is account.Gate. A refund that finds no room is given up: what was charged stays charged.
func (s *System) Refund(g account.Grant) {
	if !g.Admitted || s.config.LimitsOff || s.available() != nil {
		return
	}
	to := s.tenants.shards.of(g.Account)
	if g.Account == 0 {
		to = s.tenants.strangers.of(g.Address)
	}
	_, _ = s.tenants.asks.refunds.Ask(to, g, s.config.AskTimeout)
}

// KeyUsage is account.Service.
func (s *System) KeyUsage(key account.Digest) (account.Verdict, error) {
	if err := s.available(); err != nil {
		return account.Verdict{}, err
	}
	id := s.tenants.keys.Account(key)
	if id == 0 {
		return account.Verdict{}, errInvalidKey
	}
	return s.tenants.asks.usages.Ask(s.tenants.shards.of(id), usageQuery{account: id, key: key, byKey: true}, s.config.AskTimeout)
}

// session is the account of a session.
func (s *System) session(token account.Digest) (uint64, error) {
	if err := s.available(); err != nil {
		return 0, err
	}
	return s.tenants.asks.sessions.Ask(s.tenants.registrar, token, s.config.AskTimeout)
}
