package account

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"time"
)

// RegistryState is the logged part of the registry in the form of a snapshot. Addresses are in no particular order; the
// registry has the same rows and never changes them. Sessions are sorted by the time of login, codes by digest.
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
	state := RegistryState{
		Addresses: slices.Collect(maps.Values(r.addresses)), WrongTries: r.wrongTries, Codes: r.codes, Newcomers: r.newcomers,
		LastSweep: r.lastSweep, LastID: r.lastID, SharedCodes: r.sharedCodes(),
	}
	for _, token := range r.sessionOrder {
		if s, open := r.sessions[token]; open {
			state.Sessions = append(state.Sessions, s)
		}
	}
	return state
}

// RestoreRegistry returns the registry of a snapshot. The caller must not change the addresses afterwards.
func RestoreRegistry(state RegistryState, key [32]byte) *Registry {
	r := NewRegistry(key)
	r.addresses = make(map[Digest]*AddressState, len(state.Addresses))
	r.lastSweep, r.newest, r.lastID = state.LastSweep, state.LastSweep, state.LastID
	r.wrongTries, r.codes, r.newcomers = state.WrongTries, state.Codes, state.Newcomers
	for _, row := range state.Addresses {
		r.addresses[row.Email.digest] = row
		r.newest = max(r.newest, row.LastEventAt)
	}
	for _, s := range state.Sessions {
		r.addSession(s)
	}
	for _, c := range state.SharedCodes {
		r.attempt(c.Email).setCode(c)
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

// ApplyRemote changes the registry by another process's durable event. now is the time of its arrival; now.Monotonic
// replaces the event's monotonic time. A decision of this process that is not in the log yet was made without the
// event, and must not get there.
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
		for i := range a.codes {
			a.codes[i].Until = r.newest + CodeLifetime
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
				codes = append(codes, c)
			}
		}
	}
	slices.SortFunc(codes, func(a, b CodeState) int {
		return cmp.Or(bytes.Compare(a.Email.digest[:], b.Email.digest[:]), bytes.Compare(a.Browser[:], b.Browser[:]))
	})
	return codes
}
