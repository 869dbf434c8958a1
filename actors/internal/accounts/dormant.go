package accounts

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// dormant is an account that has no actor: its state as a snapshot holds it, and behind it what this process knows beyond that. Layout:
// the length of the state as a uvarint, the state, an account.Aside if the account was put aside in this process.
type dormant []byte

// Freeze is an account as the log knows it.
func Freeze(account *account.Account) dormant { return frozen(account.State()) }

func frozen(state account.State) dormant {
	return bytes.Clone(record.AppendAccount(make([]byte, 0, 2*dormantBytes), &state))
}

// PutAside is an idle account with what only this process knows.
func PutAside(account *account.Account) dormant {
	state, aside := account.State(), account.PutAside()
	return bytes.Clone(record.AppendAside(record.AppendAccount(make([]byte, 0, 2*dormantBytes), &state), &aside))
}

// appendDormant appends an account as a snapshot holds it.
func appendDormant(to, state []byte) []byte {
	return append(binary.AppendUvarint(to, uint64(len(state))), state...)
}

// aside reports that the account was put aside in this process.
func (d dormant) aside() bool {
	_, aside := record.AccountParts(d)
	return len(aside) > 0
}

// wake is the account again, on a node; 0 is one that is alone. One that was not put aside in this process begins to count at a moment.
func (d dormant) wake(node engine.NodeID, resumed account.Moment) (*account.Account, error) {
	account, aside, err := d.restore()
	if err != nil {
		return nil, err
	}
	account.SetNode(node)
	if !d.aside() {
		account.Resume(resumed)
		return account, nil
	}
	account.TakeUp(aside)
	return account, nil
}

// learn is the account after an event that another process decided, which arrives at a moment. It sleeps on: what is counted from the
// start of this process is counted when it wakes, so that nothing is lost however soon after the start it happens.
func (d dormant) learn(event account.Event, now account.Moment) (dormant, error) {
	account, aside, err := d.restore()
	if err != nil {
		return nil, err
	}
	if !d.aside() {
		account.Learn(event, now)
		return Freeze(account), nil
	}
	account.TakeUp(aside)
	account.Learn(event, now)
	return PutAside(account), nil
}

// restore is the account as the log knows it, and what it was put aside with.
func (d dormant) restore() (*account.Account, account.Aside, error) {
	data, rest := record.AccountParts(d)
	decoder := &record.Decoder{}
	state, err := decoder.Account(data)
	if err != nil {
		return nil, account.Aside{}, err
	}
	aside, err := decoder.Aside(rest)
	if err != nil {
		return nil, account.Aside{}, fmt.Errorf("decode account %d: %w", state.Record.ID, err)
	}
	return account.Restore(state), aside, nil
}
