package account

import (
	"bytes"
	"cmp"
	"slices"
	"time"
)

// CodeState is a login code of a cluster. All nodes can check it.
type CodeState struct {
	Email   EmailID
	Seal    CodeSeal
	Expires time.Time
	Until   time.Duration // monotonic time (ClockReading.Monotonic) at which the code ends
	Tries   int           // wrong tries
	Browser Digest        // Requester.Browser
}

// ShareCodes makes the registry work in a cluster whose nodes all have its key. It puts the hashes of codes in the log.
// A code can then be used on any node, but only once, and its wrong tries are counted over all nodes. ShareCodes must
// be called before the first decision.
func (r *Registry) ShareCodes() { r.shared = true }

// Seal adds the hash of the code to an event of RequestCode. It must be called before the event is written. Without
// ShareCodes it does nothing.
func (r *Registry) Seal(e *CodeIssued, code Secret) {
	if r.shared {
		e.Sealed = sealCode(r.key, e.Email, code.Reveal())
	}
}

// ApplyRemote changes the registry by a durable event of another process. now is the time at which the event arrived;
// now.Monotonic replaces the monotonic time of the event. If decisions of this process are not in the log yet, they
// were made without that event. The caller must revert them (Rollback) and decide again.
func (r *Registry) ApplyRemote(event RegistryEvent, now ClockReading) {
	r.applyAt(event, now.Monotonic)
}

// Resume completes a replay in a cluster: it is called after the newest event of the log. The monotonic times of other
// nodes do not show how old a code or session is. Therefore the lifetime in monotonic time starts again, but the wall
// clock ends the code or session in time.
func (r *Registry) Resume(now ClockReading) {
	r.newest = max(r.newest, now.Monotonic)
	for token, s := range r.sessions {
		s.Until = r.newest + SessionLifetime
		r.sessions[token] = s
	}
	for _, a := range r.attempts {
		for _, c := range a.codes {
			c.Until = r.newest + CodeLifetime
		}
	}
}

// expired reports whether the monotonic time has reached the end of a code or session. In a cluster the wall clock must
// have reached the end too, because monotonic times in the log come from different nodes.
func expired(until time.Duration, expires time.Time, now ClockReading, shared bool) bool {
	return now.Monotonic >= until && !(shared && now.Wall.Before(expires))
}

// Rollback reverts a decision because the log has an event of another node before it. The caller decides again with
// RetryRequestCode, RetryTryCode or CloseSession. (Abort is for an event that is not decided again.) Without ShareCodes
// a login can't be rolled back.
func (r *Registry) Rollback(event RegistryEvent) {
	r.Abort(event)
	switch e := event.(type) {
	case *CodeIssued:
		if a := r.attempts[e.Email.digest]; a != nil {
			a.nextCodeAt = 0
		}
	case *SessionOpened:
		if a := r.attempts[e.Email.digest]; a != nil {
			a.account = 0 // another node may have assigned the same id
			if c := a.codeOf(e.Browser); c != nil {
				c.reserved = false
			}
		}
	}
}

// countSharedTry counts a wrong try of a shared code (a code in the log of the cluster). It drops the code after
// CodeTriesMax tries.
func (r *Registry) countSharedTry(email EmailID, browser Digest) {
	a := r.attempts[email.digest]
	if a == nil {
		return
	}
	if c := a.codeOf(browser); c != nil && c.shared {
		if c.Tries++; c.Tries >= CodeTriesMax {
			a.dropCode(browser)
		}
	}
}

// sharedCodes returns the shared codes that are valid, by address.
func (r *Registry) sharedCodes() []CodeState {
	var codes []CodeState
	for _, a := range r.attempts {
		for _, c := range a.codes {
			if c.shared && r.newest < c.Until {
				codes = append(codes, c.CodeState)
			}
		}
	}
	slices.SortFunc(codes, func(a, b CodeState) int {
		return cmp.Or(bytes.Compare(a.Email.digest[:], b.Email.digest[:]), bytes.Compare(a.Browser[:], b.Browser[:]))
	})
	return codes
}
