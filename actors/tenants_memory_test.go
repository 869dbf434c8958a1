package actors

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

var accountsLoaded = flag.Int("accounts", 0, "how many accounts TestF9_Memory loads; 0 = 100,000, F9 wants 1,000,000")

// bytesPerAccountMax is F9.
const bytesPerAccountMax = 1024

// population is a journal with a snapshot of so many accounts, each with an address, a key and requests
// of today.
func population(t testing.TB, accounts int) *memoryJournal {
	t.Helper()
	var buffer bytes.Buffer
	c := &cut{whole: true, ledgers: make([][]dormant, 1)}
	var registry engine.RegistryState
	for id := uint64(1); id <= uint64(accounts); id++ {
		account := citizen(t, id)
		state, err := freeze(account)
		if err != nil {
			t.Fatal(err)
		}
		c.ledgers[0] = append(c.ledgers[0], state)
		registry.Addresses = append(registry.Addresses, engine.AddressState{
			Email: account.Record().Email, Account: id, Again: time.Hour, Touched: time.Hour, MailsDay: engine.DateOf(noon), MailsOfTheDay: 1,
		})
	}
	registry.LastID = uint64(accounts)
	c.registry.registry, c.registry.steady = engine.RestoreRegistry(registry, [32]byte{}).Cut(), 2*time.Hour
	if err := writeSnapshot(&buffer, nil, c.writeLedger); err != nil {
		t.Fatal(err)
	}
	return &memoryJournal{sequence: 1, dropped: 1, snapshot: buffer.Bytes()}
}

// keyOf is the digest of an account's key.
func keyOf(id uint64) engine.Digest { return sha256.Sum256(binary.BigEndian.AppendUint64(nil, id)) }

func citizen(t testing.TB, id uint64) *engine.Account {
	account := engine.NewAccount(id)
	account.Apply(&engine.AccountCreated{Account: id, Email: mustEmail(t, fmt.Sprintf("somebody.%d@example.com", id)).ID(), At: noon})
	account.Apply(&engine.KeyCreated{Account: id, Key: engine.KeyRecord{
		ID: fmt.Sprintf("key_%016x", id), Name: "production", Hint: "abcd", Digest: keyOf(id), CreatedAt: noon,
	}})
	account.Apply(&engine.Leased{
		Account: id, Day: engine.DateOf(noon), Count: 16, Steady: time.Hour, KeyID: fmt.Sprintf("key_%016x", id), At: noon,
	})
	return account
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// What an account costs that was active today and is idle now, the address that it logs in with included.
func TestF9_Memory(t *testing.T) {
	accounts := 100_000
	if raceDetector {
		accounts /= 10
	}
	if *accountsLoaded > 0 {
		accounts = *accountsLoaded
	}
	journal := population(t, accounts)
	before := heapInUse()
	began := time.Now() //nolint:forbidigo // how long the start takes
	n := &node{t: t, clock: &testClock{now: noon}, steady: &testSteady{}, mail: newLetterbox()}
	n.config = Config{Clock: n.clock.read, Steady: n.steady.read}
	n.boot(journal)
	took := time.Since(began) //nolint:forbidigo // the same
	defer n.stop()
	each := (heapInUse() - before) / uint64(accounts)
	t.Logf("%d accounts: %d bytes each, started in %s", accounts, each, took)
	if !raceDetector && each > bytesPerAccountMax { // the race detector has costs of its own
		t.Errorf("%d bytes an account, at most %d", each, bytesPerAccountMax)
	}
	for id := uint64(1); id <= uint64(accounts); id += uint64(accounts) / 50 {
		if grant := n.admit(keyOf(id)); !grant.Admitted || grant.Account != id || grant.Day.Remaining != 1000-16-1 {
			t.Fatalf("account %d: %+v", id, grant)
		}
	}
	runtime.KeepAlive(journal)
}

// What an account costs in the process that it was active in: it has asked, and was put aside when it asked no more.
func TestF9_MemoryOfThoseWhoHaveAsked(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector has costs of its own")
	}
	accounts := 40_000 // a node without accounts takes some megabytes as well
	if *accountsLoaded > 0 {
		accounts = *accountsLoaded
	}
	journal := population(t, accounts)
	journal.before = func([][]byte) error { return nil }
	before := heapInUse()
	n := &node{t: t, clock: &testClock{now: noon}, steady: &testSteady{}, mail: newLetterbox()}
	n.config = Config{Clock: n.clock.read, Steady: n.steady.read, SnapshotRecords: 1 << 40, SnapshotBytes: 1 << 60}
	n.boot(journal)
	defer n.stop()
	for id := uint64(1); id <= uint64(accounts); id++ {
		if grant := n.admit(keyOf(id)); !grant.Admitted || grant.Account != id {
			t.Fatalf("account %d: %+v", id, grant)
		}
		if id%10_000 == 0 || id == uint64(accounts) {
			n.pass(2 * engine.MinuteSpan)
			n.sweepAll()
			journal.letGo()
		}
	}
	if living := n.tenants.living.Load(); living > int64(accounts/10) {
		t.Errorf("%d accounts have an actor still", living)
	}
	each := (heapInUse() - before) / uint64(accounts)
	t.Logf("%d accounts that have asked: %d bytes each", accounts, each)
	if each > bytesPerAccountMax {
		t.Errorf("%d bytes an account, at most %d", each, bytesPerAccountMax)
	}
	runtime.KeepAlive(journal)
}

// letGo forgets the records, which a real journal has on disk.
func (m *memoryJournal) letGo() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dropped += uint64(len(m.records))
	m.records = nil
}
