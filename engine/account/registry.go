package account

import (
	"bytes"
	"cmp"
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
	state     RegistryState            // without Addresses and SharedCodes
	addresses map[Digest]*AddressState // a row never changes: snapshots have it too (editAddress)
	open      map[Digest]int           // number of state.Sessions by the digest of the address
	newest    time.Duration            // monotonic time of the newest event

	// Not in the log:
	key     [32]byte // secret key for the hashes of codes
	shared  bool     // true in a cluster; all its nodes have the same key
	clients loginClients
	codes   map[Digest]loginCodes // by the digest of the address
	// UsedUp is the newest refusal of a code because the hour's codes were used up.
	UsedUp CodesUsedUp
}

// CodesUsedUp describes the newest refusal of a code because the hour's codes were used up.
type CodesUsedUp struct {
	Since, Until time.Time // the period of refusals, by the wall clock
	Newcomers    bool      // refused are addresses without an account (true), or those with one (false)
}

// loginCodes are the codes of an e-mail address, oldest first, at most one for each Requester.Browser.
type loginCodes []CodeState

// of returns the code requested by a browser, or nil.
func (l loginCodes) of(browser Digest) *CodeState {
	if i := slices.IndexFunc(l, func(c CodeState) bool { return c.Browser == browser }); i >= 0 {
		return &l[i]
	}
	return nil
}

// without removes the code requested by a browser.
func (l loginCodes) without(browser Digest) loginCodes {
	return slices.DeleteFunc(l, func(c CodeState) bool { return c.Browser == browser })
}

// limited drops codes, oldest first, until the wrong tries that the remaining codes allow, plus the wrong tries of the
// day, are within the limit. So every remaining code can be tried. It never drops the newest code or the known
// browser's.
func (l loginCodes) limited(known Digest, wrongTries int, at time.Time) loginCodes {
	for i := 0; i < len(l)-1 && wrongTries+l.openTries(at) > wrongTriesDayMax*defaultShare/wholeShare; {
		if (known != Digest{}) && l[i].Browser == known {
			i++
			continue
		}
		l = slices.Delete(l, i, i+1)
	}
	return l
}

// openTries returns the number of wrong tries that the codes still allow.
func (l loginCodes) openTries(at time.Time) int {
	tries := 0
	for _, c := range l {
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
		key: key, addresses: map[Digest]*AddressState{}, open: map[Digest]int{}, clients: loginClients{}, codes: map[Digest]loginCodes{},
	}
}

// setCodes replaces the codes of an address.
func (r *Registry) setCodes(address Digest, codes loginCodes) {
	if r.codes[address] = codes; len(codes) == 0 {
		delete(r.codes, address)
	}
}

// dropCode drops the code of an address that a browser has requested.
func (r *Registry) dropCode(email EmailID, browser Digest) {
	r.setCodes(email.digest, r.codes[email.digest].without(browser))
}

// RequestCode returns the event of a request for a login code. The caller mails the code when the event is durable,
// after ActivateCode. The result does not reveal whether the address is known, except while all newcomers' codes are
// used up.
func (r *Registry) RequestCode(email EmailID, from Requester, now ClockReading) (*CodeIssued, error) {
	if err := r.clients.charge(from.Address, func(c *loginClient) *HourCounter { return &c.codes }, clientCodesHourMax, now); err != nil {
		return nil, err
	}
	row := r.addressRow(email)
	if wait := row.NextCodeAt - now.Monotonic; wait > 0 {
		return nil, &engine.Error{Code: engine.CodeRequestedTooSoon, Message: "a code was sent less than a minute ago", RetryAfter: wait}
	}
	share, today := r.share(row, from, now), now.today()
	if from.knownFor(row) {
		if row.KnownMails.on(today) >= mailsKnownMax {
			return nil, errNoMoreMails("this browser has asked for enough codes for this address today", now)
		}
	} else if r.clients.network(from.Address).mails[email.digest].on(today) >= mailsNetworkMax {
		return nil, errNoMoreMails("your network has asked for enough codes for this address today", now)
	} else if row.Mails.on(today) >= mailsDayMax {
		return nil, errNoMoreMails("enough codes were sent to this address today; a browser that has logged in before still gets one", now)
	}
	if row.WrongTries.on(today)+r.codes[email.digest].protectedTries(row, from, now)+CodeTriesMax > wrongTriesDayMax*share/wholeShare {
		return nil, errNoMoreMails("too many wrong codes were tried for this address today", now)
	}
	if row.Account == 0 && r.clients.uses(from.Address, now) <= 1 {
		share = wholeShare // of the codes of newcomers, the last fifth is for networks that ask for the first time today
	}
	if err := r.checkCodesOfAll(row, share, now); err != nil {
		return nil, err
	}
	return &CodeIssued{Email: email, At: engine.PlainUTC(now.Wall), Monotonic: now.Monotonic, Mailed: true, Browser: from.Browser}, nil
}

