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

// ApplyRemote changes the registry by another process's durable event. now is the time of its arrival; now.Monotonic
// replaces the event's monotonic time. Decisions of this process that are not in the log yet were made without the
// event. The caller must revert them (Abort).
func (r *Registry) ApplyRemote(event RegistryEvent, now ClockReading) {
	r.applyAt(event, now.Monotonic)
}

// Resume completes a replay in a cluster, after the newest event of the log. Other nodes' monotonic times do not show
// the age of a code or session. Therefore its lifetime in monotonic time starts again, but the wall clock ends it in
// time.
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

// expired reports whether a code or session has reached both ends, by the monotonic clock and by the wall clock.
// Monotonic times in the log come from different nodes, so one of the two does not show that it was long ago.
func expired(until time.Duration, expires time.Time, now ClockReading) bool {
	return now.Monotonic >= until && !now.Wall.Before(expires)
}

// sharedCodes returns the valid codes that are in the log, by address.
func (r *Registry) sharedCodes() []CodeState {
	var codes []CodeState
	for _, a := range r.attempts {
		for _, c := range a.codes {
			if r.shared && r.newest < c.Until {
				codes = append(codes, c.CodeState)
			}
		}
	}
	slices.SortFunc(codes, func(a, b CodeState) int {
		return cmp.Or(bytes.Compare(a.Email.digest[:], b.Email.digest[:]), bytes.Compare(a.Browser[:], b.Browser[:]))
	})
	return codes
}
