package account

import (
	"crypto/hmac"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

// Limits of logins.
const (
	CodeLifetime      = 10 * time.Minute
	CodeTriesMax      = 5 // wrong tries of one code
	CodeResendAfter   = time.Minute
	SessionLifetime   = 15 * time.Minute
	wrongTriesDayMax  = 25   // of one e-mail address
	wrongTriesHourMax = 1000 // of all e-mail addresses
	// A requester may use this many fifths (wholeShare) of a limit shared by all requesters; see Registry.share.
	defaultShare, frequentShare, wholeShare = 4, 2, 5
	// Maximum mails to one address on a day: requested by one network, by all clients except the known browser (the
	// last one to log in with the address), and by the known browser.
	mailsNetworkMax, mailsDayMax, mailsKnownMax = 2, 30, 10
	codesHourMax                                = 4000 // codes of all addresses with an account
	newcomerCodesHourMax                        = 1000 // codes of all other addresses
	sessionsPerEmailMax                         = 8

	// sweepAddresses runs every sweepEvery. It removes an address without an account after forgetAfter without events,
	// when its daily counters no longer matter.
	sweepEvery  = 24 * time.Hour
	forgetAfter = 48 * time.Hour
)

// Registry contains the e-mail addresses and their accounts, login codes, sessions, and the counters that limit
// guessing of codes. Its methods must not be called concurrently. Only one decision (RequestCode, TryCode,
// CloseSession) may be pending: decide again only after Apply, or if the event will not become durable. A restart loses
// the counters of client addresses and, without a cluster, the login codes (see ShareCodes); everything else is in the
// log. A code or session ends when either the wall clock or the monotonic time (ClockReading.Monotonic) reaches its
// end.
type Registry struct {
	addresses    map[Digest]*AddressState // a row never changes: snapshots have it too (editAddress)
	sessions     map[Digest]SessionState
	sessionOrder []Digest      // digests of session tokens by the time of login, including closed sessions
	wrongTries   HourCounter   // of all e-mail addresses
	codes        HourCounter   // codes of addresses with an account
	newcomers    HourCounter   // codes of other addresses
	lastSweep    time.Duration // monotonic time of the newest sweepAddresses
	newest       time.Duration // monotonic time of the newest event
	lastID       uint64

	// Not in the log:
	key      [32]byte // secret key for the hashes of codes
	shared   bool     // true in a cluster; all its nodes have the same key
	clients  loginClients
	attempts map[Digest]*loginAttempt // by the digest of the address
	usedUp   CodesUsedUp
}

// CodesUsedUp describes the newest refusal of a code because the hour's codes were used up.
type CodesUsedUp struct {
	Since, Until time.Time // the period of refusals, by the wall clock
	Newcomers    bool      // refused are addresses without an account (true), or those with one (false)
}

// CodesUsedUp returns the newest refusal of a code because the hour's codes were used up.
func (r *Registry) CodesUsedUp() CodesUsedUp { return r.usedUp }

// loginAttempt is the data of an e-mail address beside its AddressState.
type loginAttempt struct {
	codes    []CodeState // at most one for each Requester.Browser
	sessions []Digest    // by the time of login
}

func (a *loginAttempt) idle() bool { return len(a.sessions) == 0 && len(a.codes) == 0 }

// codeOf returns the code requested by a browser, or nil.
func (a *loginAttempt) codeOf(browser Digest) *CodeState {
	if i := slices.IndexFunc(a.codes, func(c CodeState) bool { return c.Browser == browser }); i >= 0 {
		return &a.codes[i]
	}
	return nil
}

// countTry counts a wrong try of a code. It drops the code after CodeTriesMax tries.
func (a *loginAttempt) countTry(browser Digest) {
	if c := a.codeOf(browser); c != nil {
		if c.Tries++; c.Tries >= CodeTriesMax {
			a.dropCode(browser)
		}
	}
}

func (a *loginAttempt) dropCode(browser Digest) {
	a.codes = slices.DeleteFunc(a.codes, func(c CodeState) bool { return c.Browser == browser })
}

// setCode replaces the browser's previous code.
func (a *loginAttempt) setCode(c CodeState) {
	a.dropCode(c.Browser)
	a.codes = append(a.codes, c)
}

// makeRoom drops codes, oldest first, until the wrong tries that the remaining codes allow, plus the wrong tries of the
// day, are within the limit. So every remaining code can be tried. It never drops the newest code or the known
// browser's.
func (a *loginAttempt) makeRoom(known Digest, wrongTries int, at time.Time) {
	for i := 0; i < len(a.codes)-1 && wrongTries+a.openTries(at) > wrongTriesDayMax*defaultShare/wholeShare; {
		if (known != Digest{}) && a.codes[i].Browser == known {
			i++
			continue
		}
		a.codes = slices.Delete(a.codes, i, i+1)
	}
}

// openTries returns the number of wrong tries that the codes still allow.
func (a *loginAttempt) openTries(at time.Time) int {
	tries := 0
	for _, c := range a.codes {
		if at.Before(c.Expires) {
			tries += max(0, CodeTriesMax-c.Tries)
		}
	}
	return tries
}

func (c *CodeState) valid(now ClockReading) bool {
	return now.Wall.Before(c.Expires) && now.Monotonic < c.Until
}

// RegistryEvent is a change of the registry.
type RegistryEvent interface{ registryEvent() }

// Events of logins. Monotonic is the monotonic time (ClockReading.Monotonic) of the decision.
type (
	// CodeIssued is a request for a login code. Mailed is false only in logs of earlier versions, which answered some
	// requests without sending a mail. Sealed is the hash of the code for the other nodes of a cluster, else zero.
	// Browser is Requester.Browser; an address has at most one code for each browser.
	CodeIssued struct {
		Email     EmailID
		At        time.Time
		Monotonic time.Duration
		Mailed    bool
		Sealed    CodeSeal
		Browser   Digest
	}
	// CodeFailed is a login with a wrong code while a code was pending. Without a pending code no login can succeed, so
	// a try is not a guess and has no event.
	CodeFailed struct {
		Email     EmailID
		At        time.Time
		Monotonic time.Duration
		Browser   Digest
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
		Browser   Digest
	}
	// SessionClosed is a sign-out.
	SessionClosed struct{ Token Digest }
	// LoginUnlocked clears an address's counters of today, and the wrong tries of all addresses.
	LoginUnlocked struct {
		Email EmailID
		At    time.Time
		By    string // the operator
	}
)

func (*CodeIssued) registryEvent()    {}
func (*CodeFailed) registryEvent()    {}
func (*SessionOpened) registryEvent() {}
func (*SessionClosed) registryEvent() {}
func (*LoginUnlocked) registryEvent() {}

// NewRegistry returns an empty registry. key must be random; in a cluster all nodes must have the same key.
func NewRegistry(key [32]byte) *Registry {
	return &Registry{
		key: key, addresses: map[Digest]*AddressState{}, sessions: map[Digest]SessionState{}, clients: loginClients{}, attempts: map[Digest]*loginAttempt{},
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

// RequestCode returns the event of a request for a login code. The caller mails the code when the event is durable,
// after ActivateCode. The result does not reveal whether the address is known, except while all newcomers' codes are
// used up.
func (r *Registry) RequestCode(email EmailID, from Requester, now ClockReading) (*CodeIssued, error) {
	if err := r.clients.charge(from.Address, func(c *loginClient) *HourCounter { return &c.codes }, clientCodesHourMax, now); err != nil {
		return nil, err
	}
	row, a := r.addressRow(email), r.attemptCopy(email)
	if wait := row.NextCodeAt - now.Monotonic; wait > 0 {
		return nil, &engine.Error{Code: engine.CodeRequestedTooSoon, Message: "a code was sent less than a minute ago", RetryAfter: wait}
	}
	share, today := r.share(row, from, now), now.today()
	if from.knownFor(row) {
		if row.KnownMails.on(today) >= mailsKnownMax {
			return nil, errNoMoreMails("this browser has asked for enough codes for this address today", now)
		}
	} else if r.clients.mailsOf(from.Address, email, today) >= mailsNetworkMax {
		return nil, errNoMoreMails("your network has asked for enough codes for this address today", now)
	} else if row.Mails.on(today) >= mailsDayMax {
		return nil, errNoMoreMails("enough codes were sent to this address today; a browser that has logged in before still gets one", now)
	}
	if row.WrongTries.on(today)+a.protectedTries(row, from, now)+CodeTriesMax > wrongTriesDayMax*share/wholeShare {
		return nil, errNoMoreMails("too many wrong codes were tried for this address today", now)
	}
	if row.Account == 0 && r.clients.uses(from.Address, now) <= 1 {
		share = wholeShare // of the codes of newcomers, the last fifth is for networks that ask for the first time today
	}
	if err := r.checkCodesOfAll(row, share, now); err != nil {
		return nil, err
	}
	return &CodeIssued{Email: email, At: plainUTC(now.Wall), Monotonic: now.Monotonic, Mailed: true, Browser: from.Browser}, nil
}

// checkCodesOfAll returns an error if the requester's share of the hour's codes is used up. Addresses without an
// account have their own budget, so that requests for made-up addresses do not keep owners out.
func (r *Registry) checkCodesOfAll(row AddressState, share int, now ClockReading) error {
	issued, limit, newcomer := &r.codes, codesHourMax, row.Account == 0
	if newcomer {
		issued, limit = &r.newcomers, newcomerCodesHourMax
	}
	wait := issued.wait(now.Monotonic, limit*share/wholeShare)
	if wait <= 0 {
		return nil
	}
	if !now.Wall.Before(r.usedUp.Until) {
		r.usedUp.Since = now.Wall
	}
	r.usedUp.Until, r.usedUp.Newcomers = now.Wall.Add(wait), newcomer
	return &engine.Error{Code: engine.CodeRateLimited, Message: "too many codes are being asked for at this node; try again later", RetryAfter: wait}
}

// errNoMoreMails is the same for known and unknown addresses.
func errNoMoreMails(why string, now ClockReading) error {
	return &engine.Error{Code: engine.CodeRateLimited, Message: why, RetryAfter: endOf(now.today()).Sub(now.Wall)}
}

// knownFor reports whether the requester's browser was the last to log in with an address.
func (q Requester) knownFor(row AddressState) bool {
	return row.Browser != Digest{} && row.Browser == q.Browser
}

// share returns the part of a shared limit that a requester may use, in fifths (wholeShare). Only the known browser of
// the address may use the whole limit, so that other clients can't lock out the owner of the address.
func (r *Registry) share(row AddressState, from Requester, now ClockReading) int {
	switch {
	case from.knownFor(row):
		return wholeShare
	case r.clients.uses(from.Address, now) > frequentUses:
		return frequentShare
	}
	return defaultShare
}

// protectedTries returns the wrong tries that the known browser's code still allows, if another client requests a code.
// A new code can replace all codes except that one (see makeRoom).
func (a *loginAttempt) protectedTries(row AddressState, from Requester, now ClockReading) int {
	if row.Browser == (Digest{}) || from.knownFor(row) {
		return 0
	}
	if c := a.codeOf(row.Browser); c != nil && c.valid(now) {
		return CodeTriesMax - c.Tries
	}
	return 0
}

// ActivateCode makes the code of an applied event valid, unless Apply has done so (with Sealed), and counts its mail
// for the network that has asked for it.
func (r *Registry) ActivateCode(e *CodeIssued, code Secret, from Requester) {
	r.clients.addMail(from.Address, e.Email, dayOf(e.At))
	if e.Sealed == (CodeSeal{}) {
		r.setCode(e, sealCode(r.key, e.Email, code.Reveal()), e.Monotonic)
	}
}

// setCode makes a code valid, and drops older codes if necessary (makeRoom). now is the monotonic time of the decision,
// or of the arrival from another node.
func (r *Registry) setCode(e *CodeIssued, seal CodeSeal, now time.Duration) {
	a, row := r.attempt(e.Email), r.addressRow(e.Email)
	a.setCode(CodeState{Email: e.Email, Seal: seal, Expires: e.At.Add(CodeLifetime), Until: now + CodeLifetime, Browser: e.Browser})
	a.makeRoom(row.Browser, row.WrongTries.on(dayOf(e.At)), e.At)
}

// errInvalidCode is the same for every refused code, so that it does not reveal the reason.
func errInvalidCode() error {
	return &engine.Error{Code: engine.CodeInvalidCode, Message: "the code is not valid; codes last ten minutes, five tries and one use"}
}

// TryCode decides a login. For the right code it returns a SessionOpened event, which uses up the code. For
// a wrong code it returns a CodeFailed event and an error, which must not be sent to the client before the event is
// durable. Without a pending code, or at a limit of wrong tries, TryCode returns an error and no event, whether or not
// the code is right.
func (r *Registry) TryCode(email EmailID, code string, token Digest, from Requester, now ClockReading) (RegistryEvent, error) {
	if err := r.clients.charge(from.Address, func(c *loginClient) *HourCounter { return &c.tries }, clientTriesHourMax, now); err != nil {
		return nil, err
	}
	row, a, pending := r.addressRow(email), r.attemptCopy(email), &CodeState{}
	if own := a.codeOf(from.Browser); own != nil {
		pending = own
	} else if open := a.codeOf(Digest{}); open != nil {
		pending = open
	}
	seal := sealCode(r.key, email, code) // also for an unknown address, so that the time is the same
	match := hmac.Equal(seal[:], pending.Seal[:])
	if row.WrongTries.on(dayOf(now.Wall)) >= wrongTriesDayMax || !pending.valid(now) {
		return nil, errInvalidCode()
	}
	if wait := r.wrongTries.wait(now.Monotonic, wrongTriesHourMax*r.share(row, from, now)/wholeShare); wait > 0 {
		return nil, errTooManyAttempts(wait)
	}
	if !match {
		return &CodeFailed{email, plainUTC(now.Wall), now.Monotonic, pending.Browser}, errInvalidCode()
	}
	account := row.Account
	if account == 0 {
		account = r.lastID + 1
	}
	return &SessionOpened{
		Account: account, New: row.Account == 0, Email: email, Token: token,
		Expires: plainUTC(now.Wall).Add(SessionLifetime), At: plainUTC(now.Wall), Monotonic: now.Monotonic, Browser: pending.Browser,
	}, nil
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

// Apply changes the registry by a durable event. Outside a replay the event must come from this process; for other
// nodes' events call ApplyRemote. In a cluster's log the monotonic time (ClockReading.Monotonic) may go back; Apply
// then uses the newest time so far.
func (r *Registry) Apply(event RegistryEvent) {
	r.applyAt(event, MonotonicOf(event))
}

// MonotonicOf returns the monotonic time (ClockReading.Monotonic) of an event, or 0 if the event has none.
func MonotonicOf(event any) time.Duration {
	switch e := event.(type) {
	case *Leased:
		return e.Monotonic
	case *Returned:
		return e.Monotonic
	case *DayGranted:
		return e.Monotonic
	case *CodeIssued:
		return e.Monotonic
	case *CodeFailed:
		return e.Monotonic
	case *SessionOpened:
		return e.Monotonic
	}
	return 0
}

func (r *Registry) applyAt(event RegistryEvent, monotonic time.Duration) {
	r.newest = max(r.newest, monotonic)
	switch e := event.(type) {
	case *CodeIssued:
		r.codeIssued(e, ClockReading{Wall: e.At, Monotonic: r.newest})
	case *CodeFailed:
		r.editAddress(e.Email, r.newest).WrongTries.add(dayOf(e.At))
		r.wrongTries.add(r.newest)
		if a := r.attempts[e.Email.digest]; a != nil {
			a.countTry(e.Browser)
		}
	case *SessionOpened:
		r.sessionOpened(e, ClockReading{Wall: e.At, Monotonic: r.newest})
	case *SessionClosed:
		r.removeSession(e.Token)
	case *LoginUnlocked:
		r.unlock(e)
	default:
		panic(fmt.Sprintf("engine: no rule applies an event of type %T", event))
	}
}

// addressRow returns a copy of the row of an address, or the zero row.
func (r *Registry) addressRow(email EmailID) AddressState {
	if row := r.addresses[email.digest]; row != nil {
		return *row
	}
	return AddressState{}
}

// editAddress returns a new row of an address for changes, until the next snapshot.
func (r *Registry) editAddress(email EmailID, now time.Duration) *AddressState {
	row := r.addressRow(email)
	row.Email, row.LastEventAt = email, now
	r.addresses[email.digest] = &row
	return &row
}

func (r *Registry) codeIssued(e *CodeIssued, now ClockReading) {
	r.sweepAddresses(now)
	row := r.editAddress(e.Email, now.Monotonic)
	if row.Account == 0 {
		r.newcomers.add(now.Monotonic)
	} else {
		r.codes.add(now.Monotonic)
	}
	row.NextCodeAt = now.Monotonic + CodeResendAfter
	if !e.Mailed {
		return
	}
	if (Requester{Browser: e.Browser}).knownFor(*row) {
		row.KnownMails.add(dayOf(e.At))
	} else {
		row.Mails.add(dayOf(e.At))
	}
	if e.Sealed != (CodeSeal{}) {
		r.setCode(e, e.Sealed, now.Monotonic)
	} else if a := r.attempts[e.Email.digest]; a != nil {
		a.dropCode(e.Browser)
	}
}

// unlock clears an address's counters that block logins.
func (r *Registry) unlock(e *LoginUnlocked) {
	r.wrongTries, r.codes, r.newcomers, r.usedUp = HourCounter{}, HourCounter{}, HourCounter{}, CodesUsedUp{}
	r.clients.forgetMails(e.Email)
	if r.addresses[e.Email.digest] != nil {
		row := r.editAddress(e.Email, r.newest)
		row.NextCodeAt, row.Mails, row.KnownMails, row.WrongTries = 0, DayCounter{}, DayCounter{}, DayCounter{}
	}
}

func (r *Registry) sessionOpened(e *SessionOpened, now ClockReading) {
	row := r.editAddress(e.Email, now.Monotonic)
	row.Account = e.Account
	if (e.Browser != Digest{}) {
		row.Browser = e.Browser
	}
	r.lastID = max(r.lastID, e.Account)
	r.expireSessions(now)
	a := r.attempt(e.Email)
	a.dropCode(e.Browser)
	if len(a.sessions) == sessionsPerEmailMax {
		r.removeSession(a.sessions[0])
	}
	r.addSession(SessionState{e.Token, e.Account, e.Email, e.Expires, now.Monotonic + SessionLifetime})
}

func (r *Registry) addSession(s SessionState) {
	r.removeSession(s.Token) // a log may have the same token twice
	r.sessions[s.Token] = s
	r.sessionOrder = append(r.sessionOrder, s.Token)
	a := r.attempt(s.Email)
	a.sessions = append(a.sessions, s.Token)
}

// removeSession removes a session and returns its address's loginAttempt, or nil for an unknown session.
func (r *Registry) removeSession(token Digest) *loginAttempt {
	s, open := r.sessions[token]
	if !open {
		return nil
	}
	delete(r.sessions, token)
	a := r.attempt(s.Email)
	a.sessions = slices.DeleteFunc(a.sessions, func(other Digest) bool { return other == token })
	return a
}

// expireSessions removes expired sessions. All have the same lifetime, so they end in the order of login.
func (r *Registry) expireSessions(now ClockReading) {
	ended := 0
	for _, token := range r.sessionOrder {
		s, open := r.sessions[token]
		if open && !expired(s.Until, s.Expires, now) {
			break
		}
		if a := r.removeSession(token); a != nil && a.idle() {
			delete(r.attempts, s.Email.digest)
		}
		ended++
	}
	r.sessionOrder = r.sessionOrder[ended:]
}

// sweepAddresses removes old addresses without an account, once a day. It depends only on events, so that a replay
// removes the same addresses.
func (r *Registry) sweepAddresses(now ClockReading) {
	if now.Monotonic-r.lastSweep < sweepEvery {
		return
	}
	r.lastSweep = now.Monotonic
	maps.DeleteFunc(r.addresses, func(_ Digest, row *AddressState) bool {
		return row.Account == 0 && now.Monotonic-row.LastEventAt >= forgetAfter
	})
	for digest, a := range r.attempts {
		a.codes = slices.DeleteFunc(a.codes, func(c CodeState) bool { return expired(c.Until, c.Expires, now) })
		if a.idle() {
			delete(r.attempts, digest)
		}
	}
}
