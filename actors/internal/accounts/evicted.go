package accounts

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// evictedAccount is an encoded account without an actor: the length of its account.State as a uvarint, the state as in
// a snapshot and, if the account was evicted in this process, an account.EvictedState.
type evictedAccount []byte

// EncodeDurable encodes the part of an account that is in the log.
func EncodeDurable(account *account.Account) evictedAccount { return encodeState(account.State()) }

func encodeState(state account.State) evictedAccount {
	return bytes.Clone(record.AppendAccount(make([]byte, 0, 2*accountBytesEstimate), &state))
}

// EncodeEvicted encodes an idle account with its account.EvictedState.
func EncodeEvicted(account *account.Account) evictedAccount { return new(codec).evict(account) }

// appendEvicted appends the state of an account in a snapshot.
func appendEvicted(buf, state []byte) []byte {
	return append(binary.AppendUvarint(buf, uint64(len(state))), state...)
}

// hasProcessState reports whether the account was evicted in this process.
func (e evictedAccount) hasProcessState() bool {
	_, evicted := record.SplitAccount(e)
	return len(evicted) > 0
}

// codec decodes and encodes accounts, and reuses its memory. The zero value is ready.
type codec struct {
	encoder record.AccountEncoder
	decoder record.Decoder
	state   account.State
	evicted account.EvictedState
	bytes   []byte
}

// evict is EncodeEvicted.
func (c *codec) evict(a *account.Account) evictedAccount {
	a.SaveState(&c.state)
	a.SaveEvicted(&c.evicted)
	c.bytes = c.encoder.Append(c.bytes[:0], &c.state, &c.evicted)
	return bytes.Clone(c.bytes)
}

// load decodes e into a. node is 0 without a cluster. An account that was not evicted in this process starts to count
// at resumed.
func (c *codec) load(e evictedAccount, a *account.Account, node engine.NodeID, resumed account.ClockReading) error {
	if err := c.decode(e, a); err != nil {
		return err
	}
	a.SetNode(node)
	if e.hasProcessState() {
		a.Reload(c.evicted)
	} else {
		a.Resume(resumed)
	}
	return nil
}

// decode decodes the state into a and the account.EvictedState into c.evicted.
func (c *codec) decode(e evictedAccount, a *account.Account) error {
	data, evicted := record.SplitAccount(e)
	state, err := c.decoder.Account(data)
	if err != nil {
		return err
	}
	if c.evicted, err = c.decoder.EvictedState(evicted); err != nil {
		return fmt.Errorf("decode account %d: %w", state.Record.ID, err)
	}
	a.Load(&state)
	return nil
}

// load decodes a new account; see codec.load.
func (e evictedAccount) load(node engine.NodeID, resumed account.ClockReading) (*account.Account, error) {
	a := new(account.Account)
	return a, new(codec).load(e, a, node, resumed)
}

// applyRemote returns the account after an event of another node. The account stays evicted.
func (e evictedAccount) applyRemote(event account.Event, now account.ClockReading) (evictedAccount, error) {
	a, c := new(account.Account), new(codec)
	if err := c.decode(e, a); err != nil {
		return nil, err
	}
	if !e.hasProcessState() {
		a.ApplyRemote(event, now)
		return EncodeDurable(a), nil
	}
	a.Reload(c.evicted)
	a.ApplyRemote(event, now)
	return c.evict(a), nil
}
