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
// the length of the state as a uvarint, the state, an account.EvictedState if the account was put aside in this process.
type evictedAccount []byte

// EncodeDurable is an account as the log knows it.
func EncodeDurable(account *account.Account) evictedAccount { return encodeState(account.State()) }

func encodeState(state account.State) evictedAccount {
	return bytes.Clone(record.AppendAccount(make([]byte, 0, 2*evictedBytes), &state))
}

// EncodeEvicted is an idle account with what only this process knows.
func EncodeEvicted(account *account.Account) evictedAccount {
	state, aside := account.State(), account.Evict()
	return bytes.Clone(record.AppendIdleState(record.AppendAccount(make([]byte, 0, 2*evictedBytes), &state), &aside))
}

// appendEvicted appends an account as a snapshot holds it.
func appendEvicted(to, state []byte) []byte {
	return append(binary.AppendUvarint(to, uint64(len(state))), state...)
}

// hasProcessState reports that the account was put aside in this process.
func (d evictedAccount) hasProcessState() bool {
	_, aside := record.SplitAccount(d)
	return len(aside) > 0
}

// load is the account again, on a node; 0 is one that is alone. One that was not put aside in this process begins to count at a moment.
func (d evictedAccount) load(node engine.NodeID, resumed account.ClockReading) (*account.Account, error) {
	account, aside, err := d.decode()
	if err != nil {
		return nil, err
	}
	account.SetNode(node)
	if !d.hasProcessState() {
		account.Resume(resumed)
		return account, nil
	}
	account.Reload(aside)
	return account, nil
}

// applyRemote is the account after an event that another process decided, which arrives at a moment. It sleeps on: what is counted from the
// start of this process is counted when it wakes, so that nothing is lost however soon after the start it happens.
func (d evictedAccount) applyRemote(event account.Event, now account.ClockReading) (evictedAccount, error) {
	account, aside, err := d.decode()
	if err != nil {
		return nil, err
	}
	if !d.hasProcessState() {
		account.ApplyRemote(event, now)
		return EncodeDurable(account), nil
	}
	account.Reload(aside)
	account.ApplyRemote(event, now)
	return EncodeEvicted(account), nil
}

// decode is the account as the log knows it, and what it was put aside with.
func (d evictedAccount) decode() (*account.Account, account.EvictedState, error) {
	data, rest := record.SplitAccount(d)
	decoder := &record.Decoder{}
	state, err := decoder.Account(data)
	if err != nil {
		return nil, account.EvictedState{}, err
	}
	aside, err := decoder.IdleState(rest)
	if err != nil {
		return nil, account.EvictedState{}, fmt.Errorf("decode account %d: %w", state.Record.ID, err)
	}
	return account.Restore(state), aside, nil
}
