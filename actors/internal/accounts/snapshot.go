package accounts

import (
	"encoding/binary"

	"github.com/tasard/tasard/actors/internal/keyindex"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine/account"
)

// SnapshotAccounts are the accounts of a snapshot, in the chunks in which they were read.
type SnapshotAccounts struct {
	Decoder   *record.Decoder
	accounts  [][]snapshotAccount
	claims    [][]keyindex.Claim // of their keys
	addresses [][]account.AddressState
}

// snapshotAccount is an account of a snapshot.
type snapshotAccount struct {
	id    uint64
	state evictedAccount
}

// Visitor returns the functions that read a snapshot into l.
func (l *SnapshotAccounts) Visitor() record.SnapshotVisitor {
	return record.SnapshotVisitor{Accounts: l.addPart, Addresses: func(some []account.AddressState) { l.addresses = append(l.addresses, some) }}
}

// addPart checks encoded accounts and keeps them. The accounts of a chunk share one piece of memory, which costs less
// than a million small ones; it is freed when the last of them has been replaced.
func (l *SnapshotAccounts) addPart(all [][]byte) error {
	size := 0
	for _, data := range all {
		size += len(data) + binary.MaxVarintLen32
	}
	memory, sleepers, claims := make([]byte, 0, size), make([]snapshotAccount, 0, len(all)), make([]keyindex.Claim, 0, len(all))
	for _, data := range all {
		state, err := l.Decoder.AccountWithoutText(data)
		if err != nil {
			return err
		}
		start := len(memory)
		memory = appendEvicted(memory, data)
		sleepers = append(sleepers, snapshotAccount{state.Record.ID, evictedAccount(memory[start:len(memory):len(memory)])})
		for i := range state.Record.Keys {
			claims = append(claims, keyindex.NewClaim(state.Record.Keys[i].Digest, state.Record.ID))
		}
	}
	l.accounts, l.claims = append(l.accounts, sleepers), append(l.claims, claims)
	return nil
}
