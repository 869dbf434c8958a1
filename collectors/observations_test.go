package collectors

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/tasard/tasard/engine"
)

const realFile = "../../shared/data/observations.csv"

// contents is all that a file gave.
type contents struct {
	batches  []Batch
	rows     []Observation
	problems []LineError
}

// readAll reads to the end; the error is whatever ended it before.
func readAll(r *Reader) (contents, error) {
	var all contents
	for {
		batch, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all.batches = append(all.batches, batch)
		all.problems = append(all.problems, batch.Errors...)
		for i, o := range batch.Refresh.Observations {
			all.rows = append(all.rows, Observation{
				Observation: o, SourceID: batch.Refresh.SourceID,
				ObservedAt: batch.Refresh.ObservedAt, Line: batch.Lines[i],
			})
		}
	}
}

func readText(t *testing.T, text, name string) contents {
	t.Helper()
	r, err := OpenObservations(strings.NewReader(text), name, AnyFormat)
	if err != nil {
		t.Fatal(err)
	}
	all, err := readAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if r.Bytes() != int64(len(text)) {
		t.Errorf("%d bytes read of %d", r.Bytes(), len(text))
	}
	return all
}

func readReal(t *testing.T) contents {
	t.Helper()
	file, err := os.Open(realFile)
	if err != nil {
		t.Skipf("%s is not there", realFile)
	}
	defer file.Close()
	r, err := OpenObservations(file, "observations.csv", AnyFormat)
	if err != nil {
		t.Fatal(err)
	}
	all, err := readAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestI1_RealFile(t *testing.T) {
	all := readReal(t)
	if len(all.rows) != 20_575 || len(all.problems) != 0 || len(all.batches) != 7_002 {
		t.Fatalf("%d observations, %d malformed lines, %d refreshes; want 20575, 0, 7002",
			len(all.rows), len(all.problems), len(all.batches))
	}
	for i, row := range all.rows {
		if row.Line != i+2 {
			t.Fatalf("observation %d is said to be in line %d", i, row.Line)
		}
	}
	first := Observation{
		Observation: engine.Observation{
			InstitutionID: "bcrd", Currency: "USD", Channel: engine.Unspecified, Kind: engine.Reference,
			Buy: "50.2115", Sell: "50.2887", EffectiveDate: engine.DateOf(instant("2019-01-02T21:30:00Z")),
		},
		SourceID: "bcrd-reference", ObservedAt: instant("2019-01-02T21:30:00Z"), Line: 2,
	}
	if all.rows[0] != first {
		t.Errorf("first observation is %+v, want %+v", all.rows[0], first)
	}
	noise := func(o Observation) bool { return o.Sell == "60.849999999999994" }
	if !slices.ContainsFunc(all.rows, noise) {
		t.Error("the float noise of the workbooks did not arrive as text")
	}
}

// TestRefreshSizes measures how the number of quotes of a source behaves from one refresh to the next, which is what the
// rule against thin refreshes (I3) judges. Run it with -v for the figures.
func TestRefreshSizes(t *testing.T) {
	last := map[string]engine.Refresh{}
	worst := map[string]string{}
	drop := map[string]int{}
	thin := 0
	for _, batch := range readReal(t).batches {
		now := batch.Refresh
		before, known := last[now.SourceID]
		last[now.SourceID] = now
		gap := now.ObservedAt.Sub(before.ObservedAt)
		if !known || gap > engine.LifetimeDefault {
			continue
		}
		from, to := len(before.Observations), len(now.Observations)
		step := fmt.Sprintf("%d to %d on %s", from, to, engine.DateOf(now.ObservedAt))
		if from-to > drop[now.SourceID] {
			drop[now.SourceID], worst[now.SourceID] = from-to, step
		}
		if 2*to < from {
			thin++
			t.Logf("more than half lost: %s %s after %s", now.SourceID, step, gap)
		}
	}
	for source := range last {
		t.Logf("largest drop of %s: %d (%s)", source, drop[source], worst[source])
	}
	if len(last) != 16 {
		t.Errorf("%d sources, want 16", len(last))
	}
	t.Logf("%d refreshes lost more than half", thin)
}

func instant(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return t.UTC()
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
	all := readText(t, text, "x.csv")
	var got []string
	for _, b := range all.batches {
		line := fmt.Sprint(b.Refresh.SourceID, b.Lines)
		for _, e := range b.Errors {
			line += fmt.Sprint(" error ", e.Line)
		}
		got = append(got, line)
	}
	want := []string{"a[2 4] error 3", "b[6]", "a[7]", "a[8] error 9"}
	if !slices.Equal(got, want) {
		t.Errorf("batches %q, want %q", got, want)
	}
}

func TestReaderTolerates(t *testing.T) {
	csvLine := "2025-01-02T12:00:00Z,popular,USD,,,58,60,a,,"
	jsonLine := `{"observedAt":"2025-01-02T12:00:00Z","institutionId":"popular","currency":"USD","buy":"58","sell":"60","sourceId":"a"}`
	want := Observation{
		Observation: engine.Observation{
			InstitutionID: "popular", Currency: "USD", Buy: "58", Sell: "60",
			Channel: engine.Unspecified, Kind: engine.Commercial,
		},
		SourceID: "a", ObservedAt: instant("2025-01-02T12:00:00Z"),
	}
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

func TestReaderLongLines(t *testing.T) {
	pad := func(n int) string { return strings.Repeat("x", n) }
	const start, end = "2025-01-02T12:00:00Z,popular,USD,,,", ",,a,,"
	fits := start + pad(lineBytesMax-len(start)-len(end)) + end
	text := header + fits + "\r\n" + fits + "x\n" + pad(3*lineBytesMax) + "\n" + fits + "\n" + pad(lineBytesMax+1)
	all := readText(t, text, "x.csv")
	if len(all.rows) != 2 || all.rows[0].Line != 2 || all.rows[1].Line != 5 {
		t.Errorf("%d lines of the greatest length were read, want 2", len(all.rows))
	}
	var got []int
	for _, e := range all.problems {
		got = append(got, e.Line)
		if e.Found != "a longer line" || e.Want != "at most 65536 bytes" {
			t.Errorf("wrong reason: %s", e)
		}
	}
	if !slices.Equal(got, []int{3, 4, 6}) {
		t.Errorf("too long: lines %v, want 3, 4 and 6", got)
	}
}

func TestReaderBatchLimits(t *testing.T) {
	line := "2025-01-02T12:00:00Z,popular,USD,,,58,60,a,,\n"
	text := header + strings.Repeat(line, refreshObservationsMax+2) + strings.Repeat("broken\n", 2*batchErrorsMax)
	all := readText(t, text, "x.csv")
	if len(all.rows) != refreshObservationsMax || len(all.problems) != 2+2*batchErrorsMax {
		t.Errorf("%d observations and %d problems", len(all.rows), len(all.problems))
	}
	for _, b := range all.batches {
		if len(b.Errors) > batchErrorsMax {
			t.Errorf("%d problems in one batch", len(b.Errors))
		}
	}
	want := "x.csv: line 10002: found one more observation of a at 2025-01-02T12:00:00Z, want at most 10000 in one refresh"
	if got := all.problems[0].Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReaderBrokenStream(t *testing.T) {
	boom := errors.New("disk on fire")
	text := header + "2025-01-02T12:00:00Z,popular,USD,,,58,60,a,,\nbroken\n2025-01-02T12:00:00Z,bhd,USD,,,58,60,a,,\n"
	r, err := OpenObservations(io.MultiReader(strings.NewReader(text), iotest.ErrReader(boom)), "x.csv", AnyFormat)
	if err != nil {
		t.Fatal(err)
	}
	batch, err := r.Next()
	if err != nil || len(batch.Lines) != 0 || len(batch.Errors) != 1 {
		t.Errorf("first got %+v, %v; want the malformed line alone", batch, err)
	}
	want := "read x.csv after line 4: disk on fire (the refresh that begins in line 2 may be cut short and is left out)"
	for range 2 {
		if _, err = r.Next(); !errors.Is(err, boom) || err.Error() != want {
			t.Errorf("then got %v, want %s", err, want)
		}
	}
}

func TestOpenObservationsRefuses(t *testing.T) {
	const wanted = "; want exactly the columns " + columns + ", in any order, separated by commas"
	const packed = ", want CSV or NDJSON; unpack it first, or save the workbook as CSV"
	long := "x.csv: line 1: found a longer line, want at most 65536 bytes"
	tests := []struct{ name, text, want string }{
		{"empty", "", "read the header of x.csv: unexpected EOF: the file is empty, want the columns " + columns},
		{"missing", "\n" + strings.Replace(columns, "kind,", "", 1), "x.csv: line 2: the header lacks kind" + wanted},
		{"unknown", header[:len(header)-1] + ",Kind", `x.csv: line 1: the header has the unknown "Kind"` + wanted},
		{"repeated", columns + ",buy,buy", "x.csv: line 1: the header repeats buy" + wanted},
		{"all three", strings.Replace(columns, "kind", "sell", 1) + ",", `x.csv: line 1: the header lacks kind and has the unknown "" and repeats sell` + wanted},
		{"many", columns + ",a,b,c,d,e,f,g", `x.csv: line 1: the header has the unknown "a", "b", "c", "d", "e", 2 more` + wanted},
		{"not text", "\x1f\x8b\x00\x00", "x.csv: line 1: found a gzip file" + packed},
		{"xlsx", "PK\x03\x04\x14", "x.csv: line 1: found a zip file or a workbook (xlsx)" + packed},
		{"xls", "\xd0\xcf\x11\xe0\xa1", "x.csv: line 1: found a workbook (xls)" + packed},
		{"zeros", "a\x00", "x.csv: line 1: found the byte 0x00 at position 2, want text in UTF-8 without NUL"},
		{"endless", strings.Repeat("x", endlessBytesMin+2*lineBytesMax), "read the header of x.csv: a line goes on for more than 16 MiB; this is no file of observations"},
		{"Latin 1", "a\xf1o", "x.csv: line 1: found the byte 0xF1 at position 2, want text in UTF-8 without NUL"},
		{"quote", `"buy`, `x.csv: line 1: found the field "\"buy" without a closing quote, want a quote at its end, in the same line`},
		{"long", strings.Repeat("x", lineBytesMax+1), long},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := OpenObservations(strings.NewReader(test.text), "x.csv", CSV)
			if err == nil || err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
	if _, err := OpenObservations(strings.NewReader(""), "x", "xml"); err == nil {
		t.Error("the format xml was accepted")
	}
	if _, err := OpenObservations(iotest.ErrReader(io.ErrClosedPipe), "x", AnyFormat); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a broken stream gave %v", err)
	}
}
