package collectors

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"

	"github.com/tasard/tasard/collectors/simulated"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

const realFile = "../../shared/data/observations.csv"

type contents struct {
	batches   []Batch
	refreshes []engine.Refresh
	rows      []Observation
	problems  []LineError
}

func readAll(r *Reader) (all contents, err error) {
	for err == nil {
		var batch Batch
		batch, err = r.Next()
		all.batches, all.problems = append(all.batches, batch), append(all.problems, batch.Errors...)
		for i, refresh := range batch.Refreshes {
			all.refreshes = append(all.refreshes, refresh)
			for j, o := range refresh.Observations {
				all.rows = append(all.rows, Observation{Observation: o, SourceID: refresh.SourceID, ObservedAt: refresh.ObservedAt, Line: batch.Lines[i][j]})
			}
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return all, err
}

func readText(t rapid.TB, text, name string) contents {
	t.Helper()
	r, err := OpenObservations(strings.NewReader(text), name)
	must(t, err)
	all, err := readAll(r)
	must(t, err)
	return all
}

func TestI1_RealFile(t *testing.T) {
	file, err := os.Open(realFile)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("%s is not there", realFile)
	}
	must(t, err)
	defer file.Close()
	r, err := OpenObservations(file, "observations.csv")
	must(t, err)
	all, err := readAll(r)
	must(t, err)
	if len(all.rows) != 20_575 || len(all.problems) != 0 || len(all.refreshes) != 7_002 {
		t.Fatalf("%d observations, %d malformed lines, %d refreshes; want 20575, 0, 7002",
			len(all.rows), len(all.problems), len(all.refreshes))
	}
	for i, row := range all.rows {
		if row.Line != i+2 {
			t.Fatalf("observation %d is said to be in line %d", i, row.Line)
		}
	}
	first := Observation{SourceID: "bcrd-reference", ObservedAt: instant("2019-01-02T21:30:00Z"), Line: 2, Observation: engine.Observation{
		InstitutionID: "bcrd", Currency: "USD", Channel: engine.Unspecified, Kind: engine.Reference,
		Buy: "50.2115", Sell: "50.2887", EffectiveDate: dateOf("2019-01-02"),
	}}
	if all.rows[0] != first {
		t.Errorf("first observation is %+v, want %+v", all.rows[0], first)
	}
	noise := func(o Observation) bool { return o.Sell == "60.849999999999994" }
	if !slices.ContainsFunc(all.rows, noise) {
		t.Error("the float noise of the workbooks did not arrive as text")
	}
}

func instant(text string) time.Time { return parsed(time.Parse(time.RFC3339Nano, text)).UTC() }

// parsed returns the value of a text that is right.
func parsed[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

const header = columns + "\n"

func TestReaderGroups(t *testing.T) {
	text := header +
		"2025-01-02T12:00:00Z,popular,USD,,,58,60,a,,\n" +
		"broken\n" +
		"2025-01-02T08:00:00-04:00,bhd,USD,,,58,60,a,,\n" + // the same instant
		"\n" +
		"2025-01-02T12:00:00Z,bhd,USD,,,58,60,b,,\n" +
		"2025-01-02T12:00:00Z,bhd,EUR,,,68,70,a,,\n" +
		"2025-01-02T12:00:01Z,bhd,EUR,,,68,70,a,,\n" +
		"also broken" // the last line has no end
	batch := readText(t, text, "x.csv").batches[0]
	var got []string
	for i, refresh := range batch.Refreshes {
		got = append(got, fmt.Sprint(refresh.SourceID, batch.Lines[i]))
	}
	for _, e := range batch.Errors {
		got = append(got, fmt.Sprint("error ", e.Line))
	}
	want := []string{"a[2 4]", "b[6]", "a[7]", "a[8]", "error 3", "error 9"}
	if !slices.Equal(got, want) {
		t.Errorf("refreshes %q, want %q", got, want)
	}
}

func TestReaderTolerates(t *testing.T) {
	csvLine := "2025-01-02T12:00:00Z,popular,USD,,,58,60,a,,"
	jsonLine := `{"observedAt":"2025-01-02T12:00:00Z","institutionId":"popular","currency":"USD","buy":"58","sell":"60","sourceId":"a"}`
	want := Observation{SourceID: "a", ObservedAt: instant("2025-01-02T12:00:00Z"), Observation: engine.Observation{
		InstitutionID: "popular", Currency: "USD", Buy: "58", Sell: "60", Channel: engine.Unspecified, Kind: engine.Commercial,
	}}
	tests := []struct {
		name, file, text string
		line             int
	}{
		{"byte order mark", "x.csv", "\uFEFF" + header + csvLine + "\n", 2},
		{"CRLF", "x.csv", columns + "\r\n" + csvLine + "\r\n", 2},
		{"no last line end", "x.CSV", header + csvLine, 2},
		{"blank lines", "x.csv", "\n \r\n" + header + "\n\t\n" + csvLine + "\n\n", 6},
		{"quoted", "x.csv", header + `"2025-01-02T12:00:00Z","popular",USD,"","",58,"60",a,,""` + "\n", 2},
		{"columns in another order", "x.csv", "sourceId,sell,buy,kind,channel,currency,institutionId,observedAt,publishedAt,effectiveDate\n" +
			"a,60,58,,,USD,popular,2025-01-02T12:00:00Z,,", 2},
		{"no extension, CSV", "-", header + csvLine, 2},
		{"no extension, NDJSON", "-", "\uFEFF\n" + jsonLine, 2},
		{"NDJSON", "x.ndjson", jsonLine + "\n\n", 1},
		{"NDJSON with nulls", "x.jsonl", strings.Replace(jsonLine, `{`, ` { "channel" : null,"kind":"","publishedAt":null, `, 1), 1},
		{"escapes", "x.ndjson", strings.Replace(jsonLine, `"popular"`, `"pop\u0075lar"`, 1), 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			want.Line = test.line
			all := readText(t, test.text, test.file)
			if len(all.problems) > 0 || len(all.rows) != 1 || all.rows[0] != want {
				t.Errorf("got %+v %v, want %+v", all.rows, all.problems, want)
			}
		})
	}
}

func TestReaderLimits(t *testing.T) {
	const start, end = "2025-01-02T12:00:00Z,popular,USD,,,", ",,a,,\n"
	fits := start + strings.Repeat("x", lineBytesMax-len(start)-len(end)) + end
	line := "2025-01-02T12:00:00Z,popular,USD,,,58,60,a,,\n"
	text := header + fits + strings.Repeat(line, refreshObservationsMax+1) + strings.Repeat("broken\n", 2*batchLinesMin)
	all := readText(t, text, "x.csv")
	if len(all.rows) != refreshObservationsMax+2 || len(all.refreshes) != 2 || len(all.problems) != 2*batchLinesMin || len(all.batches) < 3 {
		t.Errorf("%d observations in %d refreshes, %d problems, %d batches", len(all.rows), len(all.refreshes), len(all.problems), len(all.batches))
	}
	for _, b := range all.batches {
		if len(b.Errors) > batchLinesMin || b.Count > batchLinesMin+refreshObservationsMax {
			t.Errorf("%d problems and %d observations in one batch", len(b.Errors), b.Count)
		}
	}
	r, err := OpenObservations(strings.NewReader(header+line+strings.Replace(fits, "x", "xx", 1)), "x.csv")
	must(t, err)
	want := "read x.csv after line 2: a line is longer than 65536 bytes"
	if _, err = readAll(r); !errors.Is(err, bufio.ErrTooLong) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestReaderBrokenStream(t *testing.T) {
	boom := errors.New("disk on fire")
	text := header + "2025-01-02T12:00:00Z,popular,USD,,,58,60,a,,\nbroken\n2025-01-02T12:00:00Z,bhd,USD,,,58,60,a,,\n"
	r, err := OpenObservations(io.MultiReader(strings.NewReader(text), iotest.ErrReader(boom)), "x.csv")
	must(t, err)
	want := "read x.csv after line 4: disk on fire (the refresh that begins in line 2 may be cut short and is left out)"
	batch, err := r.Next()
	if len(batch.Refreshes)+batch.Count != 0 || len(batch.Errors) != 1 || !errors.Is(err, boom) || err.Error() != want {
		t.Errorf("got %+v, %v; want only the malformed line, and %s", batch, err, want)
	}
}

func TestOpenObservationsRefuses(t *testing.T) {
	const wanted = ", want exactly the columns " + columns + ", in any order, separated by commas"
	const text, book = "x.csv: line 1: found bytes that are not text, want text in UTF-8 without NUL", "x.csv: line 1: found a workbook or a zip file, want CSV or NDJSON; " +
		"save an old .xls as .xlsx first; import a workbook as a document of its source, such as --source bcrd-usd, or save it as CSV"
	tests := []struct{ name, text, want string }{
		{"empty", "", "read the header of x.csv: unexpected EOF: the file is empty, want the columns " + columns},
		{"missing", "\nkind,buy", `x.csv: line 2: found the header "kind,buy"` + wanted},
		{"unknown", "buy,Kind", `x.csv: line 1: found the header "buy,Kind"` + wanted},
		{"twice", "buy,buy", `x.csv: line 1: found the header "buy,buy"` + wanted},
		{"gzip", "\x1f\x8b\x00\x00", text},
		{"xlsx", "PK\x03\x04\x14", book},
		{"xls", "\xd0\xcf\x11\xe0\xa1", book},
		{"zeros", "a\x00", text},
		{"Latin 1", "a\xf1o", text},
		{"long", strings.Repeat("x", lineBytesMax+1), "read the header of x.csv: a line is longer than 65536 bytes; this is not an observation file: bufio.Scanner: token too long"},
		{"quote", `"buy`, `x.csv: line 1: found extraneous or missing " in quoted-field at position 5, want fields with quotes in quotes and each quote doubled, as "a ""b"""`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := OpenObservations(strings.NewReader(test.text), "x.csv")
			if err == nil || err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
	if _, err := OpenObservations(iotest.ErrReader(io.ErrClosedPipe), "x"); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a broken stream gave %v", err)
	}
}

func TestMalformedValues(t *testing.T) {
	const instants = ", want an RFC 3339 instant of the years 1900 to 2999, as 2025-05-17T13:29:03Z"
	const dates = ", want a calendar date of the years 1900 to 2999, as 2025-05-17"
	const control = ", want text without control characters and without U+FFFD, the mark of damaged text"
	const channels = ", want nothing or one of unspecified, branch, digital, cash, transfer"
	long := strings.Repeat("ñ", 81)
	type rule struct {
		column column
		want   string // behind what was found
	}
	type bad map[string]string // what is said to be found, by value; "" = the value in quotes
	for of, values := range map[rule]bad{
		{columnObservedAt, ", want a value"}: {"": "nothing"}, {columnInstitutionID, ", want a value"}: {"": "nothing"},
		{columnCurrency, ", want a value"}: {"": "nothing"}, {columnSourceID, ", want a value"}: {"": "nothing"},
		{columnObservedAt, instants}: {
			"2025-01-02": "", "2025-01-02 12:00:00Z": "", "2025-01-02T12:00:00": "", "2025-02-29T12:00:00Z": "", "2025-01-02T1:00:00Z": "",
			"2025-01-02T12:00:00,5Z": "", "2025-01-02T12:00:00.1234567891Z": "", "2025-01-02T12:00:00.Z": "", "2025-01-02T12:00:00+24:00": "",
			"2025-01-02T12:00:00z": "", "0205-01-02T12:00:00Z": "", "2999-12-31T23:00:00-04:00": "",
		},
		{columnPublishedAt, instants}:                                  {"yesterday": ""},
		{columnEffectiveDate, dates}:                                   {"2025-02-29": "", "02/01/2025": "", "0025-02-02": ""},
		{columnChannel, channels}:                                      {"sucursal": "", "Branch": ""},
		{columnKind, ", want nothing or one of commercial, reference"}: {"official": ""},
		{columnInstitutionID, ", want at most 80 characters"}:          {long: `"` + strings.Repeat("ñ", 32) + `" and 98 bytes more`},
		{columnSourceID, ", want at most 80 characters"}:               {strings.Repeat("s", 81): `"` + strings.Repeat("s", 64) + `" and 17 bytes more`},
		{columnBuy, control}:                                           {"5\t8": `"5\t8"`},
		{columnSell, control}:                                          {"6\uFFFD0": ""},
		{columnCurrency, control}:                                      {"US\x7f": `"US\x7f"`},
	} {
		for value, found := range values {
			fields := fields{
				columnObservedAt: "2025-01-02T12:00:00Z", columnInstitutionID: "popular", columnCurrency: "USD", columnChannel: "branch",
				columnKind: "commercial", columnBuy: "58", columnSell: "60", columnSourceID: "a",
			}
			fields[of.column] = value
			for _, format := range []Format{CSV, NDJSON} {
				all := readText(t, written(t, format, fields), "x."+string(format))
				want := fmt.Sprintf("x.%s: line 2, %s: found %s%s", format, of.column, cmp.Or(found, `"`+value+`"`), of.want)
				if len(all.rows) != 0 || len(all.problems) != 1 || all.problems[0].Error() != want {
					t.Errorf("%s %q:\ngot  %v\nwant %s", of.column, value, all.problems, want)
				}
			}
		}
	}
}

// written is a file whose second line holds the values, whatever they are.
func written(t *testing.T, format Format, values fields) string {
	t.Helper()
	var out strings.Builder
	w, err := NewWriter(&out, format)
	if format == NDJSON {
		out.WriteString("\n")
	}
	must(t, errors.Join(err, w.writeFields(values), w.Flush()))
	return out.String()
}

func TestMalformedCSV(t *testing.T) {
	const good = "2025-01-02T12:00:00Z,popular,USD,,,58,60,a,,"
	const doubled = `, want fields with quotes in quotes and each quote doubled, as "a ""b"""`
	tests := []struct{ line, want string }{
		{good + ",", "found 11 fields, want 10, as in the header"},
		{good[:len(good)-1], "found 9 fields, want 10, as in the header"},
		{strings.ReplaceAll(good, ",", ";"), "found 1 fields, want 10, as in the header"},
		{columns + "\r", "observedAt: found \"observedAt\", want an RFC 3339 instant of the years 1900 to 2999, as 2025-05-17T13:29:03Z"},
		{strings.Replace(good, "58", `5"8`, 1), `found bare " in non-quoted-field at position 37` + doubled},
		{strings.Replace(good, "58", `"5"8`, 1), `found extraneous or missing " in quoted-field at position 38` + doubled},
		{strings.Replace(good, "58", `"5""8`, 1), `found extraneous or missing " in quoted-field at position 48` + doubled},
		{good + `"`, `found extraneous or missing " in quoted-field at position 46` + doubled},
		{strings.Replace(good, "58", "5\x008", 1), "found bytes that are not text, want text in UTF-8 without NUL"},
		{strings.Replace(good, "popular", "pe\xf1a", 1), "found bytes that are not text, want text in UTF-8 without NUL"},
		{strings.Replace(good, "popular", "\u00f1a\xf1a", 1), "found bytes that are not text, want text in UTF-8 without NUL"},
	}
	for _, test := range tests {
		all := readText(t, header+good+"\n"+test.line+"\n"+good+"\n", "x.csv")
		checkMalformed(t, all, test.line, "x.csv: line 3", test.want)
	}
}

func TestMalformedNDJSON(t *testing.T) {
	const good = `{"observedAt":"2025-01-02T12:00:00Z","institutionId":"popular","currency":"USD","buy":"58","sell":"60","sourceId":"a"}`
	const quotes = `, want text in quotes, as "58.95", or null; numbers lose digits on their way`
	const object = ", want one JSON object"
	swap := func(old, with string) string { return strings.Replace(good, old, with, 1) }
	tests := []struct{ line, want string }{
		{swap(`"58"`, `58.95`), `buy: found "58.95"` + quotes},
		{swap(`"USD"`, `840`), `currency: found "840"` + quotes},
		{swap(`"58"`, `{"value":"58"}`), `buy: found "{\"value\":\"58\"}"` + quotes},
		{swap(`"buy"`, `"compra"`), `found the unknown key "compra", want no keys but ` + columns},
		{swap(`"buy"`, `"Buy"`), `found the unknown key "Buy", want no keys but ` + columns},
		{swap(`"sell":"60"`, `"buy":"59"`), "found a key twice, want each key once"},
		{swap(`"currency":"USD",`, ``), "currency: found nothing, want a value"},
		{swap(`"popular"`, `null`), "institutionId: found nothing, want a value"},
		{swap(`"58"`, `"\u0000"`), `buy: found "\x00", want text without control characters and without U+FFFD, the mark of damaged text`},
		{swap(`"58"`, `"\ud800"`), "buy: found \"\uFFFD\", want text without control characters and without U+FFFD, the mark of damaged text"},
		{good + good, "found no JSON: invalid character '{' after top-level value" + object},
		{good[:40], "found no JSON: unexpected end of JSON input" + object},
		{"x", "found no JSON: invalid character 'x' looking for beginning of value" + object},
		{`[]`, "found one array, want a JSON object"},
		{`null`, "observedAt: found nothing, want a value"},
		{strings.Repeat("[", 60_000), "found no JSON: invalid character '[' exceeded max depth" + object},
		{swap("USD", "U\x00D"), "found bytes that are not text, want text in UTF-8 without NUL"},
		{swap("USD", "U\xffD"), "found bytes that are not text, want text in UTF-8 without NUL"},
	}
	for _, test := range tests {
		all := readText(t, good+"\n\n"+test.line+"\n"+good+"\n", "x.ndjson")
		checkMalformed(t, all, test.line, "x.ndjson: line 3", test.want)
	}
}

// checkMalformed wants one problem between two good lines.
func checkMalformed(t *testing.T, all contents, line, place, want string) {
	t.Helper()
	separator := ": "
	if column, _, ok := strings.Cut(want, ": found"); ok && !strings.Contains(column, " ") {
		separator = ", "
	}
	want = place + separator + want
	if len(all.rows) != 2 || len(all.problems) != 1 {
		t.Errorf("%.200q: %d observations and problems %v", line, len(all.rows), all.problems)
	} else if got := all.problems[0].Error(); got != want {
		t.Errorf("%.200q:\ngot  %s\nwant %s", line, got, want)
	}
}

func TestWriter(t *testing.T) {
	rows := []Observation{
		{SourceID: "a,b", ObservedAt: instant("2025-01-02T12:00:00.5Z"), Line: 7, Observation: engine.Observation{
			InstitutionID: "bdi", Currency: "USD", Buy: `5"8`, EffectiveDate: dateOf("2025-01-02"),
			PublishedAt: instant("2025-01-02T11:59:00Z").In(engine.Location()), ExpiresAt: instant("2025-01-03T12:00:00Z"),
		}},
		{SourceID: "a", ObservedAt: instant("2025-01-02T12:00:00Z"), Observation: engine.Observation{
			InstitutionID: "bcrd", Currency: "EUR", Channel: engine.Branch, Kind: engine.Reference, Sell: "70",
		}},
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

func FuzzObservations(f *testing.F) {
	f.Add([]byte("2025-05-17T13:29:03Z,popular,USD,unspecified,commercial,58,60.5,infodolar,,\n"))
	f.Add([]byte("2025-05-17T13:29:03Z,\"po\"\"p\",USD,,,58,,x,2025-01-01,2025-05-17T13:29:03.5-04:00\r\n\r\nx"))
	f.Add([]byte("\uFEFFsell,buy" + header + "\x00\n\xff,\n\"\n"))
	f.Add([]byte(`{"observedAt":"2025-05-17T13:29:03Z","institutionId":"p","currency":"USD","buy":"58","sell":null,"sourceId":"a"}`))
	f.Add([]byte("{\"buy\":58}\n[]\n{\"buy\":\"1\",\"buy\":\"2\"}\r\n{}{}\n\n{\"x\":\"\\ud800\"}"))
	f.Add([]byte("\uFEFF{\"observedAt\":\"\"}\n\xff\n\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		checkAccounted(t, data, CSV)
		checkAccounted(t, append([]byte(header), data...), CSV)
		checkAccounted(t, append([]byte("{}\n"), data...), NDJSON)
	})
}

func decimal(text string) engine.Decimal { return parsed(engine.ParseDecimal(text)) }

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
			row(-60, "58.5", engine.PrecisionDay, today-9),     // the offer's value with another date
			row(-48, "58.5", engine.PrecisionUnknown, today-2), // the offer's value, before it was new
			row(0, "58.5", engine.PrecisionUnknown, today),
			row(24, "58.50", engine.PrecisionUnknown, today+1),
		},
		Quarantine: []engine.Quarantined{
			{ID: 1, SourceID: "bdi-site", ObservedAt: at(-73), Reason: engine.Jump,
				Observation: engine.Observation{InstitutionID: "bdi", Currency: "USD", Channel: engine.Branch, Buy: "57"}},
			{ID: 3, SourceID: "bdi-site", ObservedAt: at(-76), Reason: engine.OffMarket,
				Observation: engine.Observation{InstitutionID: "bdi", Currency: "USD", Channel: engine.Branch, Buy: "56"}},
			{ID: 2, SourceID: "bdi-site", ObservedAt: at(-74), Reason: engine.Zero,
				Observation: engine.Observation{InstitutionID: "bdi", Currency: "USD", Channel: engine.Branch, Buy: "0"}},
		},
	}
	var got []string
	for _, line := range Export([]engine.SavedCurrency{state}) {
		text := fmt.Sprintf("%d %s", int(line.ObservedAt.Sub(at(0))/time.Hour), line.Buy)
		if !line.PublishedAt.IsZero() {
			text += " published"
		}
		got = append(got, text)
	}
	if want := []string{"-76 56", "-73 57", "-72 57 published", "-60 58.5", "0 58.50", "24 58.50", "-48 58.5"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
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

// TestI3_MarketIsBelieved feeds a year to the engine: the demo must never run into its own firewall.
func TestI3_MarketIsBelieved(t *testing.T) {
	m, to := simulated.NewMarket(2), engine.DateOf(instant("2026-09-20T12:00:00Z"))
	refreshes := m.History(to.AddDays(1-sweep(60, 365)), to)
	for hour := range 24 {
		refreshes = append(refreshes, m.Refreshes((to + 1).Start().Add(time.Duration(hour)*time.Hour))...)
	}
	sources := simulated.Definitions(source.DefaultSet()).Sources()
	all := newTestEngine(t, engine.DefaultRules(), sources...).observeAll(refreshes, refreshes[len(refreshes)-1].ObservedAt)
	for code, book := range all.currencies {
		if len(book.Snapshot().Saved().SourceQuotes) == 0 {
			t.Errorf("no institution quotes %s", code)
		}
	}
}

// TestT5_Export wants a currency, exported and imported, to have the state that it had.
func TestT5_Export(t *testing.T) {
	m, to := simulated.NewMarket(3), engine.DateOf(instant("2026-09-20T12:00:00Z"))
	now := (to + 1).Start().Add(9 * time.Hour)
	refreshes := append(m.History(to-60, to), m.Refreshes(now)...)
	all := newTestEngine(t, engine.DefaultRules()).observeAll(refreshes, now)
	for _, currency := range []string{"USD", "EUR", "JPY"} {
		before := all.currencies[currency].Snapshot().Saved()
		imported := readText(t, writtenText(t, CSV, Export([]engine.SavedCurrency{before})), "x.csv").refreshes
		after := newTestEngine(t, engine.DefaultRules()).observeAll(imported, now).currencies[currency].Snapshot().Saved()
		if !slices.Equal(before.SourceQuotes, after.SourceQuotes) || !slices.Equal(before.History, after.History) {
			t.Errorf("%s is not the same after export and import", currency)
		}
		if len(before.History) < 40 {
			t.Errorf("%s has only %d rows of history", currency, len(before.History))
		}
	}
}
