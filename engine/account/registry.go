package account

import (
	"crypto/hmac"
	"net/netip"
	"time"

	"github.com/tasard/tasard/engine"
)

// Limits of logins.
const (
	CodeLifetime        = 10 * time.Minute
	CodeTriesMax        = 5
	CodeResendAfter     = time.Minute
	SessionLifetime     = 15 * time.Minute
	wrongTriesDayMax    = 25   // of one address
	wrongTriesHourMax   = 1000 // of all addresses
	mailsDayMax         = 10   // to one address; more requests get the same answer and no mail
	codesHourMax        = 5000 // requests, of all addresses
	sessionsPerEmailMax = 8

	// An address without an account is removed after its daily counters have run out.
	sweepEvery  = 24 * time.Hour
	forgetAfter = 48 * time.Hour
)

// Registry has the e-mail addresses and their accounts, login codes, sessions, and the counters against guessing. Only
// its owner may call its methods. Login codes and counters of client addresses are in memory only and lost in a
// restart; everything else is in the log. In a cluster (ShareCodes) login codes are in the log as well. Codes and
// sessions end by the wall clock or by steady time, whichever is earlier.
type Registry struct {
	addresses    addressTable
	sessions     map[Digest]SessionState
	sessionOrder []Digest      // tokens by the time of login, also of closed sessions
	wrongTries   HourCounter   // of all addresses
	codesIssued  HourCounter   // of all addresses
	lastSweep    time.Duration // steady
	newest       time.Duration // steady time of the newest event
	lastID       uint64

	// Not in the log:
	key            [32]byte // of the hashes of codes
	shared         bool     // in a cluster: all nodes have key
	clients        loginClients
	attempts       map[Digest]*loginAttempt // by the digest of the address
	triesPending   int                      // wrong tries that are being written
	codesPending   int                      // codes that are being written
	lastAssignedID uint64                   // the newest account id in a decision
}

// loginAttempt is what is known of an address beyond the log.
type loginAttempt struct {
	account      uint64        // assigned to a login that is being written, 0 = none
	nextCodeAt   time.Duration // as AddressState.NextCodeAt, for a code that is being written
	triesPending int           // wrong tries that are being written
	code         *pendingCode
	sessions     []Digest // by the time of login
}

func (a *loginAttempt) idle(now time.Duration) bool {
	return a.account == 0 && a.triesPending == 0 && a.nextCodeAt <= now && len(a.sessions) == 0 && (a.code == nil || !a.code.shared && a.code.Until <= now)
}

// pendingCode is a valid login code. Unless it is shared, Tries includes tries that are being written.
type pendingCode struct {
	CodeState
	shared   bool // it is in the log of a cluster
	reserved bool // shared: the login that uses it is being written
}

func (c *pendingCode) valid(now ClockReading) bool {
	return now.Wall.Before(c.Expires) && now.Steady < c.Until
}

// usable reports that the code may open a session, with so many wrong tries being written. A code that is not shared is
// dropped when it may not.
func (c *pendingCode) usable(trying int) bool {
	return !c.shared || !c.reserved && c.Tries+trying < CodeTriesMax
}

// RegistryEvent is a change of the registry.
type RegistryEvent interface{ registryEvent() }

// The events of logins. Steady is ClockReading.Steady.
type (
	// CodeIssued is a request for a login code. Mailed says that a mail is sent. Sealed is the hash of the code, in a
	// cluster only, for the other nodes.
	CodeIssued struct {
		Email  EmailID
		At     time.Time
		Steady time.Duration
		Mailed bool
		Sealed CodeSeal
	}
	// CodeFailed is a wrong try of a code.
	CodeFailed struct {
		Email  EmailID
		At     time.Time
		Steady time.Duration
	}
	// SessionOpened is a login, which uses up its code. New says that it makes the account.
	SessionOpened struct {
		Account uint64
		New     bool
		Email   EmailID
		Token   Digest
		Expires time.Time
		At      time.Time
		Steady  time.Duration
	}
	// SessionClosed is a sign-out.
	SessionClosed struct{ Token Digest }
)

