package record

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

var update = flag.Bool("update", false, "write golden records that do not exist yet; existing ones are never changed")

// TestGoldenRecords decodes and encodes a golden record of every event. Golden files are never changed; a new event
// or version adds files.
func TestGoldenRecords(t *testing.T) {
	for name, event := range samples() {
		path := filepath.Join("testdata", "golden-records", "v1-"+name+".hex")
		now := encoded(event)
		if _, err := os.Stat(path); *update && os.IsNotExist(err) {
			if err := os.WriteFile(path, []byte(hex.EncodeToString(now)+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		old := must(hex.DecodeString(strings.TrimSpace(string(must(os.ReadFile(path))))))
		got, err := new(Decoder).Event(old)
		if err != nil || !reflect.DeepEqual(got, event) {
			t.Errorf("%s reads as %+v, %v\nwant %+v", path, got, err, event)
		}
		if !bytes.Equal(now, old) {
			t.Errorf("%s: the same event is written differently today:\n%x\n%x", name, now, old)
		}
	}
}

func encoded(event any) []byte { return must(Encode(event)) }

// concat joins pieces of a record; strings are bytes in hex.
func concat(pieces ...any) []byte {
	var all []byte
	for _, piece := range pieces {
		if text, is := piece.(string); is {
			piece = must(hex.DecodeString(strings.ReplaceAll(text, " ", "")))
		}
		all = append(all, piece.([]byte)...)
	}
	return all
}

// TestEvent_Decoding decodes records of other writers and of newer programs, and invalid ones.
func TestEvent_Decoding(t *testing.T) {
	rejected := &engine.Rejected{Currency: "USD", QuarantineID: 5}
	shortSeal := &codec{writing: true}
	message(shortSeal, 14, &account.CodeIssued{Email: sampleEmail}, func(c *codec, e *account.CodeIssued) { codeIssuedFields(c, e); c.putBytes(6, []byte("short")) })
	for name, c := range map[string]struct {
		record []byte
		says   string // of the error; "": it reads as rejected
	}{
		"as written":              {concat("2a 07 0a 03 555344 10 05"), ""},
		"in another order":        {concat("2a 07 10 05 0a 03 555344"), ""},
		"the last one wins":       {concat("2a 09 10 09 0a 03 555344 10 05"), ""},
		"in two pieces":           {concat("2a 02 10 05 2a 05 0a 03 555344"), ""},
		"two events":              {concat("1a 00 2a 07 0a 03 555344 10 05"), ""},
		"a longer number":         {concat("2a 09 0a 03 555344 10 85 80 00"), ""},
		"version 1":               {concat("08 01 2a 07 0a 03 555344 10 05"), ""},
		"an unknown number":       {concat("2a 0a 0a 03 555344 f8 01 07 10 05"), ""},
		"an unknown text":         {concat("2a 0c 0a 03 555344 10 05 fa 01 02 6869"), ""},
		"unknown fixed ones":      {concat("2a 17 fd 01 00000000 f9 01 0000000000000000 0a 03 555344 10 05"), ""},
		"an unknown group":        {concat("2a 0d fb 01 0a 00 fc 01 0a 03 555344 10 05"), ""},
		"nothing":                 {nil, "unknown kind (0 bytes): written by a newer"},
		"another kind":            {concat("f2 07 00"), "written by a newer"},
		"a newer version":         {concat("08 02 2a 02 10 05"), "version 2, known up to 1: written by a newer"},
		"a bundle":                {concat("aa 01 00"), "written by a newer"},
		"a newer channel":         {concat("1a 02 20 06"), "channel 6: written by a newer"},
		"cut in a number":         {concat("2a 02 10 85"), "field 2 at byte 3: unexpected EOF"},
		"cut in a text":           {concat("2a 04 0a 03 5553"), "field 1 at byte 4: unexpected EOF"},
		"cut in an event":         {concat("2a 07 0a 03 5553"), "field 5 at byte 2: unexpected EOF"},
		"cut in a fixed one":      {concat("2a 04 fd 01 0000"), "unexpected EOF"},
		"cut in a group":          {concat("2a 03 fb 01 0a"), "unexpected EOF"},
		"eleven bytes":            {concat("2a 0c 10 80808080808080808080 01"), "integer overflow"},
		"a length without end":    {concat("2a 0b 0a ffffffffffffffffff 01"), "unexpected EOF"},
		"a text as a number":      {concat("2a 03 12 01 05"), "wire type"},
		"a number as a text":      {concat("2a 02 08 05"), "wire type"},
		"field 0":                 {concat("2a 02 00 05"), "invalid field number"},
		"the end of no group":     {concat("2a 02 fc 01"), "mismatching end group"},
		"wire type 7":             {concat("2a 02 ff 01"), "reserved wire type"},
		"a date of year 10,000":   {concat("4a 05 10 dc f3 de 01"), "date 3652060"},
		"a long second":           {concat("2a 06 20 80 94 eb dc 03"), "1000000000 nanoseconds"},
		"no decimal":              {concat("22 05 4a 03 22 01 78"), "not a decimal"},
		"no address":              {concat("32 02 08 01"), "field 2 at byte 4: missing field"},
		"empty address":           {concat("32 04 08 01 12 00"), "field 1 at byte 6: missing field"},
		"short digest":            {concat("92 01 07 0a 05 73686f7274"), "a digest of 5 bytes"},
		"no digest":               {concat("92 01 00"), "missing field"},
		"no key":                  {concat("3a 02 08 01"), "missing field"},
		"negative count":          {encoded(&account.Leased{Account: 1, Count: -1}), "field 3 at byte 15: a count of -1"},
		"negative monotonic time": {encoded(&account.Leased{Account: 1, Monotonic: -1}), "a monotonic time of -1"},
		"large allowance":         {encoded(&account.QuotaSet{Account: 1, Quota: account.Quota{Day: 1 << 40}}), "a count of"},
		"no such node":            {concat("4a 06 08 01 50 80 80 04"), "a node 65536"},
		"short seal":              {shortSeal.bytes, "a digest of 5 bytes"},
	} {
		got, err := new(Decoder).Event(c.record)
		switch {
		case c.says == "" && (err != nil || !reflect.DeepEqual(got, rejected)):
			t.Errorf("%s reads as %+v, %v", name, got, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s reads as %+v, %v, want %q", name, got, err, c.says)
		case strings.Contains(c.says, "newer") != errors.Is(err, ErrUnknown):
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Encode(7); err == nil {
		t.Error("a number is encoded")
	}
}

func TestAccount_LeasesInOrder(t *testing.T) {
	state := sampleAccount()
	for _, leases := range [][]account.LeaseState{
		{{Node: 2, Count: 1}, {Node: 1, Count: 1}}, {{Node: 2, Count: 1}, {Node: 2, Count: 1}}, {{Node: 2, Count: 1}, {Count: 1}},
		{{RecentAdmitted: 1}}, {{Node: 1, Unspent: 1}}, {{Node: 1, RecentAdmitted: -1}},
	} {
		state.Leases = leases
		if read, err := new(Decoder).Account(body(state)); err == nil {
			t.Errorf("%+v reads as %+v", leases, read)
		}
	}
}

func TestBundles(t *testing.T) {
	d, single := new(Decoder), encoded(samples()["rejected"])
	bundle := Bundle{Node: 3, Token: 1 << 63, Records: [][]byte{single, {}, single}}
	record := encoded(&bundle)
	if got, err := d.Bundle(record); err != nil || !reflect.DeepEqual(got, bundle) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, _, err := d.Events(record); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "record 1 of a bundle") {
		t.Errorf("a bundle with nothing in it: %v", err)
	}
	if _, events, err := d.Events(encoded(&Bundle{Records: [][]byte{single, single}})); err != nil || len(events) != 2 {
		t.Errorf("%v, %v", events, err)
	}
	for name, record := range map[string][]byte{
		"a newer one": concat(record, "08 02"), "another event": concat(record, single), "a node": concat("aa 01 04 08 80 80 04"), "cut": record[:20],
	} {
		if got, err := d.Bundle(record); err == nil {
			t.Errorf("%s reads as %+v", name, got)
		}
	}
}

// TestInstants encodes instants beyond the range of 64 bits of nanoseconds too.
func TestInstants(t *testing.T) {
	for _, at := range []time.Time{
		{}, time.Unix(0, 0).UTC(), time.Unix(0, 1).UTC(), time.Time{}.Add(1), time.Time{}.Add(-1), sampleTime,
		time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), time.Date(-300, 1, 1, 0, 0, 0, 5, time.UTC),
	} {
		event := &engine.Rejected{At: at}
		if got, err := new(Decoder).Event(encoded(event)); err != nil || !reflect.DeepEqual(got, event) {
			t.Errorf("%s reads as %+v, %v", at, got, err)
		}
	}
}

// TestEventsDoNotAliasTheirRecord decodes events, which must stay as they are after the input is overwritten.
func TestEventsDoNotAliasTheirRecord(t *testing.T) {
	d := new(Decoder)
	for name, event := range samples() {
		record := encoded(event)
		_, decoded, err := d.Events(record)
		if err != nil {
			t.Fatal(err)
		}
		clear(record)
		if !reflect.DeepEqual(decoded, []any{event}) {
			t.Fatalf("%s: %+v, want %+v", name, decoded, event)
		}
	}
}

func FuzzRecord(f *testing.F) {
	for _, event := range samples() {
		f.Add(encoded(event))
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		event, err := new(Decoder).Event(record)
		if err != nil {
			return
		}
		back, err := new(Decoder).Event(encoded(event))
		if err != nil || !reflect.DeepEqual(back, event) {
			t.Fatalf("%+v, %v\nwas %+v", back, err, event)
		}
	})
}

// readSnapshot is a decoded snapshot, with accounts.
type readSnapshot struct {
	*Snapshot
	accounts []account.State
}

func readAll(from io.Reader) (readSnapshot, error) {
	var all readSnapshot
	var err error
	all.Snapshot, err = new(Decoder).Snapshot(from, func(state account.State) error {
		state.Record.Keys, state.Days, state.Leases = slices.Clone(state.Record.Keys), slices.Clone(state.Days), slices.Clone(state.Leases)
		all.accounts = append(all.accounts, state)
		return nil
	})
	if err == nil {
		sortAddresses(all.Registry)
	}
	return all, err
}

// sortAddresses sorts addresses, which are written in any order.
func sortAddresses(state account.RegistryState) {
	slices.SortFunc(state.Addresses, func(a, b *account.AddressState) int {
		digestA, digestB := a.Email.Digest(), b.Email.Digest()
		return bytes.Compare(digestA[:], digestB[:])
	})
}

// body is an account as in a snapshot.
func body(account account.State) []byte {
	return AppendAccount(nil, &account)
}

// written is an encoded snapshot with lists of the given length, and its expected contents.
func written(t testing.TB, many int) ([]byte, readSnapshot) {
	registry := sampleRegistry(many).Snapshot()
	sortAddresses(registry)
	want := readSnapshot{Snapshot: &Snapshot{
		Currencies: []engine.SavedCurrency{sampleCurrency("EUR", 0), sampleCurrency("USD", many)}, Registry: registry, KeyPolicy: sampleKeyPolicy, Monotonic: time.Hour,
		Grants: slices.Repeat([]account.DayGrant{{Shard: 1, Shards: 16, Day: sampleDay, Size: 16, Until: time.Hour}}, many), GrantsClosedUntil: sampleDay - 9,
	}, accounts: slices.Repeat([]account.State{sampleAccount()}, many)}
	var buffer bytes.Buffer
	w := NewSnapshotWriter(&buffer)
	for _, book := range want.Currencies {
		w.Currency(book)
	}
	w.Accounts(slices.Repeat([][]byte{body(sampleAccount())}, many))
	w.Grants(want.Grants, want.GrantsClosedUntil)
	w.Registry(*want.Snapshot)
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
		"2 parts, want 1":                  concat(one(part{}), one(part{}), end),
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
		state, err := new(Decoder).Account(data)
		if err != nil {
			return
		}
		if back, err := new(Decoder).Account(body(state)); err != nil || !reflect.DeepEqual(back, state) {
			t.Fatalf("%+v, %v\nwas %+v", back, err, state)
		}
	})
}
