package actors

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/tasard/tasard/engine"
)

// dormant is an account that has no actor: its state as a snapshot holds it, and behind it what this
// process knows beyond that. Layout: the length of the state as a uvarint, the state, an AsideAccount if
// the account was put aside in this process.
type dormant []byte

func encodeState(s engine.AccountState) *SnapshotAccount {
	r := &SnapshotAccount{
		Id: s.Record.ID, Email: emailRecord(s.Record.Email), Keys: converted(s.Record.Keys, keyRecord), Reason: s.Record.Reason,
		AllowanceDay: int64(s.Record.Allowance.Day), AllowanceMinute: int64(s.Record.Allowance.Minute), Floor: int32(s.Floor),
		Days: converted(s.Days, func(d *engine.DayState) *SnapshotDay {
			return &SnapshotDay{Day: int32(d.Day), Leased: int64(d.Leased)}
		}),
		Leases: converted(s.Leases, func(l *engine.LeaseState) *SnapshotLease {
			return &SnapshotLease{
				Steady: int64(l.Steady), Unspent: int64(l.Unspent), Count: int64(l.Count), Node: uint32(l.Node), Recent: int64(l.Recent),
			}
		}),
	}
	r.Created, r.CreatedNanos = instant(s.Record.CreatedAt)
	r.Suspended, r.SuspendedNanos = instant(s.Record.SuspendedAt)
	return r
}

func encodeAside(a engine.Aside) *AsideAccount {
	return &AsideAccount{
		Fence: int64(a.Fence), Uses: converted(a.Uses, keyUseRecord),
		Days: converted(a.Days, func(d *engine.AsideDay) *AsideDay {
			return &AsideDay{Day: int32(d.Day), Spent: int64(d.Spent), Refunded: int64(d.Refunded)}
		}),
	}
}

// freeze is an account as the log knows it.
func freeze(account *engine.Account) (dormant, error) {
	return packed(encodeState(account.State()), nil)
}

// putAside is an idle account with what only this process knows.
func putAside(account *engine.Account) (dormant, error) {
	return packed(encodeState(account.State()), encodeAside(account.PutAside()))
}

