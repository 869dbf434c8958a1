package record

import (
	"encoding/binary"
	"fmt"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

func (c *coder) accountCreated(e *account.Created) {
	c.uint64(1, &e.Account)
	c.email(2, &e.Email)
	c.instant(3, &e.At)
}

func (c *coder) keyCreated(e *account.KeyCreated) {
	c.uint64(1, &e.Account)
	if !c.writing {
		c.require(2)
	}
	message(c, 2, &e.Key, (*coder).key)
}

func (c *coder) key(k *account.KeyRecord) {
	c.own(1, &k.ID)
	c.own(2, &k.Name)
	c.own(3, &k.Hint)
	c.digest(4, &k.Digest)
	c.instant(5, &k.CreatedAt)
	c.instant(7, &k.RevokedAt)
	c.instant(9, &k.LastUsed)
}

func (c *coder) keyRevoked(e *account.KeyRevoked) {
	c.uint64(1, &e.Account)
	c.own(2, &e.KeyID)
	c.instant(3, &e.At)
	c.text(5, &e.By)
}

func (c *coder) leased(e *account.Leased) {
	c.uint64(1, &e.Account)
	c.date(2, &e.Day)
	c.count(3, &e.Count)
	c.count(4, &e.Refunded)
	c.count(5, &e.Unspent)
	c.steady(6, &e.Steady)
	c.own(7, &e.KeyID)
	c.instant(8, &e.At)
	c.node(10, &e.Node)
	c.count(11, &e.Recent)
}

func (c *coder) returned(e *account.Returned) {
	c.uint64(1, &e.Account)
	c.date(2, &e.Day)
	c.count(3, &e.Unspent)
	c.count(4, &e.Recent)
	c.steady(5, &e.Steady)
	repeated(c, 6, &e.Uses, (*coder).keyUse)
	c.node(7, &e.Node)
}

func (c *coder) keyUse(u *account.KeyUse) {
	c.own(1, &u.KeyID)
	c.instant(2, &u.At)
}

func (c *coder) suspended(e *account.Suspended) {
	c.uint64(1, &e.Account)
	c.own(2, &e.Reason)
	c.instant(3, &e.At)
	c.text(5, &e.By)
}

func (c *coder) restored(e *account.Restored) {
	c.uint64(1, &e.Account)
	c.instant(2, &e.At)
	c.text(4, &e.By)
}

func (c *coder) allowanceSet(e *account.AllowanceSet) {
	c.uint64(1, &e.Account)
	c.count(2, &e.Allowance.Day)
	c.count(3, &e.Allowance.Minute)
	c.instant(4, &e.At)
	c.text(6, &e.By)
}

// AppendAccount appends an account as a snapshot holds it, behind its length as a varint.
func AppendAccount(to []byte, state *account.State) []byte {
	c := &coder{writing: true, bytes: to}
	measured(c, state, (*coder).account)
	return c.bytes
}

// AccountParts takes apart what AppendAccount has written, without its length, and what AppendAside may have written behind it.
func AccountParts(data []byte) (state, aside []byte) {
	size, n := binary.Uvarint(data)
	return data[n : n+int(size)], data[n+int(size):]
}

// AppendAside appends what a process remembers of an account that it put aside. It is in no log and no snapshot.
func AppendAside(to []byte, aside *account.Aside) []byte {
	c := &coder{writing: true, bytes: to}
	c.aside(aside)
	return c.bytes
}

// Account reads an account as a snapshot holds it. Its lists are the decoder's own, until the next one is read.
func (d *Decoder) Account(data []byte) (account.State, error) {
	s := &d.state
	keys, days, leases := s.Record.Keys[:0], s.Days[:0], s.Leases[:0]
	*s = account.State{Record: account.Record{Keys: keys}, Days: days, Leases: leases}
	if err := read(d, data, s, (*coder).account); err != nil {
		return account.State{}, fmt.Errorf("decode account %d: %w", s.Record.ID, err)
	}
	last := account.LeaseState{}
	for _, lease := range s.Leases {
		if err := follows(lease, last.Node); err != nil {
			return account.State{}, fmt.Errorf("decode account %d: %w", s.Record.ID, err)
		}
		last = lease
	}
	return *s, nil
}

// Skim is Account without texts, for who wants to know the numbers and that the account is whole.
func (d *Decoder) Skim(data []byte) (account.State, error) {
	d.coder.skim = true
	defer func() { d.coder.skim = false }()
	return d.Account(data)
}

// follows checks the order of leases: those of a node that is alone come first, then one of each node of a cluster, by number.
func follows(lease account.LeaseState, last engine.NodeID) error {
	switch {
	case lease.Node < last || lease.Node == last && last != 0:
		return fmt.Errorf("a lease of node %d behind one of node %d", lease.Node, last)
	case lease.Node == 0 && lease.Recent != 0 || lease.Node != 0 && lease.Unspent != 0:
		return fmt.Errorf("a lease of node %d with %d recent and %d unspent", lease.Node, lease.Recent, lease.Unspent)
	}
	return nil
}

// Aside reads what AppendAside has written.
func (d *Decoder) Aside(data []byte) (account.Aside, error) {
	aside := &account.Aside{}
	err := read(d, data, aside, (*coder).aside)
	return *aside, err
}

func (c *coder) account(s *account.State) {
	r := &s.Record
	c.uint64(1, &r.ID)
	c.email(2, &r.Email)
	c.instant(3, &r.CreatedAt)
	repeated(c, 5, &r.Keys, (*coder).key)
	c.instant(6, &r.SuspendedAt)
	c.own(8, &r.Reason)
	c.count(9, &r.Allowance.Day)
	c.count(10, &r.Allowance.Minute)
	repeated(c, 11, &s.Days, (*coder).day)
	c.date(12, &s.Floor)
	repeated(c, 13, &s.Leases, (*coder).lease)
}

func (c *coder) day(d *account.DayState) {
	c.date(1, &d.Day)
	c.count(2, &d.Leased)
}

func (c *coder) lease(l *account.LeaseState) {
	c.steady(1, &l.Steady)
	c.count(2, &l.Unspent)
	c.count(3, &l.Count)
	c.node(4, &l.Node)
	c.count(5, &l.Recent)
}

func (c *coder) aside(a *account.Aside) {
	repeated(c, 1, &a.Days, (*coder).asideDay)
	c.int64(2, (*int64)(&a.Fence))
	repeated(c, 3, &a.Uses, (*coder).keyUse)
}

func (c *coder) asideDay(d *account.AsideDay) {
	c.date(1, &d.Day)
	c.count(2, &d.Spent)
	c.count(3, &d.Refunded)
}
