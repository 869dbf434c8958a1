package accounts

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// evictedAccount is an account without an actor: the length of its state as a uvarint, the state as a snapshot holds
// it, and an account.EvictedState if it was evicted in this process.
type evictedAccount []byte

// EncodeDurable returns an account as the log knows it.
func EncodeDurable(account *account.Account) evictedAccount { return encodeState(account.State()) }

func encodeState(state account.State) evictedAccount {
	return bytes.Clone(record.AppendAccount(make([]byte, 0, 2*evictedBytes), &state))
}

// EncodeEvicted returns an idle account with what only this process knows.
func EncodeEvicted(account *account.Account) evictedAccount { return new(codec).evict(account) }

// appendEvicted appends an account as a snapshot holds it.
func appendEvicted(to, state []byte) []byte {
	return append(binary.AppendUvarint(to, uint64(len(state))), state...)
}

// hasProcessState reports whether the account was evicted in this process.
func (d evictedAccount) hasProcessState() bool {
	_, idle := record.SplitAccount(d)
	return len(idle) > 0
}

// codec loads and evicts accounts, one at a time, in memory that it reuses. The zero value is ready.
type codec struct {
	encoder record.AccountEncoder
	decoder record.Decoder
	state   account.State
	idle    account.EvictedState
	bytes   []byte
}

// evict encodes an idle account with what only this process knows.
func (c *codec) evict(a *account.Account) evictedAccount {
	a.SaveState(&c.state)
	a.SaveEvicted(&c.idle)
	c.bytes = c.encoder.Append(c.bytes[:0], &c.state, &c.idle)
	return bytes.Clone(c.bytes)
}

// load decodes d into a, for a node, 0 without a cluster. An account that was not evicted in this process starts to
// count at resumed.
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

// decode decodes d into a, as the log knows it, and into c.idle.
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

// load is codec.load into a new account.
func (d evictedAccount) load(node engine.NodeID, resumed account.ClockReading) (*account.Account, error) {
	a := new(account.Account)
	return a, new(codec).load(d, a, node, resumed)
}

// applyRemote returns the account after an event of another process. It stays evicted.
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
