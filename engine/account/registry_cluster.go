package account

import (
	"bytes"
	"slices"
	"time"
)

// CodeState is a login code that all nodes of a cluster can check.
type CodeState struct {
	Email   EmailID
	Seal    CodeSeal
	Expires time.Time
	Until   time.Duration // steady
	Tries   int           // wrong ones
}

// ShareCodes says that all nodes of a cluster have the registry's key. From then on the hashes of codes are in the log:
// a code can be used on any node, once, and its five tries are counted over all nodes. It must be called before the
// first decision.
func (r *Registry) ShareCodes() { r.shared = true }

// Seal adds the hash of the code to an event of RequestCode, before the event is written. Without ShareCodes it does
// nothing. Its time does not reveal whether a mail is sent.
func (r *Registry) Seal(e *CodeIssued, code Secret) {
	if !r.shared {
		return
	}
	if seal := sealCode(r.key, e.Email, code.Reveal()); e.Mailed {
		e.Sealed = seal
	}
}

// ApplyRemote changes the registry by a durable event of another process. now is when it arrived, which replaces the
// steady time of the event. Decisions that are being written here were made without it: their owner takes them back
// (Rollback) and decides again.
func (r *Registry) ApplyRemote(event RegistryEvent, now ClockReading) { r.applyAt(event, now.Steady) }

// Resume starts a new process of a cluster, after the last event of the log. The steady times of other nodes do not
// give the age of codes and sessions, so each counts as new by steady time, and ends by the wall clock.
func (r *Registry) Resume(now ClockReading) {
	r.newest = max(r.newest, now.Steady)
	for token, s := range r.sessions {
		s.Until = r.newest + SessionLifetime
		r.sessions[token] = s
	}
	for _, a := range r.attempts {
		if a.code != nil {
			a.code.Until = r.newest + CodeLifetime
		}
	}
}

// expired reports that a code or session has ended. In the replay of a shared log steady time is not enough.
func expired(until time.Duration, expires time.Time, now ClockReading, shared bool) bool {
	return now.Steady >= until && !(shared && now.Wall.Before(expires))
}

// Rollback takes a decision back because an event of another node came before it in the log. It is decided again with
// RetryRequestCode, RetryTryCode or CloseSession; Abort is for a decision that is given up. A login can be rolled back
// only with ShareCodes.
func (r *Registry) Rollback(event RegistryEvent) {
	r.Abort(event)
	switch e := event.(type) {
	case *CodeIssued:
		if a := r.attempts[e.Email.digest]; a != nil {
			a.nextCodeAt = 0
		}
	case *SessionOpened:
		if a := r.attempts[e.Email.digest]; a != nil {
			a.account = 0 // another node may have given it away
			if a.code != nil {
				a.code.reserved = false
			}
		}
	}
}

// countSharedTry counts a wrong try of a shared code; the last one voids it.
func (r *Registry) countSharedTry(email EmailID) {
	a := r.attempts[email.digest]
	if a == nil || a.code == nil || !a.code.shared {
		return
	}
	if a.code.Tries++; a.code.Tries >= CodeTriesMax {
		a.code = nil
	}
}

// sharedCodes returns the shared codes that are valid, by address.
func (r *Registry) sharedCodes() []CodeState {
	var codes []CodeState
	for _, a := range r.attempts {
		if c := a.code; c != nil && c.shared && r.newest < c.Until {
			codes = append(codes, c.CodeState)
		}
	}
	slices.SortFunc(codes, func(a, b CodeState) int { return bytes.Compare(a.Email.digest[:], b.Email.digest[:]) })
	return codes
}
