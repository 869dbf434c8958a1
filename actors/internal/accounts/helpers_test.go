package accounts

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/tasard/tasard/engine/account"
)

// noon is an ordinary Wednesday in Santo Domingo.
var noon = time.Date(2026, 6, 17, 16, 0, 0, 0, time.UTC)

// keyOf is the digest of an account's key.
func keyOf(id uint64) (d account.Digest) {
	binary.LittleEndian.PutUint64(d[:], id<<32|id+1)
	return d
}

// newAccount is an account with a key.
func newAccount(t testing.TB, id uint64) *account.Account {
	t.Helper()
	email, err := account.ParseEmail(fmt.Sprintf("somebody.%d@example.com", id))
	if err != nil {
		t.Fatal(err)
	}
	a := account.New(id)
	a.Apply(&account.Created{Account: id, Email: email.ID(), At: noon}, account.ClockReading{})
	a.Apply(&account.KeyCreated{Account: id, Key: account.KeyRecord{ID: "key_1", Name: "production", Hint: "abcd", Digest: keyOf(id), CreatedAt: noon}}, account.ClockReading{})
	return a
}
