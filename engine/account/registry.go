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
	CodeTriesMax        = 5 // wrong tries of one code
	CodeResendAfter     = time.Minute
	SessionLifetime     = 15 * time.Minute
	wrongTriesDayMax    = 25   // of one e-mail address
	wrongTriesHourMax   = 1000 // of all e-mail addresses
	mailsDayMax         = 10   // mails to one address; later requests get the same response, but no mail is sent
	codesHourMax        = 5000 // code requests of all e-mail addresses
	sessionsPerEmailMax = 8

	// An address without an account is removed by the first sweep (sweepAddresses) after it had no events for forgetAfter.
	// By then its daily counters no longer matter.
	sweepEvery  = 24 * time.Hour
	forgetAfter = 48 * time.Hour
)

// Registry has the e-mail addresses and their accounts, login codes, sessions, and the counters that limit guessing of
// codes. Its methods must not be called concurrently. Counters of client addresses are in memory only and are lost in a
// restart, and so are login codes of a node without a cluster. In a cluster (ShareCodes) login codes are in the log.
// Everything else is in the log too. A code or session ends when the wall clock or the monotonic time
// (ClockReading.Monotonic) reaches its end, whichever is first.
type Registry struct {
	addresses    addressTable
	sessions     map[Digest]SessionState
	sessionOrder []Digest      // digests of session tokens by the time of login, including closed sessions
	wrongTries   HourCounter   // of all e-mail addresses
	codesIssued  HourCounter   // of all e-mail addresses
	lastSweep    time.Duration // monotonic time of the newest sweepAddresses
	newest       time.Duration // monotonic time of the newest event
	lastID       uint64

	// Not in the log:
	key            [32]byte // secret key for the hashes of codes
	shared         bool     // true in a cluster; all its nodes have the same key
	clients        loginClients
	attempts       map[Digest]*loginAttempt // by the digest of the address
	triesPending   int                      // wrong tries that are being written to the log
	codesPending   int                      // codes that are being written to the log
	lastAssignedID uint64                   // highest account id in any decision, written or not
}

// loginAttempt has the data of an e-mail address that AddressState lacks.
type loginAttempt struct {
	account      uint64        // account id in a login that is being written to the log, or 0
	nextCodeAt   time.Duration // AddressState.NextCodeAt of a code that is being written to the log
	triesPending int           // wrong tries that are being written to the log
	code         *pendingCode
	sessions     []Digest // by the time of login
}

func (a *loginAttempt) idle(now time.Duration) bool {
	return a.account == 0 && a.triesPending == 0 && a.nextCodeAt <= now && len(a.sessions) == 0 && (a.code == nil || !a.code.shared && a.code.Until <= now)
}

// pendingCode is a login code that was issued and not used. For a code that is not shared, Tries also counts the wrong
// tries that are being written to the log.
type pendingCode struct {
	CodeState
	shared   bool // the code is in the log of a cluster
	reserved bool // for a shared code: a login with the code is being written to the log
}

func (c *pendingCode) valid(now ClockReading) bool {
	return now.Wall.Before(c.Expires) && now.Monotonic < c.Until
}

// usable reports whether the code may open a session. triesPending is the number of wrong tries that are being written
// to the log. A code that is not shared (in the log of a cluster) is always usable, because it is dropped after its use
// or after too many tries.
func (c *pendingCode) usable(triesPending int) bool {
	return !c.shared || !c.reserved && c.Tries+triesPending < CodeTriesMax
}

// RegistryEvent is a change of the registry.
type RegistryEvent interface{ registryEvent() }

// Events of logins. Monotonic is the monotonic time (ClockReading.Monotonic) of the decision.
type (
	// CodeIssued is a request for a login code. Mailed reports whether a mail is sent. Sealed is the hash of the code,
	// for the other nodes of a cluster; without a cluster it is zero.
	CodeIssued struct {
		Email     EmailID
		At        time.Time
		Monotonic time.Duration
		Mailed    bool
		Sealed    CodeSeal
	}
	// CodeFailed is a login with a wrong code.
	CodeFailed struct {
		Email     EmailID
		At        time.Time
		Monotonic time.Duration
	}
	// SessionOpened is a login. Its code cannot be used again. New reports whether the login creates the account.
	SessionOpened struct {
		Account   uint64
		New       bool
		Email     EmailID
		Token     Digest
		Expires   time.Time
		At        time.Time
		Monotonic time.Duration
	}
	// SessionClosed is a sign-out.
	SessionClosed struct{ Token Digest }
)

