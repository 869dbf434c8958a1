package account

import (
	"crypto/hmac"
	"net/netip"
	"time"

	"github.com/tasard/tasard/engine"
)

// Limits of the way from an address to a session (interface §5.5, K2, K3).
const (
	CodeLifetime        = 10 * time.Minute
	CodeTriesMax        = 5
	CodeResendAfter     = time.Minute
	SessionLifetime     = 15 * time.Minute
	wrongTriesDayMax    = 25   // over all codes of an address
	wrongTriesHourMax   = 1000 // over all addresses
	mailsDayMax         = 10   // letters to one address; more requests are answered alike and send none
	codesHourMax        = 5000 // codes asked for, over all addresses
	sessionsPerEmailMax = 8

	// An address that never became an account is forgotten when its day's counters have certainly run out.
	sweepEvery  = 24 * time.Hour
	forgetAfter = 48 * time.Hour
)

// Registry is who may log in: addresses and their accounts, pending codes, sessions, and the counters against guessing. It has one
// owner. CodesIssued and the brakes on clients live in memory only and are void after a restart; everything else is in the log. In a cluster
// (ShareCodes) codes are in the log as well. Spans are measured in steady time, days and the ends that owners are told also in wall time: whichever is earlier counts.
type Registry struct {
	addresses    addressTable
	sessions     map[Digest]SessionState
	sessionOrder []Digest      // tokens in the order of their opening; may name some that are closed
	wrongTries   HourCounter   // wrong tries over all addresses
	codesIssued  HourCounter   // codes asked for over all addresses
	lastSweep    time.Duration // when addresses without an account were last forgotten, steady
	newest       time.Duration // of all facts, steady
	lastID       uint64

	// Of this process alone.
	key            [32]byte // seals codes
	shared         bool     // key is that of all nodes
	clients        loginClients
	attempts       map[Digest]*loginAttempt // of addresses
	triesPending   int                      // wrong tries on their way into the log
	codesPending   int                      // codes on their way into the log
	lastAssignedID uint64                   // the newest account id given away
}

// loginAttempt is what this process knows beyond the log of an address that somebody logs in with.
type loginAttempt struct {
	account      uint64        // given away with a session that is not in the log yet, 0 = none
	nextCodeAt   time.Duration // as addressRow.again, for a code on its way into the log
	triesPending int           // wrong tries on their way into the log
	code         *pendingCode
	sessions     []Digest // in the order of their opening
}

// idle reports that there is nothing to remember.
func (v *loginAttempt) idle(now time.Duration) bool {
	return v.account == 0 && v.triesPending == 0 && v.nextCodeAt <= now && len(v.sessions) == 0 && (v.code == nil || !v.code.shared && v.code.Until <= now)
}

// pendingCode is a code that was sent. Its Tries are, unless it is shared, those that are decided.
type pendingCode struct {
	CodeState
	shared   bool // it is in the log, and all nodes know it
	reserved bool // shared: the session that it opens is on its way into the log
}

func (c *pendingCode) valid(now ClockReading) bool {
	return now.Wall.Before(c.Expires) && now.Steady < c.Until
}

// usable reports that a code may open a session, while so many wrong tries are on their way into the log. One that is not shared is gone when
// it may not.
func (c *pendingCode) usable(trying int) bool {
	return !c.shared || !c.reserved && c.Tries+trying < CodeTriesMax
}

// RegistryEvent is a fact about logins.
type RegistryEvent interface{ registryEvent() }

// The facts of logins. Steady is ClockReading.Steady.
type (
	// CodeIssued says that a code was asked for; Mailed, that a letter goes out. The code itself is not in it, and sealed only in a
	// cluster, for the other nodes.
	CodeIssued struct {
		Email  EmailID
		At     time.Time
		Steady time.Duration
		Mailed bool
		Sealed CodeSeal
	}
	// CodeFailed counts a wrong try.
	CodeFailed struct {
		Email  EmailID
		At     time.Time
		Steady time.Duration
	}
	// SessionOpened begins a session; the code that opened it is used up. New begins the account as well.
	SessionOpened struct {
		Account uint64
		New     bool
		Email   EmailID
		Token   Digest
		Expires time.Time
		At      time.Time
		Steady  time.Duration
	}
	// SessionClosed signs out.
	SessionClosed struct{ Token Digest }
)

func (*CodeIssued) registryEvent()    {}
func (*CodeFailed) registryEvent()    {}
func (*SessionOpened) registryEvent() {}
func (*SessionClosed) registryEvent() {}

// NewRegistry is a registry without facts; key is fresh random bytes of this process.
func NewRegistry(key [32]byte) *Registry {
	return &Registry{
		key: key, addresses: addressTable{index: map[Digest]uint32{}}, sessions: map[Digest]SessionState{}, clients: loginClients{}, attempts: map[Digest]*loginAttempt{},
	}
}

// loginAttempt is the visitor with an address, made when he is new.
func (r *Registry) attempt(email EmailID) *loginAttempt {
	v := r.attempts[email.digest]
	if v == nil {
		v = &loginAttempt{}
		r.attempts[email.digest] = v
	}
	return v
}

// attemptCopy is a copy of what is known of the visitor with an address.
func (r *Registry) attemptCopy(email EmailID) loginAttempt {
	if v := r.attempts[email.digest]; v != nil {
		return *v
	}
	return loginAttempt{}
}

