package accounts

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// evictedAccount is an account without an actor. It is kept encoded:
//
//	length of State (uvarint) | account.State as in a snapshot | account.EvictedState
//
// account.EvictedState is not in the log; for example, it has the number of requests spent today. It is missing until
// the account is evicted in this process.
type evictedAccount []byte

// EncodeDurable encodes account.State, which is the part of an account that is in the log.
func EncodeDurable(account *account.Account) evictedAccount { return encodeState(account.State()) }

func encodeState(state account.State) evictedAccount {
	return bytes.Clone(record.AppendAccount(make([]byte, 0, 2*accountBytesEstimate), &state))
}

// EncodeEvicted encodes an account with its account.EvictedState.
func EncodeEvicted(account *account.Account) evictedAccount { return new(codec).evict(account) }

// appendEvicted appends an encoded account.State as an evictedAccount.
func appendEvicted(buf, state []byte) []byte {
	return append(binary.AppendUvarint(buf, uint64(len(state))), state...)
}

func (e evictedAccount) hasEvictedState() bool {
	_, evicted := record.SplitAccount(e)
	return len(evicted) > 0
}

// codec decodes and encodes accounts. It reuses memory. The zero value is ready to use.
type codec struct {
	encoder record.AccountEncoder
	decoder record.Decoder
	state   account.State
	evicted account.EvictedState
	bytes   []byte
}

func (c *codec) evict(a *account.Account) evictedAccount {
	a.SaveState(&c.state)
	a.SaveEvicted(&c.evicted)
	c.bytes = c.encoder.Append(c.bytes[:0], &c.state, &c.evicted)
	return bytes.Clone(c.bytes)
}

// load decodes e into a. node is the ID of this node, or 0 without a cluster. If e has no EvictedState, load calls
// a.Resume(resumed), with the clock reading at the start of the process.
func (c *codec) load(e evictedAccount, a *account.Account, node engine.NodeID, resumed account.ClockReading) error {
	if err := c.decode(e, a); err != nil {
		return err
	}
	a.SetNode(node)
	if e.hasEvictedState() {
		a.Reload(c.evicted)
	} else {
		a.Resume(resumed)
	}
	return nil
}

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

func (e evictedAccount) load(node engine.NodeID, resumed account.ClockReading) (*account.Account, error) {
	a := new(account.Account)
	return a, new(codec).load(e, a, node, resumed)
}

// applyRemote returns the encoded account after it has applied an event of another node.
func (e evictedAccount) applyRemote(event account.Event, now account.ClockReading) (evictedAccount, error) {
	a, c := new(account.Account), new(codec)
	if err := c.decode(e, a); err != nil {
		return nil, err
	}
	if !e.hasEvictedState() {
		a.ApplyRemote(event, now)
		return EncodeDurable(a), nil
	}
	a.Reload(c.evicted)
	a.ApplyRemote(event, now)
	return c.evict(a), nil
}