func (*CodeIssued) registryEvent()    {}
func (*CodeFailed) registryEvent()    {}
func (*SessionOpened) registryEvent() {}
func (*SessionClosed) registryEvent() {}

// NewRegistry returns an empty registry. key must be random; in a cluster all nodes must have the same key.
func NewRegistry(key [32]byte) *Registry {
	return &Registry{
		key: key, addresses: addressTable{index: map[Digest]uint32{}}, sessions: map[Digest]SessionState{}, clients: loginClients{}, attempts: map[Digest]*loginAttempt{},
	}
}

func (r *Registry) attempt(email EmailID) *loginAttempt {
	a := r.attempts[email.digest]
	if a == nil {
		a = &loginAttempt{}
		r.attempts[email.digest] = a
	}
	return a
}

// attemptCopy returns a copy of the loginAttempt of an address, or the zero value. Unlike the method attempt, it does
// not create one.
func (r *Registry) attemptCopy(email EmailID) loginAttempt {
	if a := r.attempts[email.digest]; a != nil {
		return *a
	}
	return loginAttempt{}
}

// RequestCode returns the event of a request for a login code. The result does not depend on whether the address is
// known. When the event is durable, the caller makes the code valid with ActivateCode. If Mailed is false, the caller
// must send no mail, and no code becomes valid. The caller must do everything else as usual, so that neither the
// response nor its time shows the difference.
func (r *Registry) RequestCode(email EmailID, addr netip.Addr, now ClockReading) (*CodeIssued, error) {
	c := r.clients.get(addr)
	if wait := c.codes.wait(now.Monotonic, clientCodesHourMax); wait > 0 {
		return nil, errTooManyAttempts(wait)
	}
	c.codes.add(now.Monotonic)
	return r.RetryRequestCode(email, now)
}

// RetryRequestCode repeats RequestCode after Rollback. It does not count the request for the client's address again.
func (r *Registry) RetryRequestCode(email EmailID, now ClockReading) (*CodeIssued, error) {
	row := r.addresses.row(email)
	if wait := max(row.NextCodeAt, r.attemptCopy(email).nextCodeAt) - now.Monotonic; wait > 0 {
		return nil, &engine.Error{Code: engine.CodeRequestedTooSoon, Message: "a code was sent less than a minute ago", RetryAfter: wait}
	}
	if wait := r.codesIssued.wait(now.Monotonic, codesHourMax-r.codesPending); wait > 0 {
		return nil, errTooManyAttempts(wait)
	}
	day := engine.DateOf(now.Wall)
	r.attempt(email).nextCodeAt = now.Monotonic + CodeResendAfter
	r.codesPending++
	mailed := row.Mails.on(day) < mailsDayMax && row.WrongTries.on(day) < wrongTriesDayMax
	return &CodeIssued{Email: email, At: plainUTC(now.Wall), Monotonic: now.Monotonic, Mailed: mailed}, nil
}

// ActivateCode makes the code of an applied event valid and invalidates the previous code. It does nothing for an event
// with Sealed, because Apply has made that code valid.
func (r *Registry) ActivateCode(e *CodeIssued, code Secret) {
	pending := newCode(e, sealCode(r.key, e.Email, code.Reveal()), e.Monotonic) // also if not needed, so that the time is the same
	if e.Mailed && e.Sealed == (CodeSeal{}) {
		r.attempt(e.Email).code = pending
	}
}

// newCode returns the data of the login code that the event issues. now is the monotonic time at which the event was
// decided, or arrived from another node.
func newCode(e *CodeIssued, seal CodeSeal, now time.Duration) *pendingCode {
	return &pendingCode{CodeState: CodeState{Email: e.Email, Seal: seal, Expires: e.At.Add(CodeLifetime), Until: now + CodeLifetime}}
}

