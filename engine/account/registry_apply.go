package account

import (
	"fmt"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

// Apply makes a durable event true: live one that this process decided, at recovery each. Learn is for those that others decided meanwhile.
// No steady time counts as earlier than one before it in the log: in a cluster each node has its own.
func (r *Registry) Apply(event RegistryEvent) {
	switch e := event.(type) {
	case *CodeIssued:
		r.asking = max(0, r.asking-1)
		r.keep(e, e.Steady)
	case *CodeFailed:
		r.tried(e.Email)
		r.keep(e, e.Steady)
	case *SessionOpened:
		r.keep(e, e.Steady)
	default:
		r.keep(event, 0)
	}
}

// keep notes an event of a steady time.
func (r *Registry) keep(event RegistryEvent, at time.Duration) {
	r.newest = max(r.newest, at)
	switch e := event.(type) {
	case *CodeIssued:
		r.codeIssued(e, Moment{Wall: e.At, Steady: r.newest})
	case *CodeFailed:
		r.touch(e.Email, r.newest).Wrong.add(engine.DateOf(e.At))
		r.wrong.add(r.newest)
		r.tryFailed(e.Email)
	case *SessionOpened:
		r.sessionOpened(e, Moment{Wall: e.At, Steady: r.newest})
	case *SessionClosed:
		r.end(e.Token)
	default:
		panic(fmt.Sprintf("engine: no rule applies an event of type %T", event))
	}
}

// touch is the row of an address that something in the log is about, to be changed at once.
func (r *Registry) touch(email EmailID, now time.Duration) *AddressState {
	row := r.addresses.edit(email)
	row.Touched = now
	return row
}

func (r *Registry) codeIssued(e *CodeIssued, now Moment) {
	r.sweep(now)
	r.codes.add(now.Steady)
	row := r.touch(e.Email, now.Steady)
	row.Again = now.Steady + CodeResendAfter
	if !e.Mailed {
		return
	}
	row.Mails.add(engine.DateOf(e.At))
	if e.Sealed != (CodeSeal{}) {
		code := newCode(e, e.Sealed, now.Steady)
		code.shared = true
		r.visitor(e.Email).code = code
	} else if v := r.visitors[e.Email.digest]; v != nil {
		v.code = nil
	}
}

func (r *Registry) sessionOpened(e *SessionOpened, now Moment) {
	r.touch(e.Email, now.Steady).Account = e.Account
	r.lastID = max(r.lastID, e.Account)
	r.endSessions(now)
	v := r.visitor(e.Email)
	v.account = 0
	if v.code != nil && v.code.shared {
		v.code = nil
	}
	if len(v.sessions) == sessionsPerEmailMax {
		r.end(v.sessions[0])
	}
	r.open(SessionState{e.Token, e.Account, e.Email, e.Expires, now.Steady + SessionLifetime})
}

func (r *Registry) open(s SessionState) {
	r.end(s.Token) // of another visitor: nobody draws a token twice, but a log may say so
	r.sessions[s.Token] = s
	r.opened = append(r.opened, s.Token)
	v := r.visitor(s.Email)
	v.sessions = append(v.sessions, s.Token)
}

// end forgets a session.
func (r *Registry) end(token Digest) *visitor {
	s, open := r.sessions[token]
	if !open {
		return nil
	}
	delete(r.sessions, token)
	v := r.visitor(s.Email)
	v.sessions = slices.DeleteFunc(v.sessions, func(other Digest) bool { return other == token })
	return v
}

// endSessions forgets sessions that have ended or were closed. Steady time gives all the same span, so the first opened ends first.
func (r *Registry) endSessions(now Moment) {
	gone := 0
	for _, token := range r.opened {
		s, open := r.sessions[token]
		if open && !over(s.Until, s.Expires, now, r.shared) {
			break
		}
		if v := r.end(token); v != nil && v.quiet(now.Steady) {
			delete(r.visitors, s.Email.digest)
		}
		gone++
	}
	r.opened = r.opened[gone:]
}

// sweep forgets, once a day, addresses that never became an account. What the log says of them goes on the log's word alone, so that
// a replay forgets the same; what is in flight stays.
func (r *Registry) sweep(now Moment) {
	if now.Steady-r.swept < sweepEvery {
		return
	}
	r.swept = now.Steady
	r.addresses.forget(func(row *AddressState) bool { return row.Account == 0 && now.Steady-row.Touched >= forgetAfter })
	for digest, v := range r.visitors {
		if _, kept := r.addresses.index[digest]; !kept && v.trying == 0 && v.asked <= now.Steady {
			v.account = 0 // nobody waits for it any more
		}
		if c := v.code; c != nil && c.shared && over(c.Until, c.Expires, now, true) {
			v.code = nil
		}
		if v.quiet(now.Steady) {
			delete(r.visitors, digest)
		}
	}
}
