package accounts

import (
	"encoding/binary"

	"github.com/tasard/tasard/actors/internal/keyindex"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine/account"
)

// Ledger is what a snapshot holds of accounts, in the parts in which it came: a million pieces would be moved as they grow.
type Ledger struct {
	Decoder   *record.Decoder
	accounts  [][]sleeper
	claims    [][]keyindex.Claim // of their keys
	addresses [][]account.AddressState
}

// sleeper is an account as the snapshot holds it.
type sleeper struct {
	id    uint64
	state dormant
}

// Visitor shows the ledger what a snapshot has.
func (l *Ledger) Visitor() record.SnapshotVisitor {
	return record.SnapshotVisitor{Accounts: l.keep, Addresses: func(some []account.AddressState) { l.addresses = append(l.addresses, some) }}
}

// keep checks the states of accounts and keeps their bytes. Those of one part share one piece of memory: a million pieces would
// cost more than what is in them. It is free when the last of them was replaced, after as many accounts were asked for.
func (l *Ledger) keep(all [][]byte) error {
	size := 0
	for _, data := range all {
		size += len(data) + binary.MaxVarintLen32
	}
	memory, sleepers, claims := make([]byte, 0, size), make([]sleeper, 0, len(all)), make([]keyindex.Claim, 0, len(all))
	for _, data := range all {
		state, err := l.Decoder.Skim(data)
		if err != nil {
			return err
		}
		start := len(memory)
		memory = appendDormant(memory, data)
		sleepers = append(sleepers, sleeper{state.Record.ID, dormant(memory[start:len(memory):len(memory)])})
		for i := range state.Record.Keys {
			claims = append(claims, keyindex.ClaimOf(state.Record.Keys[i].Digest, state.Record.ID))
		}
	}
	l.accounts, l.claims = append(l.accounts, sleepers), append(l.claims, claims)
	return nil
}
