package actors

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine/account"
)

// snapshotOfAccounts is a journal with a snapshot of accounts.
func snapshotOfAccounts(t *testing.T, all ...*account.Account) *memoryJournal {
	t.Helper()
	c := &commitlog.StateSnapshot{Full: true, Accounts: make([][][]byte, 1)}
	for _, account := range all {
		state := account.State()
		c.Accounts[0] = append(c.Accounts[0], record.AppendAccount(nil, &state))
	}
	var buffer bytes.Buffer
	if err := c.Write(&buffer); err != nil {
		t.Fatal(err)
	}
	return &memoryJournal{sequence: 1, dropped: 1, snapshot: buffer.Bytes()}
}

// A snapshot or a log that contradicts itself stops the node, as damage does.
func TestContradictionsOfAccountsStopTheNode(t *testing.T) {
	thief := account.New(8)
	thief.Apply(&account.Created{Account: 8, Email: mustEmail(t, "thief@example.com").ID(), At: noon}, account.ClockReading{})
	thief.Apply(&account.KeyCreated{Account: 8, Key: account.KeyRecord{ID: "key_8", Digest: keyOf(7), CreatedAt: noon}}, account.ClockReading{})
	stray := mustEncode(t, &account.KeyRevoked{Account: 5, KeyID: "key_5", At: noon, By: "owner"})
	for want, journal := range map[string]*memoryJournal{
		"account 5, which was never created":                {records: [][]byte{stray}},
		"the snapshot has account 7 twice":                  snapshotOfAccounts(t, testAccount(t, 7), testAccount(t, 9), testAccount(t, 7)),
		"two accounts have a key with the same fingerprint": snapshotOfAccounts(t, testAccount(t, 7), thief),
	} {
		s := open(t, Config{Journal: journal})
		select {
		case <-s.Done():
		case <-s.Ready():
		}
		if err := s.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
