package account

import (
	"fmt"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

// Apply makes a durable event true: live one that this process decided, at recovery each. ApplyRemote is for those that others decided meanwhile.
// No steady time counts as earlier than one before it in the log: in a cluster each node has its own.
func (r *Registry) Apply(event RegistryEvent) {
	switch e := event.(type) {
	case *CodeIssued:
		r.codesPending = max(0, r.codesPending-1)
		r.applyAt(e, e.Steady)
	case *CodeFailed:
		r.endPendingTry(e.Email)
		r.applyAt(e, e.Steady)
	case *SessionOpened:
		r.applyAt(e, e.Steady)
	default:
		r.applyAt(event, 0)
	}
}

// applyAt notes an event of a steady time.
func (r *Registry) applyAt(event RegistryEvent, at time.Duration) {
	r.newest = max(r.newest, at)
	switch e := event.(type) {
	case *CodeIssued:
		r.codeIssued(e, ClockReading{Wall: e.At, Steady: r.newest})
	case *CodeFailed:
		r.editAddress(e.Email, r.newest).WrongTries.add(engine.DateOf(e.At))
		r.wrongTries.add(r.newest)
		r.countSharedTry(e.Email)
	case *SessionOpened:
		r.sessionOpened(e, ClockReading{Wall: e.At, Steady: r.newest})
	case *SessionClosed:
		r.removeSession(e.Token)
	default:
		panic(fmt.Sprintf("engine: no rule applies an event of type %T", event))
	}
}

// editAddress is the row of an address that something in the log is about, to be changed at once.
func (r *Registry) editAddress(email EmailID, now time.Duration) *AddressState {
	row := r.addresses.edit(email)
	row.LastEventAt = now
	return row
}

func (r *Registry) codeIssued(e *CodeIssued, now ClockReading) {
	r.sweepAddresses(now)
	r.codesIssued.add(now.Steady)
	row := r.editAddress(e.Email, now.Steady)
	row.NextCodeAt = now.Steady + CodeResendAfter
	if !e.Mailed {
		return
	}
	row.Mails.add(engine.DateOf(e.At))
	if e.Sealed != (CodeSeal{}) {
		code := newCode(e, e.Sealed, now.Steady)
		code.shared = true
		r.attempt(e.Email).code = code
	} else if v := r.attempts[e.Email.digest]; v != nil {
		v.code = nil
	}
}

func (r *Registry) sessionOpened(e *SessionOpened, now ClockReading) {
	r.editAddress(e.Email, now.Steady).Account = e.Account
	r.lastID = max(r.lastID, e.Account)
	r.expireSessions(now)
	v := r.attempt(e.Email)
	v.account = 0
	if v.code != nil && v.code.shared {
		v.code = nil
	}
	if len(v.sessions) == sessionsPerEmailMax {
		r.removeSession(v.sessions[0])
	}
	r.addSession(SessionState{e.Token, e.Account, e.Email, e.Expires, now.Steady + SessionLifetime})
}

func (r *Registry) addSession(s SessionState) {
	r.removeSession(s.Token) // of another visitor: nobody draws a token twice, but a log may say so
	r.sessions[s.Token] = s
	r.sessionOrder = append(r.sessionOrder, s.Token)
	v := r.attempt(s.Email)
	v.sessions = append(v.sessions, s.Token)
}

// removeSession forgets a session.
func (r *Registry) removeSession(token Digest) *loginAttempt {
	s, open := r.sessions[token]
	if !open {
		return nil
	}
	delete(r.sessions, token)
	v := r.attempt(s.Email)
	v.sessions = slices.DeleteFunc(v.sessions, func(other Digest) bool { return other == token })
	return v
}

// expireSessions forgets sessions that have ended or were closed. Steady time gives all the same span, so the first opened ends first.
func (r *Registry) expireSessions(now ClockReading) {
	gone := 0
	for _, token := range r.sessionOrder {
		s, open := r.sessions[token]
		if open && !expired(s.Until, s.Expires, now, r.shared) {
			break
		}
		if v := r.removeSession(token); v != nil && v.idle(now.Steady) {
			delete(r.attempts, s.Email.digest)
		}
		gone++
	}
	r.sessionOrder = r.sessionOrder[gone:]
}

// sweepAddresses forgets, once a day, addresses that never became an account. What the log says of them goes on the log's word alone, so that
// a replay forgets the same; what is in flight stays.
func (r *Registry) sweepAddresses(now ClockReading) {
	if now.Steady-r.lastSweep < sweepEvery {
		return
	}
	r.lastSweep = now.Steady
	r.addresses.remove(func(row *AddressState) bool { return row.Account == 0 && now.Steady-row.LastEventAt >= forgetAfter })
	for digest, v := range r.attempts {
		if _, kept := r.addresses.index[digest]; !kept && v.triesPending == 0 && v.nextCodeAt <= now.Steady {
			v.account = 0 // nobody waits for it any more
		}
		if c := v.code; c != nil && c.shared && expired(c.Until, c.Expires, now, true) {
			v.code = nil
		}
		if v.idle(now.Steady) {
			delete(r.attempts, digest)
		}
	}
}
