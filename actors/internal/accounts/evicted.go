package accounts

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// evictedAccount is an account that has no actor: its state as a snapshot holds it, and behind it what this process knows beyond that. Layout:
// the length of the state as a uvarint, the state, an account.EvictedState if the account was evicted in this process.
type evictedAccount []byte

// EncodeDurable is an account as the log knows it.
func EncodeDurable(account *account.Account) evictedAccount { return encodeState(account.State()) }

func encodeState(state account.State) evictedAccount {
	return bytes.Clone(record.AppendAccount(make([]byte, 0, 2*evictedBytes), &state))
}

// EncodeEvicted is an idle account with what only this process knows.
func EncodeEvicted(account *account.Account) evictedAccount { return new(codec).evict(account) }

// appendEvicted appends an account as a snapshot holds it.
func appendEvicted(to, state []byte) []byte {
	return append(binary.AppendUvarint(to, uint64(len(state))), state...)
}

// hasProcessState reports that the account was evicted in this process.
func (d evictedAccount) hasProcessState() bool {
	_, idle := record.SplitAccount(d)
	return len(idle) > 0
}

// codec loads and evicts accounts, one after the other, in memory that it uses again. The zero value is ready.
type codec struct {
	encoder record.AccountEncoder
	decoder record.Decoder
	state   account.State
	idle    account.EvictedState
	bytes   []byte
}

// evict is an idle account with what only this process knows.
func (c *codec) evict(a *account.Account) evictedAccount {
	a.SaveState(&c.state)
	a.SaveEvicted(&c.idle)
	c.bytes = c.encoder.Append(c.bytes[:0], &c.state, &c.idle)
	return bytes.Clone(c.bytes)
}

// load makes a the account that d is, on a node; 0 is one that is alone. One that was not evicted in this process begins to count at
// resumed.
func (c *codec) load(d evictedAccount, a *account.Account, node engine.NodeID, resumed account.ClockReading) error {
	if err := c.decode(d, a); err != nil {
		return err
	}
	a.SetNode(node)
	if d.hasProcessState() {
		a.Reload(c.idle)
	} else {
		a.Resume(resumed)
	}
	return nil
}

// decode makes a the account as the log knows it, and fills in c.idle.
func (c *codec) decode(d evictedAccount, a *account.Account) error {
	data, idle := record.SplitAccount(d)
	state, err := c.decoder.Account(data)
	if err != nil {
		return err
	}
	if c.idle, err = c.decoder.EvictedState(idle); err != nil {
		return fmt.Errorf("decode account %d: %w", state.Record.ID, err)
	}
	a.Load(&state)
	return nil
}

// load is the account again, as codec.load does it.
func (d evictedAccount) load(node engine.NodeID, resumed account.ClockReading) (*account.Account, error) {
	a := new(account.Account)
	return a, new(codec).load(d, a, node, resumed)
}

// applyRemote is the account after an event that another process decided, which arrives at now. It stays evicted: what is counted from
// the start of this process is counted when it is loaded, so nothing is lost however soon after the start it happens.
func (d evictedAccount) applyRemote(event account.Event, now account.ClockReading) (evictedAccount, error) {
	a, c := new(account.Account), new(codec)
	if err := c.decode(d, a); err != nil {
		return nil, err
	}
	if !d.hasProcessState() {
		a.ApplyRemote(event, now)
		return EncodeDurable(a), nil
	}
	a.Reload(c.idle)
	a.ApplyRemote(event, now)
	return c.evict(a), nil
}
