package account

import (
	"bytes"
	"iter"
	"maps"
	"slices"
	"time"
)

// RegistryState is the logged part of the registry in the form of a snapshot. Addresses and codes are sorted by digest,
// sessions by the time of login.
type RegistryState struct {
	Addresses   []AddressState
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

// RegistrySnapshot is an immutable copy of the registry. Making it copies no address, and takes milliseconds for
// 100,000 of them.
type RegistrySnapshot struct {
	withoutAddresses RegistryState
	addresses        map[Digest]*AddressState
}

// Snapshot returns the current state of the registry.
func (r *Registry) Snapshot() RegistrySnapshot {
	state := RegistryState{
		WrongTries: r.wrongTries, Codes: r.codes, Newcomers: r.newcomers, LastSweep: r.lastSweep, LastID: r.lastID, SharedCodes: r.sharedCodes(),
	}
	for _, token := range r.sessionOrder {
		if s, open := r.sessions[token]; open {
			state.Sessions = append(state.Sessions, s)
		}
	}
	return RegistrySnapshot{state, maps.Clone(r.addresses)}
}

// Addresses returns all addresses, in no particular order.
func (s RegistrySnapshot) Addresses() iter.Seq[AddressState] {
	return func(yield func(AddressState) bool) {
		for _, row := range s.addresses {
			if !yield(*row) {
				return
			}
		}
	}
}

// WithoutAddresses returns the state without its addresses.
func (s RegistrySnapshot) WithoutAddresses() RegistryState { return s.withoutAddresses }

// State returns the complete state. Its cost is proportional to the number of addresses.
func (s RegistrySnapshot) State() RegistryState {
	state := s.withoutAddresses
	state.Addresses = slices.SortedFunc(s.Addresses(), func(a, b AddressState) int {
		return bytes.Compare(a.Email.digest[:], b.Email.digest[:])
	})
	return state
}

// RestoreRegistry returns the registry of a snapshot. The addresses may be in any order; the caller must not change
// them afterwards.
func RestoreRegistry(state RegistryState, key [32]byte) *Registry {
	r := NewRegistry(key)
	r.addresses = make(map[Digest]*AddressState, len(state.Addresses))
	r.lastSweep, r.newest, r.lastID = state.LastSweep, state.LastSweep, state.LastID
	r.wrongTries, r.codes, r.newcomers = state.WrongTries, state.Codes, state.Newcomers
	for i := range state.Addresses {
		row := &state.Addresses[i]
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
