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
		entry := r.touch(e.Email, e.Steady)
		entry.wrong.add(DateOf(e.At))
		r.wrong.add(e.Steady)
		r.tried(entry)
	case *SessionOpened:
		r.sessionOpened(e)
	case *SessionClosed:
		delete(r.sessions, e.Token)
	default:
		panic(fmt.Sprintf("engine: no rule applies an event of type %T", event))
	}
}

// touch is the entry of an address that something in the log is about.
func (r *Registry) touch(email EmailID, now time.Duration) *address {
	entry := r.at(email)
	entry.kept, entry.touched = true, now
	return entry
}

func (r *Registry) codeIssued(e *CodeIssued) {
	r.sweep(e.Steady)
	r.asking = max(0, r.asking-1)
	r.codes.add(e.Steady)
	entry := r.touch(e.Email, e.Steady)
	entry.again = e.Steady + CodeResendAfter
	if e.Mailed {
		entry.code = nil
		entry.mails.add(DateOf(e.At))
	}
}

func (r *Registry) sessionOpened(e *SessionOpened) {
	entry := r.touch(e.Email, e.Steady)
	entry.account, entry.known = e.Account, true
	r.lastID = max(r.lastID, e.Account)
	r.endSessions(e.Steady)
	entry.sessions = slices.DeleteFunc(entry.sessions, func(token Digest) bool {
		_, open := r.sessions[token]
		return !open
	})
	if len(entry.sessions) == sessionsPerEmailMax {
		delete(r.sessions, entry.sessions[0])
		entry.sessions = slices.Delete(entry.sessions, 0, 1)
	}
	r.open(e.Token, session{e.Account, e.Email, e.Expires, e.Steady + SessionLifetime}, entry)
}

func (r *Registry) open(token Digest, s session, entry *address) {
	r.sessions[token] = s
	r.opened = append(r.opened, token)
	entry.sessions = append(entry.sessions, token)
}

// endSessions forgets sessions that have ended or were closed. Steady time gives all the same span, so the first opened ends first.
func (r *Registry) endSessions(now time.Duration) {
	gone := 0
	for _, token := range r.opened {
		if s, open := r.sessions[token]; open && now < s.until {
			break
		}
		delete(r.sessions, token)
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
	for email, entry := range r.addresses {
		switch {
		case entry.known || entry.kept && now-entry.touched < forgetAfter:
		case entry.trying > 0 || entry.asked > now:
			*entry = address{account: entry.account, asked: entry.asked, trying: entry.trying, code: entry.code}
		default:
			delete(r.addresses, email)
		}
	}
}
