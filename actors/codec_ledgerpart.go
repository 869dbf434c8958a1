package actors

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/tasard/tasard/engine"
)

// ledger is what a snapshot holds besides books.
type ledger struct {
	accounts   [][]sleeper             // by part
	claims     [][]keyClaim            // of their keys, in parts
	registry   engine.RegistryState    // without addresses
	addresses  [][]engine.AddressState // by part
	transition engine.Transition
	steady     time.Duration
}

// sleeper is an account as the snapshot holds it.
type sleeper struct {
	id    uint64
	state dormant
}

// ofLedger reports that a part is of no book.
func (p *SnapshotPart) ofLedger() bool {
	return len(p.Accounts)+len(p.Addresses)+len(p.Sessions)+len(p.Codes) > 0 || p.Registry != nil
}

func (d *decoder) ledgerPart(p *SnapshotPart) {
	if len(p.Accounts) > 0 {
		d.ledgerAccounts(p.Accounts)
	}
	if len(p.Addresses) > 0 {
		addresses := make([]engine.AddressState, len(p.Addresses))
		for i, r := range p.Addresses {
			addresses[i] = d.address(r)
		}
		d.ledger.addresses = append(d.ledger.addresses, addresses)
	}
	for _, r := range p.Sessions {
		d.ledger.registry.Sessions = append(d.ledger.registry.Sessions, engine.SessionState{
			Token: d.digest(r.Token), Account: r.Account, Email: d.email(r.Email),
			Expires: d.instant(r.Expires, r.ExpiresNanos), Until: d.steady(r.Until),
		})
	}
	for _, r := range p.Codes {
		d.ledger.registry.Shared = append(d.ledger.registry.Shared, d.code(r))
	}
	if r := p.Registry; r != nil {
		l := &d.ledger
		l.registry.Wrong, l.registry.Codes = d.rolling(r.Wrong), d.rolling(r.Codes)
		l.registry.Swept, l.registry.LastID = d.steady(r.Swept), r.LastId
		l.transition, l.steady = d.transition(r.Transition), d.steady(r.Steady)
	}
}

// ledgerAccounts checks the states of accounts and keeps their bytes. Those of one part share one piece of memory: a million
// pieces would cost more than what is in them. It is free when the last of them was replaced, after as many accounts were asked
// for.
func (d *decoder) ledgerAccounts(all [][]byte) {
	size := 0
	for _, data := range all {
		size += len(data) + binary.MaxVarintLen32
	}
	memory, sleepers, claims := make([]byte, 0, size), make([]sleeper, 0, len(all)), make([]keyClaim, 0, len(all))
	d.borrow = true
	defer func() { d.borrow = false }()
	for _, data := range all {
		state, err := d.accountState(data)
		if err != nil {
			d.keep(err)
			return
		}
		start := len(memory)
		memory = appendDormant(memory, data)
		sleepers = append(sleepers, sleeper{state.Record.ID, dormant(memory[start:len(memory):len(memory)])})
		for i := range state.Record.Keys {
			claims = append(claims, claimOf(state.Record.Keys[i].Digest, state.Record.ID))
		}
	}
	d.ledger.accounts, d.ledger.claims = append(d.ledger.accounts, sleepers), append(d.ledger.claims, claims)
}

func addressRecord(a *engine.AddressState) *SnapshotAddress {
	return &SnapshotAddress{
		Email: emailRecord(a.Email), Account: a.Account, Again: int64(a.Again), Touched: int64(a.Touched),
		MailsDay: int32(a.MailsDay), Mails: int64(a.MailsOfTheDay), WrongDay: int32(a.WrongDay), Wrong: int64(a.WrongOfTheDay),
	}
}

func (d *decoder) address(r *SnapshotAddress) engine.AddressState {
	return engine.AddressState{
		Email: d.email(r.Email), Account: r.Account, Again: d.steady(r.Again), Touched: d.steady(r.Touched),
		MailsDay: d.date(r.MailsDay), MailsOfTheDay: d.count(r.Mails), WrongDay: d.date(r.WrongDay), WrongOfTheDay: d.count(r.Wrong),
	}
}

func sessionRecord(s *engine.SessionState) *SnapshotSession {
	r := &SnapshotSession{Token: s.Token[:], Account: s.Account, Email: emailRecord(s.Email), Until: int64(s.Until)}
	r.Expires, r.ExpiresNanos = instant(s.Expires)
	return r
}

func rollingRecord(s *engine.RollingState) *SnapshotRolling {
	r := &SnapshotRolling{Newest: s.Newest}
	for _, n := range s.Counts {
		r.Counts = append(r.Counts, uint32(n))
	}
	return r
}

func (d *decoder) rolling(r *SnapshotRolling) engine.RollingState {
	var s engine.RollingState
	if r == nil {
		return s
	}
	if len(r.Counts) > len(s.Counts) || r.Newest < 0 {
		d.keep(fmt.Errorf("%d minutes of an hour up to minute %d", len(r.Counts), r.Newest))
		return s
	}
	s.Newest = r.Newest
	for i, n := range r.Counts {
		if n > math.MaxUint16 {
			d.keep(fmt.Errorf("%d events in a minute", n))
		}
		s.Counts[i] = uint16(n)
	}
	return s
}