// errInvalidCode is the same for every code that does not open a session, so that it does not reveal why.
func errInvalidCode() error {
	return &engine.Error{Code: engine.CodeInvalidCode, Message: "the code is not valid; codes last ten minutes, five tries and one use"}
}

// TryCode decides a login. For the right code it returns a SessionOpened event, and the code cannot be used again. For
// a wrong code it returns both a CodeFailed event and an error. The error must not be sent to the client before the
// event is durable. If a limit on wrong tries is reached, TryCode returns an error and no event, whether or not the
// code is right.
func (r *Registry) TryCode(email EmailID, code string, token Digest, addr netip.Addr, now ClockReading) (RegistryEvent, error) {
	c := r.clients.get(addr)
	if wait := c.tries.wait(now.Monotonic, clientTriesHourMax); wait > 0 {
		return nil, errTooManyAttempts(wait)
	}
	c.tries.add(now.Monotonic)
	return r.RetryTryCode(email, code, token, now)
}

// RetryTryCode repeats TryCode after Rollback. It does not count the try for the client's address again.
func (r *Registry) RetryTryCode(email EmailID, code string, token Digest, now ClockReading) (RegistryEvent, error) {
	row, pending := r.addresses.row(email), &pendingCode{}
	if code := r.attemptCopy(email).code; code != nil {
		pending = code
	}
	seal := sealCode(r.key, email, code) // also for an unknown address, so that the time is the same
	match := hmac.Equal(seal[:], pending.Seal[:])
	if r.guessLimitReached(email, now) {
		return nil, errInvalidCode()
	}
	attempt := r.attempt(email)
	if !match || !pending.valid(now) || !pending.usable(attempt.triesPending) {
		r.addPendingTry(attempt)
		return &CodeFailed{email, plainUTC(now.Wall), now.Monotonic}, errInvalidCode()
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
		Expires: plainUTC(now.Wall).Add(SessionLifetime), At: plainUTC(now.Wall), Monotonic: now.Monotonic,
	}, nil
}

// guessLimitReached reports whether a limit on wrong tries is reached. Tries that are being written to the log count.
func (r *Registry) guessLimitReached(email EmailID, now ClockReading) bool {
	if r.wrongTries.total(now.Monotonic)+r.triesPending >= wrongTriesHourMax {
		return true
	}
	row := r.addresses.row(email)
	return row.WrongTries.on(engine.DateOf(now.Wall))+r.attemptCopy(email).triesPending >= wrongTriesDayMax
}

// useCode prevents another use of the code. It drops a code that is not shared. A shared code is first reserved, and
// dropped when the session is in the log.
func (a *loginAttempt) useCode() {
	if a.code.shared {
		a.code.reserved = true
	} else {
		a.code = nil
	}
}

// addPendingTry counts a wrong try before it is durable, so that concurrent tries do not exceed the limits. After
// CodeTriesMax tries it drops the code.
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

// Abort must be called if an event will not become durable. The response must not show which event it was.
func (r *Registry) Abort(event RegistryEvent) {
	switch e := event.(type) {
	case *CodeIssued:
		r.codesPending = max(0, r.codesPending-1)
	case *CodeFailed:
		r.endPendingTry(e.Email)
	}
}

// endPendingTry takes back one wrong try that addPendingTry counted.
func (r *Registry) endPendingTry(email EmailID) {
	r.triesPending = max(0, r.triesPending-1)
	if a := r.attempts[email.digest]; a != nil {
		a.triesPending = max(0, a.triesPending-1)
	}
}

// CloseSession returns the event of a sign-out.
func (r *Registry) CloseSession(token Digest, now ClockReading) (*SessionClosed, error) {
	if _, err := r.Session(token, now); err != nil {
		return nil, err
	}
	return &SessionClosed{token}, nil
}

// Session returns the account of a session.
func (r *Registry) Session(token Digest, now ClockReading) (uint64, error) {
	s, open := r.sessions[token]
	if !open || !now.Wall.Before(s.Expires) || now.Monotonic >= s.Until {
		return 0, &engine.Error{Code: engine.CodeInvalidSession, Message: "the session is unknown or has ended; ask for a code again"}
	}
	return s.Account, nil
}
