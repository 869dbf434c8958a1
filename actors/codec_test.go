package actors

import (
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

var update = flag.Bool("update", false, "write golden records that do not exist yet; existing ones are never changed")

func decimal(text string) engine.Decimal {
	d, err := engine.ParseDecimal(text)
	if err != nil {
		panic(err)
	}
	return d
}

// sampleEvents is one of every event, with and without what may be absent.
func sampleEvents() map[string]engine.Event {
	key := engine.QuoteKey{Institution: "popular", Channel: engine.Branch, Kind: engine.Commercial}
	day, _ := engine.ParseDate("2026-06-17")
	quoted := engine.Quoted{
		Key: key, Buy: decimal("57.10"), Sell: decimal("60"), EffectiveDate: day, PublishedAt: noon.Add(-time.Hour + 7*time.Nanosecond),
		ExpiresAt: noon.Add(26 * time.Hour), Backfill: true,
	}
	bare := engine.Quoted{
		Key:  engine.QuoteKey{Institution: "bcrd", Channel: engine.Unspecified, Kind: engine.Reference},
		Sell: decimal("0.00000001"), ExpiresAt: time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
	}
	held := engine.Held{
		ID: 7, SourceID: "infodolar", ObservedAt: noon, Reason: engine.Jump, Detail: "sell 6.09 moved too far",
		Observation: engine.Observation{
			InstitutionID: "bhd", Currency: "USD", Channel: engine.Transfer, Kind: engine.Commercial, Buy: "", Sell: "6.09\xc3",
			EffectiveDate: day, PublishedAt: noon, ExpiresAt: time.Unix(0, 0).UTC(),
		},
	}
	documented := held
	documented.ID, documented.Reason, documented.Observation.Document = 8, engine.SameSides, strings.Repeat("5e", 32)
	return map[string]engine.Event{
		"refreshed-slot": &engine.Refreshed{
			Currency: "USD", SourceID: "bhd-site", ObservedAt: noon, Priority: 100, Slot: noon.Add(-time.Minute + 7*time.Nanosecond),
			Currencies: 3,
			Held:       []engine.Held{documented},
		},
		"refreshed": &engine.Refreshed{
			Currency: "USD", SourceID: "infodolar", ObservedAt: noon.Add(123456789), Priority: -5, Manual: true, UpstreamSource: "bhd",
			Quotes: []engine.Quoted{quoted, bare}, Held: []engine.Held{held},
		},
		"refreshed-typed": &engine.Refreshed{
			Currency: "USD", SourceID: "manual", ObservedAt: noon, Manual: true, By: "uid 0 (root), as ana", Quotes: []engine.Quoted{bare},
		},
		"refreshed-empty": &engine.Refreshed{Currency: "EUR", SourceID: "a", ObservedAt: noon},
		"withdrawn":       &engine.Withdrawn{Currency: "USD", SourceID: "manual", Key: key, At: noon, By: "ana"},
		"released": &engine.Released{
			Currency: "USD", HeldID: 7, SourceID: "infodolar", ObservedAt: noon, Priority: 100, UpstreamSource: "x", Quote: quoted, At: noon, By: "ana",
		},
		"rejected": &engine.Rejected{Currency: "USD", HeldID: 1 << 40, At: noon, By: "José"},
	}
}

// Golden records of every event, for ever: what an old node wrote must be read. A new event or version
// adds files; a file that exists is never written again.
func TestGoldenRecords(t *testing.T) {
	for name, event := range allSampleEvents(t) {
		path := filepath.Join("testdata", "golden-records", "v1-"+name+".hex")
		encoded, err := encodeEvent(event)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); *update && os.IsNotExist(err) {
			if err := os.WriteFile(path, []byte(hex.EncodeToString(encoded)+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		old, err := hex.DecodeString(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := newDecoder().decodeEvent(old)
		if err != nil || !reflect.DeepEqual(got, event) {
			t.Errorf("%s reads as %+v, %v\nwant %+v", path, got, err, event)
		}
		if !bytes.Equal(encoded, old) {
			t.Errorf("%s: the same event is written differently today:\n%x\n%x", name, encoded, old)
		}
	}
}

func TestDescribeRecord(t *testing.T) {
	record, err := encodeEvent(sampleEvents()["withdrawn"])
	if err != nil {
		t.Fatal(err)
	}
	line, err := DescribeRecord(record)
	want := `{"event":"withdrawn","currency":"USD","sourceId":"manual","quote":{"institutionId":"popular","channel":"branch","kind":"commercial"},` +
		`"at":"2026-06-17T16:00:00Z","by":"ana"}`
	if err != nil || line != want {
		t.Errorf("%s, %v\nwant %s", line, err, want)
	}
	for name, event := range sampleEvents() {
		record, err := encodeEvent(event)
		if err != nil {
			t.Fatal(err)
		}
		if line, err := DescribeRecord(record); err != nil || strings.Contains(line, "\n") || !strings.Contains(line, strings.Split(name, "-")[0]) {
			t.Errorf("%s: %s, %v", name, line, err)
		}
	}
	slot, err := encodeEvent(sampleEvents()["refreshed-slot"])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"slot":"2026-06-17T15:59:00.000000007Z"`, `"document":"` + strings.Repeat("5e", 32) + `"`, `"reason":"same_sides"`} {
		if line, err := DescribeRecord(slot); err != nil || !strings.Contains(line, want) {
			t.Errorf("%s, %v lacks %s", line, err, want)
		}
	}
	if _, err := DescribeRecord([]byte{0xff}); err == nil {
		t.Error("garbage is described")
	}
}

// Every instant, also those that 64 bits of nanoseconds do not reach, is read as it was written.
func TestInstants(t *testing.T) {
	for _, at := range []time.Time{
		{}, time.Unix(0, 0).UTC(), time.Unix(0, 1).UTC(), time.Time{}.Add(1), time.Time{}.Add(-1), noon,
		time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), time.Date(-300, 1, 1, 0, 0, 0, 5, time.UTC),
	} {
		d := newDecoder()
		if got := d.instant(instant(at)); !reflect.DeepEqual(got, at) || d.err != nil {
			t.Errorf("%s reads as %s, %v", at, got, d.err)
		}
	}
}

// sampleBoards are boards with some of everything: offers, suspects, rows, quarantine.
func sampleBoards(t testing.TB) []*engine.Board {
	s := start(t, Config{Journal: &memoryJournal{}})
	for i := range 300 {
		at := noon.AddDate(0, 0, i-300)
		dollars := saying("a", at, "USD", "57", "60", "popular", "bhd")
		dollars.Slot = at
		observe(t, s, dollars, saying("b", at, "EUR", "", "68", "popular"))
	}
	for i := range 5 {
		observe(t, s, saying("a", noon.Add(time.Duration(i)*time.Minute), "USD", "52", "54", "popular"), saying("d", noon, "USD", "0", "48", "caribe"))
	}
	boards, err := s.boards()
	if err != nil {
		t.Fatal(err)
	}
	return boards
}

func TestSnapshotReadsAsWritten(t *testing.T) {
	boards := sampleBoards(t)
	var buffer bytes.Buffer
	if err := writeSnapshot(&buffer, boards); err != nil {
		t.Fatal(err)
	}
	got, err := newDecoder().readSnapshot(bytes.NewReader(buffer.Bytes()))
	if err != nil || len(got) != len(boards) {
		t.Fatalf("%d books, %v", len(got), err)
	}
	suspects, slots := 0, 0
	for i, board := range boards {
		want := normal([]engine.BookState{board.State()})[0]
		suspects, slots = suspects+len(want.Suspects), slots+len(want.Slots)
		if !reflect.DeepEqual(got[i], want) {
			t.Errorf("%s reads as another state", want.Currency)
		}
	}
	if suspects == 0 || slots == 0 {
		t.Error("the sample has no suspects, or no slots")
	}
	whole := buffer.Bytes()
	for cut := range len(whole) {
		if cut > 300 && cut < len(whole)-300 && cut%97 != 0 {
			continue
		}
		if _, err := newDecoder().readSnapshot(bytes.NewReader(whole[:cut])); err == nil {
			t.Fatalf("the first %d of %d bytes read as a whole snapshot", cut, len(whole))
		}
	}
	if _, err := newDecoder().readSnapshot(bytes.NewReader(append(whole, 0))); err == nil {
		t.Error("a byte behind the end goes unseen")
	}
}

func FuzzRecord(f *testing.F) {
	for _, event := range allSampleEvents(f) {
		record, err := encodeEvent(event)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(record)
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		event, err := newDecoder().decodeEvent(record)
		if err != nil {
			return
		}
		again, err := encodeEvent(event)
		if err != nil {
			t.Fatalf("encode what was decoded: %v", err)
		}
		back, err := newDecoder().decodeEvent(again)
		if err != nil || !reflect.DeepEqual(back, event) {
			t.Fatalf("%+v, %v\nwas %+v", back, err, event)
		}
		if _, err := DescribeRecord(record); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzSnapshot(f *testing.F) {
	var buffer bytes.Buffer
	book := engine.NewBook("USD", engine.DefaultCatalogue(), engine.DefaultRules())
	for _, event := range sampleEvents() {
		if event.CurrencyCode() == "USD" {
			book.Apply(event)
		}
	}
	if err := writeSnapshot(&buffer, []*engine.Board{book.Board()}); err != nil {
		f.Fatal(err)
	}
	f.Add(buffer.Bytes())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, snapshot []byte) {
		states, err := newDecoder().readSnapshot(bytes.NewReader(snapshot))
		if err != nil {
			return
		}
		w := &partWriter{to: &bytes.Buffer{}}
		for _, state := range states {
			w.book(state)
		}
		w.write(&SnapshotPart{Last: true, Parts: w.count})
		back, err := newDecoder().readSnapshot(w.to.(*bytes.Buffer))
		if w.err != nil || err != nil || !reflect.DeepEqual(back, states) {
			t.Fatalf("%+v, %v, %v\nwas %+v", back, err, w.err, states)
		}
	})
}
