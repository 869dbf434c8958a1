package collectors

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tasard/tasard/collectors/simulated"
	"github.com/tasard/tasard/engine"
)

func TestWriter(t *testing.T) {
	rows := []Observation{
		{
			SourceID: "a,b", ObservedAt: instant("2025-01-02T12:00:00.5Z"), Line: 7,
			Observation: engine.Observation{
				InstitutionID: "bdi", Currency: "USD", Buy: `5"8`, EffectiveDate: engine.DateOf(instant("2025-01-02T12:00:00Z")),
				PublishedAt: instant("2025-01-02T11:59:00Z").In(engine.Location()), ExpiresAt: instant("2025-01-03T12:00:00Z"),
			},
		},
		{
			SourceID: "a", ObservedAt: instant("2025-01-02T12:00:00Z"),
			Observation: engine.Observation{
				InstitutionID: "bcrd", Currency: "EUR", Channel: engine.Branch, Kind: engine.Reference, Sell: "70",
			},
		},
	}
	want := map[Format]string{
		CSV: header + `2025-01-02T12:00:00.5Z,bdi,USD,unspecified,commercial,"5""8",,"a,b",2025-01-02,2025-01-02T11:59:00Z` + "\n" +
			"2025-01-02T12:00:00Z,bcrd,EUR,branch,reference,,70,a,,\n",
		NDJSON: `{"observedAt":"2025-01-02T12:00:00.5Z","institutionId":"bdi","currency":"USD","channel":"unspecified",` +
			`"kind":"commercial","buy":"5\"8","sell":null,"sourceId":"a,b","effectiveDate":"2025-01-02","publishedAt":"2025-01-02T11:59:00Z"}` + "\n" +
			`{"observedAt":"2025-01-02T12:00:00Z","institutionId":"bcrd","currency":"EUR","channel":"branch",` +
			`"kind":"reference","buy":null,"sell":"70","sourceId":"a","effectiveDate":null,"publishedAt":null}` + "\n",
	}
	for format, text := range want {
		if got := writtenText(t, format, rows); got != text {
			t.Errorf("%s:\ngot  %s\nwant %s", format, got, text)
		}
	}
	if got := writtenText(t, CSV, nil) + writtenText(t, NDJSON, nil); got != header {
		t.Errorf("files without observations are %q", got)
	}
	if _, err := NewWriter(&strings.Builder{}, "xml"); err == nil {
		t.Error("a file without a format was begun")
	}
}

func writtenText(t rapid.TB, format Format, rows []Observation) string {
	t.Helper()
	var out strings.Builder
	w, err := NewWriter(&out, format)
	for _, row := range rows {
		err = errors.Join(err, w.Write(row))
	}
	if err = errors.Join(err, w.Flush()); err != nil {
		t.Fatalf("what was read is not written: %v", err)
	}
	return out.String()
}