func packed(state *SnapshotAccount, aside *AsideAccount) (dormant, error) {
	size := state.SizeVT()
	var prefix [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(prefix[:], uint64(size))
	total := n + size
	if aside != nil {
		total += aside.SizeVT()
	}
	d := make(dormant, total)
	copy(d, prefix[:n])
	if _, err := state.MarshalToSizedBufferVT(d[n : n+size]); err != nil {
		return nil, fmt.Errorf("encode account %d: %w", state.Id, err)
	}
	if aside != nil {
		if _, err := aside.MarshalToSizedBufferVT(d[n+size:]); err != nil {
			return nil, fmt.Errorf("encode account %d: %w", state.Id, err)
		}
	}
	return d, nil
}

// appendDormant appends an account as a snapshot holds it.
func appendDormant(to, state []byte) []byte {
	return append(binary.AppendUvarint(to, uint64(len(state))), state...)
}

// parts are the state and what is behind it.
func (d dormant) parts() (state, aside []byte) {
	size, n := binary.Uvarint(d)
	return d[n : n+int(size)], d[n+int(size):]
}

// aside reports that the account was put aside in this process.
func (d dormant) aside() bool {
	_, aside := d.parts()
	return len(aside) > 0
}

// wake is the account again. One that was not put aside in this process begins to count at a moment.
func (d dormant) wake(resumed engine.Moment) (*engine.Account, error) { return d.wakeOn(0, resumed) }

// wakeOn is wake on a node of a cluster.
func (d dormant) wakeOn(node engine.NodeID, resumed engine.Moment) (*engine.Account, error) {
	data, rest := d.parts()
	decoder := &decoder{}
	state, err := decoder.accountState(data)
	if err != nil {
		return nil, err
	}
	account := engine.RestoreAccount(state)
	account.SetNode(node)
	if len(rest) == 0 {
		account.Resume(resumed)
		return account, nil
	}
	aside, err := decoder.aside(rest)
	if err != nil {
		return nil, fmt.Errorf("decode account %d: %w", state.Record.ID, err)
	}
	account.TakeUp(aside)
	return account, nil
}

// learn is the account after an event that another process decided, which arrives at a moment. It sleeps on: what is counted from the
// start of this process is counted when it wakes, so that nothing is lost however soon after the start it happens.
func (d dormant) learn(event engine.AccountEvent, now engine.Moment) (dormant, error) {
	data, rest := d.parts()
	decoder := &decoder{}
	state, err := decoder.accountState(data)
	if err != nil {
		return nil, err
	}
	account := engine.RestoreAccount(state)
	if len(rest) == 0 {
		account.Learn(event, now)
		return freeze(account)
	}
	aside, err := decoder.aside(rest)
	if err != nil {
		return nil, fmt.Errorf("decode account %d: %w", state.Record.ID, err)
	}
	account.TakeUp(aside)
	account.Learn(event, now)
	return putAside(account)
}

// accountState reads an account. Its lists are the decoder's own, until the next one is read.
func (d *decoder) accountState(data []byte) (engine.AccountState, error) {
	r, last := &d.account, &d.state
	r.ResetVT()
	if err := r.UnmarshalVTUnsafe(data); err != nil {
		return engine.AccountState{}, fmt.Errorf("decode account: %w", err)
	}
	state := engine.AccountState{
		Record: engine.AccountRecord{
			ID: r.Id, Email: d.email(r.Email), CreatedAt: d.instant(r.Created, r.CreatedNanos), Keys: last.Record.Keys[:0],
			SuspendedAt: d.instant(r.Suspended, r.SuspendedNanos), Reason: d.own(r.Reason),
			Allowance: d.allowance(r.AllowanceDay, r.AllowanceMinute),
		},
		Floor: d.date(r.Floor), Days: last.Days[:0], Leases: last.Leases[:0],
	}
	for _, key := range r.Keys {
		state.Record.Keys = append(state.Record.Keys, d.keyRecord(key))
	}
	for _, day := range r.Days {
		state.Days = append(state.Days, engine.DayState{Day: d.date(day.Day), Leased: d.count(day.Leased)})
	}
	for _, lease := range r.Leases {
		state.Leases = append(state.Leases, d.lease(lease, state.Leases))
	}
	if d.err != nil {
		return engine.AccountState{}, fmt.Errorf("decode account %d: %w", r.Id, d.err)
	}
	d.state = state
	return state, nil
}

// lease is a lease behind others: those of a node that is alone come first, then one of each node of a cluster, by number.
func (d *decoder) lease(r *SnapshotLease, before []engine.LeaseState) engine.LeaseState {
	lease := engine.LeaseState{
		Steady: d.steady(r.Steady), Unspent: d.count(r.Unspent), Count: d.count(r.Count), Node: d.node(r.Node), Recent: d.count(r.Recent),
	}
	last := engine.NodeID(0)
	if n := len(before); n > 0 {
		last = before[n-1].Node
	}
	switch {
	case lease.Node < last || lease.Node == last && last != 0:
		d.keep(fmt.Errorf("a lease of node %d behind one of node %d", lease.Node, last))
	case lease.Node == 0 && lease.Recent != 0 || lease.Node != 0 && lease.Unspent != 0:
		d.keep(fmt.Errorf("a lease of node %d with %d recent and %d unspent", lease.Node, lease.Recent, lease.Unspent))
	}
	return lease
}

func (d *decoder) aside(data []byte) (engine.Aside, error) {
	var r AsideAccount
	if err := r.UnmarshalVTUnsafe(data); err != nil {
		return engine.Aside{}, err
	}
	aside := engine.Aside{Fence: time.Duration(r.Fence), Uses: d.keyUses(r.Uses)}
	for _, day := range r.Days {
		aside.Days = append(aside.Days, engine.AsideDay{Day: d.date(day.Day), Spent: d.count(day.Spent), Refunded: d.count(day.Refunded)})
	}
	return aside, d.err
}
