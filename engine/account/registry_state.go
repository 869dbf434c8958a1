package account

import (
	"bytes"
	"iter"
	"slices"
	"time"
)

// RegistryState is the registry as a snapshot keeps it: everything but the brakes on clients and the codes that one process alone knows,
// which a restart voids. Addresses and codes are sorted; sessions are in the order of their opening. Steady times are of the process that
// wrote the state.
type RegistryState struct {
	Addresses   []AddressState
	Sessions    []SessionState
	WrongTries  HourCounter
	CodesIssued HourCounter
	LastSweep   time.Duration // steady
	LastID      uint64
	SharedCodes []CodeState // in a cluster
}

// AddressState is an address with its account and its counters.
type AddressState struct {
	Email       EmailID
	Account     uint64        // 0 before the first login
	NextCodeAt  time.Duration // from when another code may be asked for, steady
	LastEventAt time.Duration // the newest fact, steady
	Mails       DayCounter    // that went to it
	WrongTries  DayCounter    // tries
}

// SessionState is an open session.
type SessionState struct {
	Token   Digest
	Account uint64
	Email   EmailID
	Expires time.Time
	Until   time.Duration // steady
}

// RegistrySnapshot is the registry at one moment. It is immutable; making it takes the registry's owner microseconds, however many
// addresses there are.
type RegistrySnapshot struct {
	withoutAddresses RegistryState // without addresses
	addresses        []*addressChunk
}

// Snapshot is the registry as it is now, for whoever has the time to read all of it. In a cluster it sorts the codes of the last minutes.
func (r *Registry) Snapshot() RegistrySnapshot {
	rest := RegistryState{
		WrongTries: r.wrongTries, CodesIssued: r.codesIssued, LastSweep: r.lastSweep, LastID: r.lastID, SharedCodes: r.sharedCodes(),
	}
	for _, token := range r.sessionOrder {
		if s, open := r.sessions[token]; open {
			rest.Sessions = append(rest.Sessions, s)
		}
	}
	return RegistrySnapshot{rest, r.addresses.snapshot()}
}

// Addresses visits all addresses, unsorted.
func (c *RegistrySnapshot) Addresses() iter.Seq[AddressState] {
	return func(yield func(AddressState) bool) {
		for _, leaf := range c.addresses {
			for i := range leaf {
				if !leaf[i].Email.IsZero() && !yield(leaf[i]) {
					return
				}
			}
		}
	}
}

// WithoutAddresses is everything but the addresses.
func (c *RegistrySnapshot) WithoutAddresses() RegistryState { return c.withoutAddresses }

// State is the registry for a snapshot.
func (c *RegistrySnapshot) State() RegistryState {
	state := c.withoutAddresses
	state.Addresses = slices.SortedFunc(c.Addresses(), func(a, b AddressState) int {
		return bytes.Compare(a.Email.digest[:], b.Email.digest[:])
	})
	return state
}

// State is Snapshot and State; it takes as long as there are addresses.
func (r *Registry) State() RegistryState {
	cut := r.Snapshot()
	return cut.State()
}

// RestoreRegistry is the registry that a snapshot describes. Addresses may also come in parts beside it, in any order.
func RestoreRegistry(state RegistryState, key [32]byte, addresses ...[]AddressState) *Registry {
	addresses = append(addresses, state.Addresses)
	size := 0
	for _, part := range addresses {
		size += len(part)
	}
	r := NewRegistry(key)
	r.addresses.index = make(map[Digest]uint32, size)
	r.lastSweep, r.newest, r.lastID = state.LastSweep, state.LastSweep, state.LastID
	r.wrongTries, r.codesIssued = state.WrongTries, state.CodesIssued
	for _, part := range addresses {
		for _, row := range part {
			*r.addresses.edit(row.Email) = row
			r.newest = max(r.newest, row.LastEventAt)
		}
	}
	for _, s := range state.Sessions {
		r.addSession(s)
	}
	for _, c := range state.SharedCodes {
		r.attempt(c.Email).code = &pendingCode{CodeState: c, shared: true}
	}
	return r
}
