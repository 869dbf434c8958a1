package actors

import (
	"fmt"
	"math"
	"time"

	"github.com/tasard/tasard/engine"
)

// ledger is what a snapshot holds besides books.
type ledger struct {
	accounts   map[uint64]*ledgerAccount
	registry   engine.RegistryState
	transition engine.Transition
	steady     time.Duration
}

// ledgerAccount is an account during the replay: as the snapshot holds it until an event is about it.
type ledgerAccount struct {
	state   dormant
	awake   *engine.Account
	digests []engine.Digest // of the snapshot's keys, for the index
}

// ofLedger reports that a part is of no book.
func (p *SnapshotPart) ofLedger() bool {
	return len(p.Accounts)+len(p.Addresses)+len(p.Sessions) > 0 || p.Registry != nil
}

func (d *decoder) ledgerPart(p *SnapshotPart) {
	for _, data := range p.Accounts {
		d.ledgerAccount(data)
	}
	for _, r := range p.Addresses {
		d.ledger.registry.Addresses = append(d.ledger.registry.Addresses, d.address(r))
	}
	for _, r := range p.Sessions {
		d.ledger.registry.Sessions = append(d.ledger.registry.Sessions, engine.SessionState{
			Token: d.digest(r.Token), Account: r.Account, Email: d.email(r.Email),
			Expires: d.instant(r.Expires, r.ExpiresNanos), Until: d.steady(r.Until),
		})
	}
	if r := p.Registry; r != nil {
		l := &d.ledger
		l.registry.Wrong, l.registry.Codes = d.rolling(r.Wrong), d.rolling(r.Codes)
		l.registry.Swept, l.registry.LastID = d.steady(r.Swept), r.LastId
		l.transition, l.steady = d.transition(r.Transition), d.steady(r.Steady)
	}
}

// ledgerAccount checks the account's state and keeps its bytes.
func (d *decoder) ledgerAccount(data []byte) {
	state, err := d.accountState(data)
	if err != nil {
		d.keep(err)
		return
	}
	if d.ledger.accounts[state.Record.ID] != nil {
		d.keep(fmt.Errorf("account %d is there twice", state.Record.ID))
	}
	one := &ledgerAccount{state: dormantOf(data)}
	for i := range state.Record.Keys {
		one.digests = append(one.digests, state.Record.Keys[i].Digest)
	}
	if d.ledger.accounts == nil {
		d.ledger.accounts = map[uint64]*ledgerAccount{}
	}
	d.ledger.accounts[state.Record.ID] = one
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
