package accounts

import (
	"encoding/binary"

	"github.com/tasard/tasard/actors/internal/keyindex"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine/account"
)

// SnapshotAccounts are the accounts of a snapshot, by the parts in which they were read.
type SnapshotAccounts struct {
	Decoder   *record.Decoder
	accounts  [][]snapshotAccount
	claims    [][]keyindex.Claim // for the keys of the accounts
	addresses [][]account.AddressState
}

// snapshotAccount is an account of a snapshot.
type snapshotAccount struct {
	id    uint64
	state evictedAccount
}

// Visitor returns the functions that read a snapshot into s.
func (s *SnapshotAccounts) Visitor() record.SnapshotVisitor {
	return record.SnapshotVisitor{Accounts: s.addPart, Addresses: func(addresses []account.AddressState) { s.addresses = append(s.addresses, addresses) }}
}

// addPart checks encoded accounts and keeps them. All accounts of a part share one allocation, which is faster than an
// allocation for each. It is freed when all of these accounts have been replaced.
func (s *SnapshotAccounts) addPart(encoded [][]byte) error {
	size := 0
	for _, data := range encoded {
		size += len(data) + binary.MaxVarintLen32
	}
	memory, accounts, claims := make([]byte, 0, size), make([]snapshotAccount, 0, len(encoded)), make([]keyindex.Claim, 0, len(encoded))
	for _, data := range encoded {
		state, err := s.Decoder.AccountWithoutText(data)
		if err != nil {
			return err
		}
		start := len(memory)
		memory = appendEvicted(memory, data)
		accounts = append(accounts, snapshotAccount{state.Record.ID, evictedAccount(memory[start:len(memory):len(memory)])})
		for i := range state.Record.Keys {
			claims = append(claims, keyindex.NewClaim(state.Record.Keys[i].Digest, state.Record.ID))
		}
	}
	s.accounts, s.claims = append(s.accounts, accounts), append(s.claims, claims)
	return nil
}
