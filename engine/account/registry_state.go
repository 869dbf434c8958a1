package account

import (
	"bytes"
	"iter"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
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
	Email                        EmailID
	Account                      uint64        // 0 = none
	Again                        time.Duration // from when another code may be asked for, steady
	Touched                      time.Duration // the newest fact, steady
	MailsDay, WrongDay           engine.Date
	MailsOfTheDay, WrongOfTheDay int
}

// SessionState is an open session.
type SessionState struct {
	Token   Digest
	Account uint64
	Email   EmailID
	Expires time.Time
	Until   time.Duration // steady
}

// RollingState counts the minutes of an hour of steady time: Counts[i] belongs to the minute that is i modulo 61.
type RollingState struct {
	Counts [rollingMinutes]uint16
	Newest int64
}

// RegistryCut is the registry at one moment. It is immutable; making it takes the registry's owner microseconds, however many
// addresses there are.
type RegistryCut struct {
	rest      RegistryState // without addresses
	addresses addressCut
}

// Cut is the registry as it is now, for whoever has the time to read all of it. In a cluster it sorts the codes of the last minutes.
func (r *Registry) Cut() RegistryCut {
	rest := RegistryState{
		Wrong: RollingState{r.wrong.minutes, r.wrong.newest}, Codes: RollingState{r.codes.minutes, r.codes.newest},
		Swept: r.swept, LastID: r.lastID, Shared: r.sharedCodes(),
	}
	for _, token := range r.opened {
		if s, open := r.sessions[token]; open {
			rest.Sessions = append(rest.Sessions, SessionState{token, s.account, s.email, s.expires, s.until})
		}
	}
	return RegistryCut{rest, r.addresses.cut()}
}

// Addresses visits all addresses, unsorted.
func (c *RegistryCut) Addresses() iter.Seq[AddressState] { return c.addresses.all() }

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
	r.addresses = newAddressBook(size)
	r.swept, r.newest, r.lastID = state.Swept, state.Swept, state.LastID
	r.wrong = rolling{state.Wrong.Counts, state.Wrong.Newest}
	r.codes = rolling{state.Codes.Counts, state.Codes.Newest}
	for _, part := range addresses {
		for i := range part {
			a := &part[i]
			row := r.addresses.edit(a.Email)
			row.account, row.again, row.touched = a.Account, a.Again, a.Touched
			r.newest = max(r.newest, a.Touched)
			row.mails, row.wrong = tally{a.MailsDay, a.MailsOfTheDay}, tally{a.WrongDay, a.WrongOfTheDay}
		}
	}
	for _, s := range state.Sessions {
		r.open(s.Token, session{s.Account, s.Email, s.Expires, s.Until})
	}
	r.restoreCodes(state.Shared)
	return r
}
