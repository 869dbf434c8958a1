package engine

import (
	"bytes"
	"slices"
	"time"
)

// AccountState is an account as a snapshot keeps it. What is leased counts as spent for whoever reads it.
type AccountState struct {
	Record AccountRecord
	Days   []DayState // by day
	Floor  Date       // days up to here are closed
	Leases []LeaseState
}

// DayState is the day's count of an account.
type DayState struct {
	Day    Date
	Leased int
}

// LeaseState is what was leased since a moment in steady time, and what was unspent then.
type LeaseState struct {
	Steady  time.Duration
	Unspent int
	Count   int
}

// State is the account for a snapshot: what its events have made of it, and nothing of this process.
func (a *Account) State() AccountState {
	state := AccountState{Record: a.durable(), Floor: a.days.floor}
	for _, c := range a.days.counts {
		state.Days = append(state.Days, DayState{c.day, c.leased})
	}
	for _, mark := range a.leases {
		state.Leases = append(state.Leases, LeaseState{mark.at, mark.unspent, mark.count})
	}
	return state
}

// RestoreAccount is the account that a snapshot describes; Resume comes after the events behind it.
func RestoreAccount(state AccountState) *Account {
	a := &Account{record: state.Record, days: days{floor: state.Floor}}
	a.record.Keys = nil
	for _, key := range state.Record.Keys {
		a.keys = append(a.keys, accountKey{record: key})
	}
	for _, day := range state.Days {
		a.days.counts = append(a.days.counts, dayCount{day: day.Day, leased: day.Leased})
	}
	for _, lease := range state.Leases {
		a.leases = append(a.leases, leaseMark{lease.Steady, lease.Unspent, lease.Count})
	}
	return a
}

// RegistryState is the registry as a snapshot keeps it: everything but the codes and the brakes on clients, which a restart voids.
// Addresses are sorted; sessions are in the order of their opening.
type RegistryState struct {
	Addresses []AddressState
	Sessions  []SessionState
	Wrong     RollingState
	Codes     RollingState
	Swept     time.Duration // steady
	LastID    uint64
}

// AddressState is an address with its account and its counters.
type AddressState struct {
	Email                        EmailID
	Account                      uint64        // 0 = none
	Again                        time.Duration // from when another code may be asked for, steady
	Touched                      time.Duration // the newest fact, steady
	MailsDay, WrongDay           Date
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

// State is the registry for a snapshot.
func (r *Registry) State() RegistryState {
	state := RegistryState{
		Wrong: RollingState{r.wrong.minutes, r.wrong.newest}, Codes: RollingState{r.codes.minutes, r.codes.newest},
		Swept: r.swept, LastID: r.lastID,
	}
	for email, a := range r.addresses {
		if a.kept {
			state.Addresses = append(state.Addresses, a.state(email))
		}
	}
	slices.SortFunc(state.Addresses, func(a, b AddressState) int { return bytes.Compare(a.Email.digest[:], b.Email.digest[:]) })
	for _, token := range r.opened {
		if s, open := r.sessions[token]; open {
			state.Sessions = append(state.Sessions, SessionState{token, s.account, s.email, s.expires, s.until})
		}
	}
	return state
}

func (a *address) state(email EmailID) AddressState {
	kept := AddressState{
		Email: email, Again: a.again, Touched: a.touched, MailsDay: a.mails.day, MailsOfTheDay: a.mails.count,
		WrongDay: a.wrong.day, WrongOfTheDay: a.wrong.count,
	}
	if a.known {
		kept.Account = a.account
	}
	return kept
}

// RestoreRegistry is the registry that a snapshot describes.
func RestoreRegistry(state RegistryState, key [32]byte) *Registry {
	r := NewRegistry(key)
	r.swept, r.lastID = state.Swept, state.LastID
	r.wrong = rolling{state.Wrong.Counts, state.Wrong.Newest}
	r.codes = rolling{state.Codes.Counts, state.Codes.Newest}
	for _, a := range state.Addresses {
		r.addresses[a.Email] = &address{
			account: a.Account, known: a.Account != 0, kept: true, again: a.Again, touched: a.Touched,
			mails: tally{a.MailsDay, a.MailsOfTheDay}, wrong: tally{a.WrongDay, a.WrongOfTheDay},
		}
	}
	for _, s := range state.Sessions {
		r.open(s.Token, session{s.Account, s.Email, s.Expires, s.Until}, r.at(s.Email))
	}
	return r
}
