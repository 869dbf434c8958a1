package accounts

import (
	"encoding/binary"

	"github.com/tasard/tasard/actors/internal/keyindex"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine/account"
)

// SnapshotAccounts collects the accounts and e-mail addresses of a snapshot. A snapshot consists of parts. Its reader
// calls the functions of Visitor for one part after the other. The outer slices have one element for each part.
type SnapshotAccounts struct {
	Decoder    *record.Decoder
	accounts   [][]snapshotAccount
	keyEntries [][]keyindex.Entry
	addresses  [][]account.AddressState
}

type snapshotAccount struct {
	id    uint64
	state evictedAccount
}

// Visitor returns the functions that add the parts of a snapshot to s.
func (s *SnapshotAccounts) Visitor() record.SnapshotVisitor {
	return record.SnapshotVisitor{Accounts: s.addPart, Addresses: func(addresses []account.AddressState) { s.addresses = append(s.addresses, addresses) }}
}

// addPart checks the encoded accounts of one part and copies them. All copies share one allocation, which is faster
// than one allocation for each account. The allocation is freed when none of these accounts has its copy any more.
func (s *SnapshotAccounts) addPart(encoded [][]byte) error {
	size := 0
	for _, data := range encoded {
		size += len(data) + binary.MaxVarintLen32
	}
	memory, accounts, keyEntries := make([]byte, 0, size), make([]snapshotAccount, 0, len(encoded)), make([]keyindex.Entry, 0, len(encoded))
	for _, data := range encoded {
		state, err := s.Decoder.AccountWithoutText(data)
		if err != nil {
			return err
		}
		start := len(memory)
		memory = appendEvicted(memory, data)
		accounts = append(accounts, snapshotAccount{state.Record.ID, evictedAccount(memory[start:len(memory):len(memory)])})
		for i := range state.Record.Keys {
			keyEntries = append(keyEntries, keyindex.NewEntry(state.Record.Keys[i].Digest, state.Record.ID))
		}
	}
	s.accounts, s.keyEntries = append(s.accounts, accounts), append(s.keyEntries, keyEntries)
	return nil
}
