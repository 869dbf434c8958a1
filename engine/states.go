package engine

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
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

// LeaseState is when requests were leased, in steady time.
type LeaseState struct {
	Steady time.Duration
	Count  int
}

// State is the account for a snapshot.
func (a *Account) State() AccountState {
	state := AccountState{Record: a.Record(), Floor: a.days.floor}
	for _, c := range a.days.counts {
		state.Days = append(state.Days, DayState{c.day, c.leased})
	}
	for _, mark := range a.leases {
		state.Leases = append(state.Leases, LeaseState{mark.at, mark.count})
	}
	return state
}

// RestoreAccount is the account that a snapshot describes; Resume comes after the events behind it.
func RestoreAccount(state AccountState) *Account {
	a := &Account{record: state.Record}
	a.days.floor = state.Floor
	for _, day := range state.Days {
		a.days.counts = append(a.days.counts, dayCount{day: day.Day, leased: day.Leased, spent: day.Leased})
	}
	for _, lease := range state.Leases {
		a.leases = append(a.leases, leaseMark{lease.Steady, lease.Count})
	}
	return a
}

// RegistryState is the registry as a snapshot keeps it: everything but the codes, which a restart voids. Slices are sorted.
type RegistryState struct {
	Addresses []AddressState
	Sessions  []SessionState
	Wrong     RollingState
	Mails     RollingState
	Swept     Date
	LastID    uint64
}

// AddressState is an address with its account and its counters.
type AddressState struct {
	Email                        Email
	Account                      uint64 // 0 = none
	Issued                       time.Time
	MailsDay, WrongDay           Date
	MailsOfTheDay, WrongOfTheDay int
}

// SessionState is an open session.
type SessionState struct {
	Token   Digest
	Account uint64
	Email   Email
	Expires time.Time
}

// RollingState counts the minutes of an hour: Counts[i] belongs to the minute that is i modulo 61.
type RollingState struct {
	Counts [61]int
	Newest int64
}

// State is the registry for a snapshot.
func (r *Registry) State() RegistryState {
	state := RegistryState{
		Wrong: RollingState{r.wrong.minutes, r.wrong.newest}, Mails: RollingState{r.mails.minutes, r.mails.newest},
		Swept: r.swept, LastID: r.lastID,
	}
	for email, a := range r.addresses {
		if a.issued.IsZero() && !a.known && a.wrong.count == 0 {
			continue // asked for, and not in the log
		}
		kept := AddressState{
			Email: email, Issued: a.issued, MailsDay: a.mails.day, MailsOfTheDay: a.mails.count,
			WrongDay: a.wrong.day, WrongOfTheDay: a.wrong.count,
		}
		if a.known {
			kept.Account = a.account
		}
		state.Addresses = append(state.Addresses, kept)
	}
	slices.SortFunc(state.Addresses, func(a, b AddressState) int { return strings.Compare(a.Email.lower, b.Email.lower) })
	for token, s := range r.sessions {
		state.Sessions = append(state.Sessions, SessionState{token, s.account, s.email, s.expires})
	}
	slices.SortFunc(state.Sessions, func(a, b SessionState) int { return cmp.Or(bytes.Compare(a.Token[:], b.Token[:])) })
	return state
}

// RestoreRegistry is the registry that a snapshot describes.
func RestoreRegistry(state RegistryState, key [32]byte) *Registry {
	r := NewRegistry(key)
	r.swept, r.lastID = state.Swept, state.LastID
	r.wrong = rolling{state.Wrong.Counts, state.Wrong.Newest}
	r.mails = rolling{state.Mails.Counts, state.Mails.Newest}
	for _, a := range state.Addresses {
		r.addresses[a.Email] = &address{
			account: a.Account, known: a.Account != 0, issued: a.Issued,
			mails: tally{a.MailsDay, a.MailsOfTheDay}, wrong: tally{a.WrongDay, a.WrongOfTheDay},
		}
	}
	for _, s := range state.Sessions {
		r.sessions[s.Token] = session{s.Account, s.Email, s.Expires}
	}
	return r
}