// checkCodesOfAll returns an error if the requester's share of the hour's codes is used up. Addresses without an
// account have their own budget, so that requests for made-up addresses do not keep owners out.
func (r *Registry) checkCodesOfAll(row AddressState, share int, now ClockReading) error {
	issued, limit, newcomer := &r.state.Codes, codesHourMax, row.Account == 0
	if newcomer {
		issued, limit = &r.state.Newcomers, newcomerCodesHourMax
	}
	wait := issued.wait(now.Monotonic, limit*share/wholeShare)
	if wait <= 0 {
		return nil
	}
	if !now.Wall.Before(r.UsedUp.Until) {
		r.UsedUp.Since = now.Wall
	}
	r.UsedUp.Until, r.UsedUp.Newcomers = now.Wall.Add(wait), newcomer
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
// A new code can replace all codes except that one (see limited).
func (l loginCodes) protectedTries(row AddressState, from Requester, now ClockReading) int {
	if row.Browser == (Digest{}) || from.knownFor(row) {
		return 0
	}
	if c := l.of(row.Browser); c != nil && c.valid(now) {
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

// setCode makes a code valid, and drops older codes if necessary (limited). now is the monotonic time of the decision,
// or of the arrival from another node.
func (r *Registry) setCode(e *CodeIssued, seal CodeSeal, now time.Duration) {
	row, codes := r.addressRow(e.Email), r.codes[e.Email.digest].without(e.Browser)
	codes = append(codes, CodeState{Email: e.Email, Seal: seal, Expires: e.At.Add(CodeLifetime), Until: now + CodeLifetime, Browser: e.Browser})
	r.setCodes(e.Email.digest, codes.limited(row.Browser, row.WrongTries.on(dayOf(e.At)), e.At))
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
	row, codes := r.addressRow(email), r.codes[email.digest]
	pending := cmp.Or(codes.of(from.Browser), codes.of(Digest{}), &CodeState{})
	seal := sealCode(r.key, email, code) // also for an unknown address, so that the time is the same
	match := hmac.Equal(seal[:], pending.Seal[:])
	if row.WrongTries.on(dayOf(now.Wall)) >= wrongTriesDayMax || !pending.valid(now) {
		return nil, errInvalidCode()
	}
	if wait := r.state.WrongTries.wait(now.Monotonic, wrongTriesHourMax*r.share(row, from, now)/wholeShare); wait > 0 {
		return nil, errTooManyAttempts(wait)
	}
	if !match {
		return &CodeFailed{email, engine.PlainUTC(now.Wall), now.Monotonic, pending.Browser}, errInvalidCode()
	}
	account := row.Account
	if account == 0 {
		account = r.state.LastID + 1
	}
	return &SessionOpened{
		Account: account, New: row.Account == 0, Email: email, Token: token,
		Expires: engine.PlainUTC(now.Wall).Add(SessionLifetime), At: engine.PlainUTC(now.Wall), Monotonic: now.Monotonic, Browser: pending.Browser,
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
	for _, s := range r.state.Sessions {
		if s.Token == token && now.Wall.Before(s.Expires) && now.Monotonic < s.Until {
			return s.Account, nil
		}
	}
	return 0, &engine.Error{Code: engine.CodeInvalidSession, Message: "the session is unknown or has ended; ask for a code again"}
}

// Apply changes the registry by a durable event. Outside a replay the event must come from this process; for other
// nodes' events call ApplyAt.
func (r *Registry) Apply(event RegistryEvent) { r.ApplyAt(event, MonotonicOf(event)) }

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

// ApplyAt is Apply for another process's durable event. monotonic is the time of its arrival; it replaces the event's
// monotonic time. If it is before an earlier event's, the newest time so far counts. A decision of this process that is
// not in the log yet was made without the event, and must not get there.
func (r *Registry) ApplyAt(event RegistryEvent, monotonic time.Duration) {
	r.newest = max(r.newest, monotonic)
	switch e := event.(type) {
	case *CodeIssued:
		r.codeIssued(e, ClockReading{Wall: e.At, Monotonic: r.newest})
	case *CodeFailed:
		r.editAddress(e.Email, r.newest).WrongTries.add(dayOf(e.At))
		r.state.WrongTries.add(r.newest)
		if c := r.codes[e.Email.digest].of(e.Browser); c != nil {
			if c.Tries++; c.Tries >= CodeTriesMax {
				r.dropCode(e.Email, e.Browser)
			}
		}
	case *SessionOpened:
		r.sessionOpened(e, ClockReading{Wall: e.At, Monotonic: r.newest})
	case *SessionClosed:
		r.closeSession(e.Token)
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
		r.state.Newcomers.add(now.Monotonic)
	} else {
		r.state.Codes.add(now.Monotonic)
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
	} else {
		r.dropCode(e.Email, e.Browser)
	}
}

// unlock clears an address's counters that block logins.
func (r *Registry) unlock(e *LoginUnlocked) {
	r.state.WrongTries, r.state.Codes, r.state.Newcomers, r.UsedUp = HourCounter{}, HourCounter{}, HourCounter{}, CodesUsedUp{}
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
	r.state.LastID = max(r.state.LastID, e.Account)
	r.dropCode(e.Email, e.Browser)
	ended := 0
	for ; ended < len(r.state.Sessions); ended++ { // all have the same lifetime, so they end in the order of login
		if s := &r.state.Sessions[ended]; !expired(s.Until, s.Expires, now) {
			break
		}
	}
	r.removeSessions(0, ended)
	if r.open[e.Email.digest] > 0 { // else the log of many first logins would take quadratic time
		r.closeSession(e.Token) // a log may have the same token twice
		if r.open[e.Email.digest] == sessionsPerEmailMax {
			oldest := slices.IndexFunc(r.state.Sessions, func(s SessionState) bool { return s.Email == e.Email })
			r.removeSessions(oldest, oldest+1)
		}
	}
	r.addSession(SessionState{e.Token, e.Account, e.Email, e.Expires, now.Monotonic + SessionLifetime})
}

func (r *Registry) addSession(s SessionState) {
	r.state.Sessions = append(r.state.Sessions, s)
	r.open[s.Email.digest]++
}

func (r *Registry) closeSession(token Digest) {
	if i := slices.IndexFunc(r.state.Sessions, func(s SessionState) bool { return s.Token == token }); i >= 0 {
		r.removeSessions(i, i+1)
	}
}

// removeSessions removes the sessions from index from up to index to.
func (r *Registry) removeSessions(from, to int) {
	for i := from; i < to; i++ {
		address := r.state.Sessions[i].Email.digest
		if r.open[address]--; r.open[address] == 0 {
			delete(r.open, address)
		}
	}
	if from == 0 { // without moving a long list
		clear(r.state.Sessions[:to])
		r.state.Sessions = r.state.Sessions[to:]
		return
	}
	r.state.Sessions = slices.Delete(r.state.Sessions, from, to)
}

// sweepAddresses removes old addresses without an account, once a day. It depends only on events, so that a replay
// removes the same addresses.
func (r *Registry) sweepAddresses(now ClockReading) {
	if now.Monotonic-r.state.LastSweep < sweepEvery {
		return
	}
	r.state.LastSweep = now.Monotonic
	maps.DeleteFunc(r.addresses, func(_ Digest, row *AddressState) bool {
		return row.Account == 0 && now.Monotonic-row.LastEventAt >= forgetAfter
	})
	for address, codes := range r.codes {
		r.setCodes(address, slices.DeleteFunc(codes, func(c CodeState) bool { return expired(c.Until, c.Expires, now) }))
	}
}

// RegistryState is the logged part of the registry in the form of a snapshot. Addresses are in no particular order; the
// registry has the same rows and never changes them. Sessions are sorted by the time of login, codes of an address by
// age.
type RegistryState struct {
	Addresses   []*AddressState
	Sessions    []SessionState
	WrongTries  HourCounter
	Codes       HourCounter   // codes of addresses with an account
	Newcomers   HourCounter   // codes of other addresses
	LastSweep   time.Duration // monotonic time of the newest removal of old addresses
	LastID      uint64
	SharedCodes []CodeState // in a cluster: the valid login codes
}

// AddressState is an e-mail address with its account and its counters. Monotonic time is ClockReading.Monotonic.
type AddressState struct {
	Email       EmailID
	Account     uint64        // 0 before the first login
	NextCodeAt  time.Duration // monotonic time before which no other code is sent
	LastEventAt time.Duration // monotonic time of the newest event of the address
	Mails       DayCounter    // mails requested by other clients than Browser
	KnownMails  DayCounter    // mails requested by Browser
	WrongTries  DayCounter
	Browser     Digest // Requester.Browser of the newest login from a browser
}

// SessionState is an open session.
type SessionState struct {
	Token   Digest
	Account uint64
	Email   EmailID
	Expires time.Time
	Until   time.Duration // monotonic time at which the session ends
}

// Snapshot returns the current state of the registry. It copies no address, and takes milliseconds for 100,000 of them.
func (r *Registry) Snapshot() RegistryState {
	state := r.state
	state.Addresses, state.SharedCodes = slices.Collect(maps.Values(r.addresses)), r.sharedCodes()
	state.Sessions = append([]SessionState(nil), r.state.Sessions...)
	return state
}

// RestoreRegistry returns the registry of a snapshot. The caller must not change the addresses afterwards.
func RestoreRegistry(state RegistryState, key [32]byte) *Registry {
	r := NewRegistry(key)
	r.addresses, r.newest = make(map[Digest]*AddressState, len(state.Addresses)), state.LastSweep
	for _, row := range state.Addresses {
		r.addresses[row.Email.digest] = row
		r.newest = max(r.newest, row.LastEventAt)
	}
	for _, c := range state.SharedCodes {
		r.codes[c.Email.digest] = append(r.codes[c.Email.digest], c)
	}
	r.state = state
	r.state.Addresses, r.state.SharedCodes, r.state.Sessions = nil, nil, nil
	for _, s := range state.Sessions {
		r.addSession(s)
	}
	return r
}

// CodeState is a login code of a cluster. All nodes can check it.
type CodeState struct {
	Email   EmailID
	Seal    CodeSeal
	Expires time.Time
	Until   time.Duration // monotonic time (ClockReading.Monotonic) at which the code ends
	Tries   int           // wrong tries
	Browser Digest        // Requester.Browser
}

// ShareCodes prepares the registry for a cluster, where all nodes have the same key: it puts the hashes of codes in the
// log. A code then works on any node, but only once, and its wrong tries are counted over all nodes. Call ShareCodes
// before the first decision.
func (r *Registry) ShareCodes() { r.shared = true }

// Seal adds the hash of the code to an event of RequestCode, before the event is written. Without ShareCodes it does
// nothing.
func (r *Registry) Seal(e *CodeIssued, code Secret) {
	if r.shared {
		e.Sealed = sealCode(r.key, e.Email, code.Reveal())
	}
}

// Resume completes a replay in a cluster, after the newest event of the log. Other nodes' monotonic times do not show
// the age of a code or session. Therefore its lifetime in monotonic time starts again, but the wall clock ends it in
// time.
func (r *Registry) Resume(now ClockReading) {
	r.newest = max(r.newest, now.Monotonic)
	for i := range r.state.Sessions {
		r.state.Sessions[i].Until = r.newest + SessionLifetime
	}
	for _, codes := range r.codes {
		for i := range codes {
			codes[i].Until = r.newest + CodeLifetime
		}
	}
}

// expired reports whether a code or session has reached both ends, by the monotonic clock and by the wall clock.
// Monotonic times in the log come from different nodes, so one of the two does not show that it was long ago.
func expired(until time.Duration, expires time.Time, now ClockReading) bool {
	return now.Monotonic >= until && !now.Wall.Before(expires)
}

// sharedCodes returns the valid codes that are in the log, by address, oldest first.
func (r *Registry) sharedCodes() []CodeState {
	var codes []CodeState
	for _, all := range r.codes {
		for _, c := range all {
			if r.shared && r.newest < c.Until {
				codes = append(codes, c)
			}
		}
	}
	slices.SortStableFunc(codes, func(a, b CodeState) int { return bytes.Compare(a.Email.digest[:], b.Email.digest[:]) })
	return codes
}