func (*CodeIssued) registryEvent()    {}
func (*CodeFailed) registryEvent()    {}
func (*SessionOpened) registryEvent() {}
func (*SessionClosed) registryEvent() {}

// NewRegistry returns an empty registry. key is random; in a cluster all nodes have the same.
func NewRegistry(key [32]byte) *Registry {
	return &Registry{
		key: key, addresses: addressTable{index: map[Digest]uint32{}}, sessions: map[Digest]SessionState{}, clients: loginClients{}, attempts: map[Digest]*loginAttempt{},
	}
}

// attempt returns the attempt of an address, a new one when there is none.
func (r *Registry) attempt(email EmailID) *loginAttempt {
	a := r.attempts[email.digest]
	if a == nil {
		a = &loginAttempt{}
		r.attempts[email.digest] = a
	}
	return a
}

// attemptCopy returns a copy of the attempt of an address, for reading.
func (r *Registry) attemptCopy(email EmailID) loginAttempt {
	if a := r.attempts[email.digest]; a != nil {
		return *a
	}
	return loginAttempt{}
}

// RequestCode decides to send a login code to an address. The result does not depend on whether the address is known.
// The code becomes valid with ActivateCode, after the event is durable. When the event is not Mailed, no mail is sent
// and no code becomes valid, but the caller must do everything else alike, so that neither the answer nor its time
// reveals it.
func (r *Registry) RequestCode(email EmailID, from netip.Addr, now ClockReading) (*CodeIssued, error) {
	c := r.clients.get(from)
	if wait := c.codes.wait(now.Steady, clientCodesHourMax); wait > 0 {
		return nil, errTooManyAttempts(wait)
	}
	c.codes.add(now.Steady)
	return r.RetryRequestCode(email, now)
}

// RetryRequestCode decides again after Rollback, without counting the client's address again.
func (r *Registry) RetryRequestCode(email EmailID, now ClockReading) (*CodeIssued, error) {
	row := r.addresses.row(email)
	if wait := max(row.NextCodeAt, r.attemptCopy(email).nextCodeAt) - now.Steady; wait > 0 {
		return nil, &engine.Error{Code: engine.CodeRequestedTooSoon, Message: "a code was sent less than a minute ago", RetryAfter: wait}
	}
	if wait := r.codesIssued.wait(now.Steady, codesHourMax-r.codesPending); wait > 0 {
		return nil, errTooManyAttempts(wait)
	}
	day := engine.DateOf(now.Wall)
	r.attempt(email).nextCodeAt = now.Steady + CodeResendAfter
	r.codesPending++
	mailed := row.Mails.on(day) < mailsDayMax && row.WrongTries.on(day) < wrongTriesDayMax
	return &CodeIssued{Email: email, At: plainUTC(now.Wall), Steady: now.Steady, Mailed: mailed}, nil
}

// ActivateCode makes the code of an applied event valid and voids the one before. A sealed code is valid already.
func (r *Registry) ActivateCode(e *CodeIssued, code Secret) {
	pending := newCode(e, sealCode(r.key, e.Email, code.Reveal()), e.Steady)
	if e.Mailed && e.Sealed == (CodeSeal{}) {
		r.attempt(e.Email).code = pending
	}
}

// newCode returns the code of an event that arrived at a steady time.
func newCode(e *CodeIssued, seal CodeSeal, at time.Duration) *pendingCode {
	return &pendingCode{CodeState: CodeState{Email: e.Email, Seal: seal, Expires: e.At.Add(CodeLifetime), Until: at + CodeLifetime}}
}

// errInvalidCode is the one answer to every code that does not open a session.
func errInvalidCode() error {
	return &engine.Error{Code: engine.CodeInvalidCode, Message: "the code is not valid; codes last ten minutes, five tries and one use"}
}