// RequestCode decides that a code goes to an address (K1–K3). The answer is the same whether the address is known or not. The code
// becomes valid with ActivateCode, once the event is durable. Without Mailed nothing is sent and no code becomes valid; everything else,
// ActivateCode included, is done alike, so that neither the answer nor its time tells.
func (r *Registry) RequestCode(email EmailID, from netip.Addr, now ClockReading) (*CodeIssued, error) {
	c := r.clients.get(from)
	if wait := c.codes.wait(now.Steady, clientCodesHourMax); wait > 0 {
		return nil, errTooManyAttempts(wait)
	}
	c.codes.add(now.Steady)
	return r.RetryRequestCode(email, now)
}

// RetryRequestCode decides a code again that a client asked for and that was void (Rollback): the client is not counted twice.
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

// ActivateCode makes the code of an event valid that is applied: it voids the one before (K2). A sealed one is valid already.
func (r *Registry) ActivateCode(e *CodeIssued, code Secret) {
	pending := newCode(e, sealCode(r.key, e.Email, code.Reveal()), e.Steady)
	if e.Mailed && e.Sealed == (CodeSeal{}) {
		r.attempt(e.Email).code = pending
	}
}

// newCode is the code of an event that arrived at a steady time.
func newCode(e *CodeIssued, seal CodeSeal, at time.Duration) *pendingCode {
	return &pendingCode{CodeState: CodeState{Email: e.Email, Seal: seal, Expires: e.At.Add(CodeLifetime), Until: at + CodeLifetime}}
}

// errInvalidCode is the one answer to every code that does not open a session (K2).
func errInvalidCode() error {
	return &engine.Error{Code: engine.CodeInvalidCode, Message: "the code is not valid; codes last ten minutes, five tries and one use"}
}

// TryCode decides a code. A wrong try gives a CodeFailed event and the error: the event must be durable before the error is
// answered. A right one uses the code up at once and gives the session. Beyond the limits against guessing every code is refused
// without an event.
func (r *Registry) TryCode(email EmailID, code string, token Digest, from netip.Addr, now ClockReading) (RegistryEvent, error) {
	c := r.clients.get(from)
	if wait := c.tries.wait(now.Steady, clientTriesHourMax); wait > 0 {
		return nil, errTooManyAttempts(wait)
	}
	c.tries.add(now.Steady)
	return r.RetryTryCode(email, code, token, now)
}

// RetryTryCode decides a try again that was void (Rollback): its client is not counted twice.
func (r *Registry) RetryTryCode(email EmailID, code string, token Digest, now ClockReading) (RegistryEvent, error) {
	row, pending := r.addresses.row(email), &pendingCode{}
	if code := r.attemptCopy(email).code; code != nil {
		pending = code
	}
	seal := sealCode(r.key, email, code) // also for an unknown address: the same work (S3)
	right := hmac.Equal(seal[:], pending.Seal[:])
	if r.guessLimitReached(email, now) {
		return nil, errInvalidCode()
	}
	visitor := r.attempt(email)
	if !right || !pending.valid(now) || !pending.usable(visitor.triesPending) {
		r.addPendingTry(visitor)
		return &CodeFailed{email, plainUTC(now.Wall), now.Steady}, errInvalidCode()
	}
	visitor.useCode()
	account := row.Account
	if account == 0 {
		if visitor.account == 0 {
			r.lastAssignedID = max(r.lastAssignedID, r.lastID) + 1
			visitor.account = r.lastAssignedID
		}
		account = visitor.account
	}
	return &SessionOpened{
		Account: account, New: row.Account == 0, Email: email, Token: token,
		Expires: plainUTC(now.Wall).Add(SessionLifetime), At: plainUTC(now.Wall), Steady: now.Steady,
	}, nil
}

// guessLimitReached reports that a limit against guessing is reached (S1).
func (r *Registry) guessLimitReached(email EmailID, now ClockReading) bool {
	if r.wrongTries.total(now.Steady)+r.triesPending >= wrongTriesHourMax {
		return true
	}
	row := r.addresses.row(email)
	return row.WrongTries.on(engine.DateOf(now.Wall))+r.attemptCopy(email).triesPending >= wrongTriesDayMax
}

// useCode uses the code up. A shared one is gone when the log says so.
func (v *loginAttempt) useCode() {
	if v.code.shared {
		v.code.reserved = true
	} else {
		v.code = nil
	}
}

// addPendingTry counts a wrong try before it is durable, so that tries side by side don't pass the limits; the last one voids the code.
func (r *Registry) addPendingTry(v *loginAttempt) {
	v.triesPending++
	r.triesPending++
	if v.code == nil || v.code.shared {
		return
	}
	if v.code.Tries++; v.code.Tries >= CodeTriesMax {
		v.code = nil
	}
}

// Abort says that an event decided did not become durable and never will. Whoever asked must not learn what it was.
func (r *Registry) Abort(event RegistryEvent) {
	switch e := event.(type) {
	case *CodeIssued:
		r.codesPending = max(0, r.codesPending-1)
	case *CodeFailed:
		r.endPendingTry(e.Email)
	}
}

// endPendingTry ends what failing began.
func (r *Registry) endPendingTry(email EmailID) {
	r.triesPending = max(0, r.triesPending-1)
	if v := r.attempts[email.digest]; v != nil {
		v.triesPending = max(0, v.triesPending-1)
	}
}

// CloseSession decides a sign-out.
func (r *Registry) CloseSession(token Digest, now ClockReading) (*SessionClosed, error) {
	if _, err := r.Session(token, now); err != nil {
		return nil, err
	}
	return &SessionClosed{token}, nil
}

// Session is the account of a session.
func (r *Registry) Session(token Digest, now ClockReading) (uint64, error) {
	s, open := r.sessions[token]
	if !open || !now.Wall.Before(s.Expires) || now.Steady >= s.Until {
		return 0, &engine.Error{Code: engine.CodeInvalidSession, Message: "the session is unknown or has ended; ask for a code again"}
	}
	return s.Account, nil
}
