package actors

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// manyAccounts is a journal with a snapshot of so many accounts, each with an address, a key and requests
// of today.
func manyAccounts(t testing.TB, count int) *memoryJournal {
	t.Helper()
	var buffer bytes.Buffer
	c := &commitlog.StateSnapshot{Accounts: make([][][]byte, 1)}
	registry := &c.Registry.Registry
	for id := uint64(1); id <= uint64(count); id++ {
		a := testAccount(t, id)
		state := a.State()
		c.Accounts[0] = append(c.Accounts[0], record.AppendAccount(nil, &state))
		registry.Addresses = append(registry.Addresses, &account.AddressState{
			Email: a.Record().Email, Account: id, NextCodeAt: time.Hour, LastEventAt: time.Hour, Mails: account.DayCounter{Day: engine.DateOf(noon), Count: 1},
		})
	}
	registry.LastID, c.Registry.Monotonic = uint64(count), 2*time.Hour
	must(t, c.Write(&buffer))
	return &memoryJournal{sequence: 1, dropped: 1, snapshot: buffer.Bytes()}
}

func mustEncode(t testing.TB, event any) []byte {
	t.Helper()
	encoded, err := record.Encode(event)
	must(t, err)
	return encoded
}

func decimal(text string) engine.Decimal {
	d, err := engine.ParseDecimal(text)
	if err != nil {
		panic(err)
	}
	return d
}

func keyOf(id uint64) account.Digest { return sha256.Sum256(binary.BigEndian.AppendUint64(nil, id)) }

func testAccount(t testing.TB, id uint64) *account.Account {
	a := account.New(id)
	a.Apply(&account.Created{Account: id, Email: mustEmail(t, fmt.Sprintf("somebody.%d@example.com", id)).ID(), At: noon}, account.ClockReading{})
	a.Apply(&account.KeyCreated{Account: id, Key: account.KeyRecord{
		ID: fmt.Sprintf("key_%016x", id), Name: "production", Hint: "abcd", Digest: keyOf(id), CreatedAt: noon,
	}}, account.ClockReading{})
	a.Apply(&account.Leased{
		Account: id, Day: engine.DateOf(noon), Count: 16, Monotonic: time.Hour, KeyID: fmt.Sprintf("key_%016x", id), At: noon,
	}, account.ClockReading{})
	return a
}