// TryCode decides a login. For a wrong code it returns a CodeFailed event and the error: the error must not be answered
// before the event is durable. A right code is used up at once. Beyond the limits against guessing it refuses every
// code without an event.
func (r *Registry) TryCode(email EmailID, code string, token Digest, from netip.Addr, now ClockReading) (RegistryEvent, error) {
	c := r.clients.get(from)
	if wait := c.tries.wait(now.Steady, clientTriesHourMax); wait > 0 {
		return nil, errTooManyAttempts(wait)
	}
	c.tries.add(now.Steady)
	return r.RetryTryCode(email, code, token, now)
}

// RetryTryCode decides again after Rollback, without counting the client's address again.
func (r *Registry) RetryTryCode(email EmailID, code string, token Digest, now ClockReading) (RegistryEvent, error) {
	row, pending := r.addresses.row(email), &pendingCode{}
	if code := r.attemptCopy(email).code; code != nil {
		pending = code
	}
	seal := sealCode(r.key, email, code) // also for an unknown address, so that the time does not reveal it
	right := hmac.Equal(seal[:], pending.Seal[:])
	if r.guessLimitReached(email, now) {
		return nil, errInvalidCode()
	}
	attempt := r.attempt(email)
	if !right || !pending.valid(now) || !pending.usable(attempt.triesPending) {
		r.addPendingTry(attempt)
		return &CodeFailed{email, plainUTC(now.Wall), now.Steady}, errInvalidCode()
	}
	attempt.useCode()
	account := row.Account
	if account == 0 {
		if attempt.account == 0 {
			r.lastAssignedID = max(r.lastAssignedID, r.lastID) + 1
			attempt.account = r.lastAssignedID
		}
		account = attempt.account
	}
	return &SessionOpened{
		Account: account, New: row.Account == 0, Email: email, Token: token,
		Expires: plainUTC(now.Wall).Add(SessionLifetime), At: plainUTC(now.Wall), Steady: now.Steady,
	}, nil
}

// guessLimitReached counts tries that are being written as well.
func (r *Registry) guessLimitReached(email EmailID, now ClockReading) bool {
	if r.wrongTries.total(now.Steady)+r.triesPending >= wrongTriesHourMax {
		return true
	}
	row := r.addresses.row(email)
	return row.WrongTries.on(engine.DateOf(now.Wall))+r.attemptCopy(email).triesPending >= wrongTriesDayMax
}

// useCode drops the code. A shared code is dropped when the session is in the log.
func (a *loginAttempt) useCode() {
	if a.code.shared {
		a.code.reserved = true
	} else {
		a.code = nil
	}
}

// addPendingTry counts a wrong try before it is durable, so that concurrent tries do not exceed the limits. The last
// try voids the code.
func (r *Registry) addPendingTry(a *loginAttempt) {
	a.triesPending++
	r.triesPending++
	if a.code == nil || a.code.shared {
		return
	}
	if a.code.Tries++; a.code.Tries >= CodeTriesMax {
		a.code = nil
	}
}

// Abort reports that an event will not become durable. The caller must not learn what it was.
func (r *Registry) Abort(event RegistryEvent) {
	switch e := event.(type) {
	case *CodeIssued:
		r.codesPending = max(0, r.codesPending-1)
	case *CodeFailed:
		r.endPendingTry(e.Email)
	}
}

// endPendingTry reverts addPendingTry.
func (r *Registry) endPendingTry(email EmailID) {
	r.triesPending = max(0, r.triesPending-1)
	if a := r.attempts[email.digest]; a != nil {
		a.triesPending = max(0, a.triesPending-1)
	}
}

// CloseSession decides a sign-out.
func (r *Registry) CloseSession(token Digest, now ClockReading) (*SessionClosed, error) {
	if _, err := r.Session(token, now); err != nil {
		return nil, err
	}
	return &SessionClosed{token}, nil
}

// Session returns the account of a session.
func (r *Registry) Session(token Digest, now ClockReading) (uint64, error) {
	s, open := r.sessions[token]
	if !open || !now.Wall.Before(s.Expires) || now.Steady >= s.Until {
		return 0, &engine.Error{Code: engine.CodeInvalidSession, Message: "the session is unknown or has ended; ask for a code again"}
	}
	return s.Account, nil
}
