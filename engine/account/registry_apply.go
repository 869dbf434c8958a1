package account

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Apply changes the registry by a durable event. Outside a replay the event must come from this process; for other
// nodes' events call ApplyRemote. In a cluster's log the monotonic time (ClockReading.Monotonic) may go back; Apply
// then uses the newest time so far.
func (r *Registry) Apply(event RegistryEvent) {
	switch e := event.(type) {
	case *CodeIssued:
		r.endPendingCode(e.Email)
		r.applyAt(e, e.Monotonic)
	case *CodeFailed:
		r.endPendingTry(e)
		r.applyAt(e, e.Monotonic)
	case *SessionOpened:
		r.applyAt(e, e.Monotonic)
	default:
		r.applyAt(event, 0)
	}
}

func (r *Registry) applyAt(event RegistryEvent, monotonic time.Duration) {
	r.newest = max(r.newest, monotonic)
	switch e := event.(type) {
	case *CodeIssued:
		r.codeIssued(e, ClockReading{Wall: e.At, Monotonic: r.newest})
	case *CodeFailed:
		r.editAddress(e.Email, r.newest).WrongTries.add(dayOf(e.At))
		r.wrongTries.add(r.newest)
		// On a node by itself the browser may have a newer code now, which was not tried. Nodes of a cluster can't tell.
		if a := r.attempts[e.Email.digest]; a != nil && (r.shared || a.codeOf(e.Browser) == e.code) {
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
	if a := r.attempts[e.Email.digest]; a != nil {
		a.nextCodeAt = 0
	}
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
	a.account = 0
	if c := a.codeOf(e.Browser); c != nil && (r.shared || c.reserved) { // otherwise it is newer than the login
		a.dropCode(e.Browser)
	}
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
		if a := r.removeSession(token); a != nil && a.idle(now.Monotonic) {
			delete(r.attempts, s.Email.digest)
		}
		ended++
	}
	r.sessionOrder = r.sessionOrder[ended:]
}

// sweepAddresses removes old addresses without an account, once a day. It depends only on events, so that a replay
// removes the same addresses. It keeps a loginAttempt while an event of its address is being written to the log.
func (r *Registry) sweepAddresses(now ClockReading) {
	if now.Monotonic-r.lastSweep < sweepEvery {
		return
	}
	r.lastSweep = now.Monotonic
	maps.DeleteFunc(r.addresses, func(_ Digest, row *AddressState) bool {
		return row.Account == 0 && now.Monotonic-row.LastEventAt >= forgetAfter
	})
	for digest, a := range r.attempts {
		if r.addresses[digest] == nil && a.triesPending == 0 && a.nextCodeAt <= now.Monotonic {
			a.account = 0 // its login did not get into the log
		}
		a.codes = slices.DeleteFunc(a.codes, func(c *pendingCode) bool { return expired(c.Until, c.Expires, now) })
		if a.idle(now.Monotonic) {
			delete(r.attempts, digest)
		}
	}
}
