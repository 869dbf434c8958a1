package engine

import (
	"fmt"
	"slices"
	"time"
)

// Apply makes a durable event true, live and at recovery.
func (r *Registry) Apply(event RegistryEvent) {
	switch e := event.(type) {
	case *CodeIssued:
		r.codeIssued(e)
	case *CodeFailed:
		r.touch(e.Email, e.Steady).wrong.add(DateOf(e.At))
		r.wrong.add(e.Steady)
		r.tried(e.Email)
	case *SessionOpened:
		r.sessionOpened(e)
	case *SessionClosed:
		r.end(e.Token)
	default:
		panic(fmt.Sprintf("engine: no rule applies an event of type %T", event))
	}
}

// touch is the row of an address that something in the log is about, to be changed at once.
func (r *Registry) touch(email EmailID, now time.Duration) *addressRow {
	row := r.addresses.edit(email)
	row.touched = now
	return row
}

func (r *Registry) codeIssued(e *CodeIssued) {
	r.sweep(e.Steady)
	r.asking = max(0, r.asking-1)
	r.codes.add(e.Steady)
	row := r.touch(e.Email, e.Steady)
	row.again = e.Steady + CodeResendAfter
	if !e.Mailed {
		return
	}
	row.mails.add(DateOf(e.At))
	if v := r.visitors[e.Email.digest]; v != nil {
		v.code = nil
	}
}

func (r *Registry) sessionOpened(e *SessionOpened) {
	r.touch(e.Email, e.Steady).account = e.Account
	r.lastID = max(r.lastID, e.Account)
	r.endSessions(e.Steady)
	v := r.visitor(e.Email)
	v.account = 0
	if len(v.sessions) == sessionsPerEmailMax {
		r.end(v.sessions[0])
	}
	r.open(e.Token, session{e.Account, e.Email, e.Expires, e.Steady + SessionLifetime})
}

func (r *Registry) open(token Digest, s session) {
	r.end(token) // of another visitor: nobody draws a token twice, but a log may say so
	r.sessions[token] = s
	r.opened = append(r.opened, token)
	v := r.visitor(s.email)
	v.sessions = append(v.sessions, token)
}

// end forgets a session.
func (r *Registry) end(token Digest) *visitor {
	s, open := r.sessions[token]
	if !open {
		return nil
	}
	delete(r.sessions, token)
	v := r.visitor(s.email)
	v.sessions = slices.DeleteFunc(v.sessions, func(other Digest) bool { return other == token })
	return v
}

// endSessions forgets sessions that have ended or were closed. Steady time gives all the same span, so the first opened ends first.
func (r *Registry) endSessions(now time.Duration) {
	gone := 0
	for _, token := range r.opened {
		s, open := r.sessions[token]
		if open && now < s.until {
			break
		}
		if v := r.end(token); v != nil && v.quiet(now) {
			delete(r.visitors, s.email.digest)
		}
		gone++
	}
	r.opened = r.opened[gone:]
}

// sweep forgets, once a day, addresses that never became an account. What the log says of them goes on the log's word alone, so that
// a replay forgets the same; what is in flight stays.
func (r *Registry) sweep(now time.Duration) {
	if now-r.swept < sweepEvery {
		return
	}
	r.swept = now
	r.addresses.forget(func(row *addressRow) bool { return row.account == 0 && now-row.touched >= forgetAfter })
	for digest, v := range r.visitors {
		if _, kept := r.addresses.index[digest]; !kept && v.trying == 0 && v.asked <= now {
			v.account = 0 // nobody waits for it any more
		}
		if v.quiet(now) {
			delete(r.visitors, digest)
		}
	}
}
