package actors

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/engine/account"
)

// snapshotOfAccounts is a journal with a snapshot of accounts.
func snapshotOfAccounts(t *testing.T, all ...*account.Account) *memoryJournal {
	t.Helper()
	c := &commitlog.StateSnapshot{Full: true, Accounts: make([][][]byte, 1)}
	for _, account := range all {
		c.Accounts[0] = append(c.Accounts[0], accounts.EncodeDurable(account))
	}
	var buffer bytes.Buffer
	if err := c.Write(&buffer); err != nil {
		t.Fatal(err)
	}
	return &memoryJournal{sequence: 1, dropped: 1, snapshot: buffer.Bytes()}
}

// stopped is why a node does not start with a journal, nil when it does.
func stopped(t *testing.T, journal *memoryJournal) error {
	t.Helper()
	s := open(t, Config{Journal: journal})
	select {
	case <-s.Done():
	case <-s.Ready():
	}
	return s.Err()
}

// A snapshot that contradicts itself stops the node, as damage does.
func TestContradictionsOfAccountsStopTheNode(t *testing.T) {
	thief := account.New(8)
	thief.Apply(&account.Created{Account: 8, Email: mustEmail(t, "thief@example.com").ID(), At: noon})
	thief.Apply(&account.KeyCreated{Account: 8, Key: account.KeyRecord{ID: "key_8", Digest: keyOf(7), CreatedAt: noon}})
	for want, journal := range map[string]*memoryJournal{
		"the snapshot has an account twice":                 snapshotOfAccounts(t, testAccount(t, 7), testAccount(t, 9), testAccount(t, 7)),
		"two accounts have a key with the same fingerprint": snapshotOfAccounts(t, testAccount(t, 7), thief),
	} {
		if err := stopped(t, journal); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// An account of a snapshot that an event is about is the same as one whose events are all in the log.
func TestAccountsOfASnapshotGoOn(t *testing.T) {
	revoked := &account.KeyRevoked{Account: 7, KeyID: testAccount(t, 7).Record().Keys[0].ID, At: noon, By: "owner"}
	journal := snapshotOfAccounts(t, testAccount(t, 6), testAccount(t, 7))
	journal.records = [][]byte{mustEncode(t, revoked)}
	n := startNode(t, Config{Journal: journal})
	if grant := n.admit(keyOf(6)); !grant.Admitted || grant.Account != 6 {
		t.Errorf("the account without an event: %+v", grant)
	}
	if grant := n.admit(keyOf(7)); grant.Account != 0 {
		t.Errorf("the account with a key that was revoked: %+v", grant)
	}
	stray := mustEncode(t, &account.KeyRevoked{Account: 5, KeyID: "key_5", At: noon, By: "owner"})
	if err := stopped(t, &memoryJournal{records: [][]byte{stray}}); err == nil || !strings.Contains(err.Error(), "account 5, which was never created") {
		t.Errorf("an event of nobody: %v", err)
	}
}