// checkAccounted reads a file, wants each line accounted for, and the observations the same after writing and
// reading.
func checkAccounted(t *testing.T, data []byte, format Format) {
	r, err := OpenObservations(bytes.NewReader(data), "x")
	if err != nil {
		return
	}
	header := r.Lines()
	all, err := readAll(r)
	if err != nil && !errors.Is(err, bufio.ErrTooLong) {
		t.Fatalf("a stream that did not break gave %v", err)
	}
	if err != nil {
		return
	}
	lines := strings.Split(string(data), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if fault := findUnaccounted(lines, header, all); fault != "" {
		t.Fatal(fault)
	}
	if r.Lines() != len(lines) {
		t.Fatalf("%d lines counted of %d", r.Lines(), len(lines))
	}
	checkWritten(t, all.rows, format)
}

// findUnaccounted names the first line after the header that is neither blank nor one observation nor one error, ""
// when there is none.
func findUnaccounted(lines []string, header int, all contents) string {
	lastRow, lastError, used := 0, 0, map[int]bool{}
	for _, row := range all.rows {
		if row.Line <= lastRow {
			return fmt.Sprintf("line %d comes after line %d", row.Line, lastRow)
		}
		lastRow, used[row.Line] = row.Line, true
	}
	for _, problem := range all.problems {
		if problem.Line <= lastError || used[problem.Line] || problem.Found == "" || problem.Want == "" {
			return fmt.Sprintf("bad error %+v after line %d", problem, lastError)
		}
		lastError, used[problem.Line] = problem.Line, true
	}
	for i, line := range lines {
		if i == 0 {
			line = strings.TrimPrefix(line, byteOrderMark)
		}
		isBlank := strings.Trim(strings.TrimSuffix(line, "\r"), " \t") == ""
		if i >= header && used[i+1] == isBlank {
			return fmt.Sprintf("line %d, %q, was lost or invented", i+1, line)
		}
	}
	return ""
}

func checkWritten(t rapid.TB, rows []Observation, format Format) {
	t.Helper()
	if len(rows) == 0 {
		return
	}
	again := readText(t, writtenText(t, format, rows), "x."+string(format))
	if len(again.rows) != len(rows) || len(again.problems) > 0 {
		t.Fatalf("%d observations of %d came back: %v", len(again.rows), len(rows), again.problems)
	}
	for i, row := range again.rows {
		if row.Line = rows[i].Line; row != rows[i] {
			t.Fatalf("wrote %+v, read %+v", rows[i], row)
		}
	}
}

func FuzzCSV(f *testing.F) {
	f.Add([]byte(header + "2025-05-17T13:29:03Z,popular,USD,unspecified,commercial,58,60.5,infodolar,,\n"))
	f.Add([]byte(header + "2025-05-17T13:29:03Z,\"po\"\"p\",USD,,,58,,x,2025-01-01,2025-05-17T13:29:03.5-04:00\r\n\r\nx"))
	f.Add([]byte("\uFEFFsell,buy" + header + "\x00\n\xff,\n\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		checkAccounted(t, data, CSV)
		checkAccounted(t, append([]byte(header), data...), CSV)
	})
}

func FuzzNDJSON(f *testing.F) {
	f.Add([]byte(`{"observedAt":"2025-05-17T13:29:03Z","institutionId":"p","currency":"USD","buy":"58","sell":null,"sourceId":"a"}`))
	f.Add([]byte("{\"buy\":58}\n[]\n{\"buy\":\"1\",\"buy\":\"2\"}\r\n{}{}\n\n{\"x\":\"\\ud800\"}"))
	f.Add([]byte("\uFEFF{\"observedAt\":\"\"}\n\xff\n\x00"))
	f.Fuzz(func(t *testing.T, data []byte) { checkAccounted(t, data, NDJSON) })
}

func decimal(text string) engine.Decimal {
	d, err := engine.ParseDecimal(text)
	if err != nil {
		panic(err)
	}
	return d
}

// TestExport_Lines checks the lines of a small state: a value that was quarantined, then accepted, and later
// confirmed.
func TestExport_Lines(t *testing.T) {
	at := func(hour int) time.Time { return instant("2025-01-10T12:00:00Z").Add(time.Duration(hour) * time.Hour) }
	key := engine.QuoteKey{Institution: "bdi", Channel: engine.Branch, Kind: engine.Commercial}
	row := func(hour int, buy string, precision engine.DatePrecision, date engine.Date) engine.HistoryEntry {
		return engine.HistoryEntry{
			Date: date, InstitutionID: "bdi", Currency: "USD", Channel: engine.Branch, Kind: engine.Commercial,
			Buy: decimal(buy), SourceID: "bdi-site", DatePrecision: precision, ObservedAt: at(hour),
		}
	}
	today := engine.DateOf(at(0))
	state := engine.SavedCurrency{
		Currency: "USD",
		SourceQuotes: []engine.SourceQuote{{
			Key: key, SourceID: "bdi-site", Buy: decimal("58.50"),
			CollectedAt: at(0), LastCheckedAt: at(24), ExpiresAt: at(50),
		}},
		History: []engine.HistoryEntry{
			row(-72, "57", engine.PrecisionDatetime, today-3),  // another value
			row(-48, "58.5", engine.PrecisionUnknown, today-2), // the offer's value, before it was new
			row(0, "58.5", engine.PrecisionUnknown, today),
			row(24, "58.50", engine.PrecisionUnknown, today+1),
		},
		Quarantine: []engine.Quarantined{
			{ID: 1, SourceID: "bdi-site", ObservedAt: at(-73), Reason: engine.Jump,
				Observation: engine.Observation{InstitutionID: "bdi", Currency: "USD", Channel: engine.Branch, Buy: "57"}},
			{ID: 2, SourceID: "bdi-site", ObservedAt: at(-74), Reason: engine.Zero,
				Observation: engine.Observation{InstitutionID: "bdi", Currency: "USD", Channel: engine.Branch, Buy: "0"}},
		},
	}
	wantLines(t, "all", Export([]engine.SavedCurrency{state}), at, []string{"-73 57", "-72 57 published", "0 58.50", "24 58.50", "-48 58.5"})
}

// wantLines holds lines against "hours buy" and, where it is given, "published".
func wantLines(t *testing.T, what string, lines []Observation, at func(int) time.Time, want []string) {
	t.Helper()
	var got []string
	for _, line := range lines {
		text := fmt.Sprintf("%d %s", int(line.ObservedAt.Sub(at(0))/time.Hour), line.Buy)
		if !line.PublishedAt.IsZero() {
			text += " published"
		}
		got = append(got, text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// testEngine has the states of all currencies, as a node has them.
type testEngine struct {
	t          testing.TB
	catalogue  *engine.Catalogue
	currencies map[string]*engine.CurrencyState
}

func newTestEngine(t testing.TB, rules engine.Rules, sources ...engine.Source) *testEngine {
	l := &testEngine{t, engine.DefaultCatalogue().WithSources(sources...), map[string]*engine.CurrencyState{}}
	for _, currency := range l.catalogue.Currencies() {
		l.currencies[currency.Code] = engine.NewCurrencyState(currency.Code, l.catalogue, rules)
	}
	return l
}

func (l *testEngine) observe(refreshes []engine.Refresh, now time.Time) []engine.Refusal {
	l.t.Helper()
	parts, refused := engine.SplitByCurrency(l.catalogue, refreshes)
	for code, list := range parts {
		var own []engine.Refresh
		for _, part := range list {
			own = append(own, part.Refresh)
		}
		decided, err := l.currencies[code].Decide(engine.Observe{Refreshes: own}, now)
		if err != nil {
			l.t.Fatalf("%s: %v", code, err)
		}
		refused = append(refused, decided.Receipt.Refused...)
		for _, event := range decided.Events {
			l.currencies[code].Apply(event)
		}
	}
	return refused
}

// observeAll feeds them one after the other, and wants none refused.
func (l *testEngine) observeAll(refreshes []engine.Refresh, now time.Time) *testEngine {
	l.t.Helper()
	for _, refresh := range refreshes {
		for _, refusal := range l.observe([]engine.Refresh{refresh}, now) {
			l.t.Fatalf("%s %s %+v", refusal.Reason, refusal.Detail, refusal.Observation)
		}
	}
	return l
}

// TestT5_Export wants a currency, exported and imported, to have the state that it had.
func TestT5_Export(t *testing.T) {
	m, to := simulated.NewMarket(3), engine.DateOf(instant("2026-09-20T12:00:00Z"))
	now := (to + 1).Start().Add(9 * time.Hour)
	refreshes := append(m.History(to-60, to), m.Refreshes(now)...)
	all := newTestEngine(t, engine.DefaultRules()).observeAll(refreshes, now)
	for _, currency := range []string{"USD", "EUR", "JPY"} {
		before := all.currencies[currency].Saved()
		imported := readText(t, writtenText(t, CSV, Export([]engine.SavedCurrency{before})), "x.csv").refreshes
		after := newTestEngine(t, engine.DefaultRules()).observeAll(imported, now).currencies[currency].Saved()
		if !slices.Equal(before.SourceQuotes, after.SourceQuotes) || !slices.Equal(before.History, after.History) {
			t.Errorf("%s is not the same after export and import", currency)
		}
		if len(before.History) < 40 {
			t.Errorf("%s has only %d rows of history", currency, len(before.History))
		}
	}
}
