package account

import (
	"bytes"
	"slices"
	"time"
)

// CodeState is a code that all nodes of a cluster can check.
type CodeState struct {
	Email   EmailID
	Seal    CodeSeal
	Expires time.Time
	Until   time.Duration // steady
	Tries   int           // wrong ones
}

// ShareCodes says that the key that seals codes is the same on all nodes of a cluster. From then on codes go into the log, sealed: a code that
// one node has sent opens a session on any, once, and its five tries are five on all of them together. Set it before the first decision.
func (r *Registry) ShareCodes() { r.shared = true }

// Seal puts the code into an event that RequestCode gave, before it goes into the log, so that each node can check it. Without a shared key
// it does nothing; nothing is seen of whether a letter goes out.
func (r *Registry) Seal(e *CodeIssued, code Secret) {
	if !r.shared {
		return
	}
	if seal := sealCode(r.key, e.Email, code.Reveal()); e.Mailed {
		e.Sealed = seal
	}
}

// ApplyRemote makes a durable event true that another process decided; now is when it arrived here, because its own steady time means nothing here.
// Decisions that are on their way into the log from here were made without it: have them decided again (Rollback), then answer.
func (r *Registry) ApplyRemote(event RegistryEvent, now ClockReading) { r.applyAt(event, now.Steady) }

// Resume begins to count in a new process of a cluster, after the last event of the log. The steady times in the log are of several nodes:
// how old a code or a session is nobody can tell by them, so each counts as begun now, and ends when the wall clock says so.
func (r *Registry) Resume(now ClockReading) {
	r.newest = max(r.newest, now.Steady)
	for token, s := range r.sessions {
		s.Until = r.newest + SessionLifetime
		r.sessions[token] = s
	}
	for _, v := range r.attempts {
		if v.code != nil {
			v.code.Until = r.newest + CodeLifetime
		}
	}
}

// untilWall reports that a code or a session is to be forgotten. While the log of a cluster is replayed steady time alone does not tell.
func expired(until time.Duration, expires time.Time, now ClockReading, shared bool) bool {
	return now.Steady >= until && !(shared && now.Wall.Before(expires))
}

// Rollback takes a decision back that the log will not hold because it was made before an event of another node, as if it had not been made; it
// is made again with RetryRequestCode, RetryTryCode or CloseSession. Abort is for a decision that is given up. Only a registry that shares
// its key can take back a session that was to be opened.
func (r *Registry) Rollback(event RegistryEvent) {
	r.Abort(event)
	switch e := event.(type) {
	case *CodeIssued:
		if v := r.attempts[e.Email.digest]; v != nil {
			v.nextCodeAt = 0
		}
	case *SessionOpened:
		if v := r.attempts[e.Email.digest]; v != nil {
			v.account = 0 // another node may have given it away
			if v.code != nil {
				v.code.reserved = false
			}
		}
	}
}

// countSharedTry counts a wrong try of a code that all nodes know; the last one voids it.
func (r *Registry) countSharedTry(email EmailID) {
	v := r.attempts[email.digest]
	if v == nil || v.code == nil || !v.code.shared {
		return
	}
	if v.code.Tries++; v.code.Tries >= CodeTriesMax {
		v.code = nil
	}
}

// sharedCodes are the codes that a snapshot keeps, by address.
func (r *Registry) sharedCodes() []CodeState {
	var codes []CodeState
	for _, v := range r.attempts {
		if c := v.code; c != nil && c.shared && r.newest < c.Until {
			codes = append(codes, c.CodeState)
		}
	}
	slices.SortFunc(codes, func(a, b CodeState) int { return bytes.Compare(a.Email.digest[:], b.Email.digest[:]) })
	return codes
}
