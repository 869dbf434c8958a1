package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// readSnapshot is a decoded snapshot, with accounts.
type readSnapshot struct {
	*Snapshot
	accounts []account.State
}

func readAll(from io.Reader) (readSnapshot, error) {
	var all readSnapshot
	var err error
	all.Snapshot, err = NewDecoder().Snapshot(from, func(state account.State) error {
		state.Record.Keys, state.Days, state.Leases = slices.Clone(state.Record.Keys), slices.Clone(state.Days), slices.Clone(state.Leases)
		all.accounts = append(all.accounts, state)
		return nil
	})
	if err == nil { // they are written in any order
		slices.SortFunc(all.Registry.Addresses, func(a, b account.AddressState) int {
			digestA, digestB := a.Email.Digest(), b.Email.Digest()
			return bytes.Compare(digestA[:], digestB[:])
		})
	}
	return all, err
}

// body is an account as in a snapshot.
func body(account account.State) []byte {
	return AppendAccount(nil, &account)
}

// written is an encoded snapshot with lists of the given length, and its expected contents.
func written(t testing.TB, many int) ([]byte, readSnapshot) {
	registry := sampleRegistry(many)
	cut := registry.Snapshot()
	want := readSnapshot{Snapshot: &Snapshot{
		Currencies: []engine.SavedCurrency{sampleCurrency("EUR", 0), sampleCurrency("USD", many)}, Registry: cut.State(), KeyPolicy: sampleKeyPolicy, Monotonic: time.Hour,
		Grants: slices.Repeat([]account.DayGrant{{Shard: 1, Shards: 16, Day: sampleDay, Size: 16, Until: time.Hour}}, many), GrantsClosedUntil: sampleDay - 9,
	}, accounts: slices.Repeat([]account.State{sampleAccount()}, many)}
	var buffer bytes.Buffer
	w := NewSnapshotWriter(&buffer)
	for _, book := range want.Currencies {
		w.Currency(book)
	}
	w.Accounts(slices.Values(slices.Repeat([][]byte{body(sampleAccount())}, many)))
	w.Grants(want.Grants, want.GrantsClosedUntil)
	w.Registry(&cut, want.KeyPolicy, want.Monotonic)
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes(), want
}

func TestSnapshotReadsAsWritten(t *testing.T) {
	for _, many := range []int{1, partItemsMax, 3*partItemsMax + 1} {
		whole, want := written(t, many)
		if got, err := readAll(iotest.HalfReader(bytes.NewReader(whole))); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%d of each, %v: another state is read: %+v\nwant %+v", many, err, got.Snapshot, want.Snapshot)
		}
	}
	whole, _ := written(t, 1)
	for cut := range len(whole) {
		if _, err := readAll(bytes.NewReader(whole[:cut])); err == nil {
			t.Fatalf("the first %d of %d bytes read as a whole snapshot", cut, len(whole))
		}
	}
}

// TestSnapshot_LargeBaselines writes slots whose baselines would not fit into one part.
func TestSnapshot_LargeBaselines(t *testing.T) {
	state := engine.SavedCurrency{Currency: "USD"}
	for i := range 2*partSlotsMax + 1 {
		state.Slots = append(state.Slots, engine.AnsweredSlot{SourceID: fmt.Sprint(i), Slot: sampleTime, Baseline: strings.Repeat("b", engine.BaselineBytesMax)})
	}
	var buffer bytes.Buffer
	w := NewSnapshotWriter(&buffer)
	w.Currency(state)
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	if got, err := readAll(&buffer); err != nil || !reflect.DeepEqual(got.Currencies, []engine.SavedCurrency{state}) {
		t.Errorf("%v: another state is read", err)
	}
}

func TestSnapshot_Refused(t *testing.T) {
	one := func(p part) []byte {
		c := &codec{writing: true}
		if p.state == nil {
			p.state = &Snapshot{}
		}
		lengthPrefixed(c, &p, partFields)
		return c.bytes
	}
	end := one(part{last: true, parts: 1})
	for says, data := range map[string][]byte{
		"0 parts, want 1":                  end,
		"bytes after the last part":        concat(one(part{}), end, "00"),
		"format version 4":                 concat(one(part{requires: 4}), end),
		"field 2 at byte 5: missing field": concat(one(part{state: &Snapshot{Grants: []account.DayGrant{{Shard: 1}}}}), end),
		"at most 4194304":                  concat("ffffffff 0f"),
		"decode part 0 of the snapshot":    concat(one(part{accounts: [][]byte{{0xff}}}), end),
		"65536 events in a minute":         concat("09 6a 07 0a 05 0a 03 808004", end),
		"more than 61 minutes":             concat("44 6a 42 0a 40 0a 3e", bytes.Repeat([]byte{1}, 62), end),
		"newest minute -1":                 concat(one(part{hasRegistry: true, state: &Snapshot{Registry: account.RegistryState{WrongTries: account.HourCounter{Newest: -1}}}}), end),
		"unexpected EOF":                   nil,
	} {
		if _, err := readAll(bytes.NewReader(data)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	from, to := io.Pipe()
	if err := from.Close(); err != nil {
		t.Fatal(err)
	}
	w := NewSnapshotWriter(to)
	w.Currency(engine.SavedCurrency{})
	if err := w.End(); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a writer that fails: %v", err)
	}
}

func FuzzSnapshot(f *testing.F) {
	whole, _ := written(f, 1)
	f.Add(whole)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, snapshot []byte) {
		found, err := readAll(bytes.NewReader(snapshot))
		if err != nil {
			return
		}
		var buffer bytes.Buffer
		w := NewSnapshotWriter(&buffer)
		for _, book := range found.Currencies {
			w.Currency(book)
		}
		if err := w.End(); err != nil {
			t.Fatal(err)
		}
		back, err := readAll(&buffer)
		if err != nil || !reflect.DeepEqual(back.Currencies, found.Currencies) {
			t.Fatalf("%+v, %v\nwas %+v", back.Currencies, err, found.Currencies)
		}
	})
}

func FuzzAccount(f *testing.F) {
	f.Add(body(sampleAccount()))
	f.Fuzz(func(t *testing.T, data []byte) {
		state, err := NewDecoder().Account(data)
		if err != nil {
			return
		}
		if back, err := NewDecoder().Account(body(state)); err != nil || !reflect.DeepEqual(back, state) {
			t.Fatalf("%+v, %v\nwas %+v", back, err, state)
		}
	})
}
