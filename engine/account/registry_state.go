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
	Addresses []AddressState
	Sessions  []SessionState
	Wrong     RollingState
	Codes     RollingState
	Swept     time.Duration // steady
	LastID    uint64
	Shared    []CodeState // in a cluster
}

// AddressState is an address with its account and its counters.
type AddressState struct {
	Email   EmailID
	Account uint64        // 0 before the first login
	Again   time.Duration // from when another code may be asked for, steady
	Touched time.Duration // the newest fact, steady
	Mails   Tally         // that went to it
	Wrong   Tally         // tries
}

// SessionState is an open session.
type SessionState struct {
	Token   Digest
	Account uint64
	Email   EmailID
	Expires time.Time
	Until   time.Duration // steady
}

// RegistryCut is the registry at one moment. It is immutable; making it takes the registry's owner microseconds, however many
// addresses there are.
type RegistryCut struct {
	rest      RegistryState // without addresses
	addresses []*addressLeaf
}

// Cut is the registry as it is now, for whoever has the time to read all of it. In a cluster it sorts the codes of the last minutes.
func (r *Registry) Cut() RegistryCut {
	rest := RegistryState{
		Wrong: r.wrong, Codes: r.codes, Swept: r.swept, LastID: r.lastID, Shared: r.sharedCodes(),
	}
	for _, token := range r.opened {
		if s, open := r.sessions[token]; open {
			rest.Sessions = append(rest.Sessions, s)
		}
	}
	return RegistryCut{rest, r.addresses.cut()}
}

// Addresses visits all addresses, unsorted.
func (c *RegistryCut) Addresses() iter.Seq[AddressState] {
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

// Rest is everything but the addresses.
func (c *RegistryCut) Rest() RegistryState { return c.rest }

// State is the registry for a snapshot.
func (c *RegistryCut) State() RegistryState {
	state := c.rest
	state.Addresses = slices.SortedFunc(c.Addresses(), func(a, b AddressState) int {
		return bytes.Compare(a.Email.digest[:], b.Email.digest[:])
	})
	return state
}

// State is Cut and State; it takes as long as there are addresses.
func (r *Registry) State() RegistryState {
	cut := r.Cut()
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
	r.swept, r.newest, r.lastID = state.Swept, state.Swept, state.LastID
	r.wrong, r.codes = state.Wrong, state.Codes
	for _, part := range addresses {
		for _, row := range part {
			*r.addresses.edit(row.Email) = row
			r.newest = max(r.newest, row.Touched)
		}
	}
	for _, s := range state.Sessions {
		r.open(s)
	}
	for _, c := range state.Shared {
		r.visitor(c.Email).code = &pendingCode{CodeState: c, shared: true}
	}
	return r
}
