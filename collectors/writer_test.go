package collectors

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
	"pgregory.net/rapid"
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
		var out strings.Builder
		w, err := NewWriter(&out, format)
		for _, row := range rows {
			err = errors.Join(err, w.Write(row))
		}
		if err = errors.Join(err, w.Flush()); err != nil || out.String() != text {
			t.Errorf("%s: %v\ngot  %s\nwant %s", format, err, out.String(), text)
		}
	}
}

func TestColumnNames(t *testing.T) {
	var names []string
	for c := range columnCount {
		names = append(names, c.String())
	}
	if got := strings.Join(names, ","); got != columns {
		t.Errorf("the columns are %s, the header is %s", got, columns)
	}
}

func TestWriterEmpty(t *testing.T) {
	for format, want := range map[Format]string{CSV: header, NDJSON: ""} {
		var out strings.Builder
		w, err := NewWriter(&out, format)
		if err = errors.Join(err, w.Flush(), w.Flush()); err != nil || out.String() != want {
			t.Errorf("%s: %q, %v", format, out.String(), err)
		}
	}
	if _, err := NewWriter(&strings.Builder{}, AnyFormat); err == nil {
		t.Error("a file without a format was begun")
	}
}

func TestWriterRefuses(t *testing.T) {
	good := Observation{
		SourceID: "a", ObservedAt: instant("2025-01-02T12:00:00Z"),
		Observation: engine.Observation{InstitutionID: "bdi", Currency: "USD", Buy: "58"},
	}
	const control = ", want text without control characters and without U+FFFD, the mark of damaged text"
	tests := []struct {
		spoil func(*Observation)
		want  string
	}{
		{func(o *Observation) { o.ObservedAt = time.Time{} }, `observation 2 of "a", observedAt: found nothing, want a value`},
		{func(o *Observation) { o.SourceID = "" }, `observation 2 of "", sourceId: found nothing, want a value`},
		{func(o *Observation) { o.Buy = "5\n8" }, `observation 2 of "a", buy: found "5\n8"` + control},
		{func(o *Observation) { o.Buy = "5\xff8" }, `observation 2 of "a", buy: found "5\xff8"` + control},
		{func(o *Observation) { o.Channel = "web" }, `observation 2 of "a", channel: found "web", want nothing or one of unspecified, branch, digital, cash, transfer`},
		{func(o *Observation) { o.Sell = strings.Repeat("6", lineBytesMax) }, "observation 2: "},
	}
	for _, format := range []Format{CSV, NDJSON} {
		for _, test := range tests {
			var out strings.Builder
			w, err := NewWriter(&out, format)
			if err = errors.Join(err, w.Write(good)); err != nil {
				t.Fatal(err)
			}
			bad := good
			test.spoil(&bad)
			err = w.Write(bad)
			if err == nil || !strings.HasPrefix(err.Error(), "write "+test.want) {
				t.Errorf("%s: got %v, want write %s", format, err, test.want)
			}
			if err = errors.Join(w.Write(good), w.Flush()); err != nil {
				t.Fatal(err)
			}
			if all := readText(t, out.String(), "x."+string(format)); len(all.rows) != 2 || len(all.problems) != 0 {
				t.Errorf("%s: a refused observation left something in the file: %v", format, all.problems)
			}
		}
	}
}

// drawText draws what a value may hold, mostly the characters that formats trip over.
func drawText(shortest, longest int) *rapid.Generator[string] {
	char := rapid.OneOf(
		rapid.SampledFrom([]rune(`",;:{}[]\/ .05Zñ€😀<&u`+"\u2028\u00a0\uFEFF")),
		rapid.Rune().Filter(func(r rune) bool { return !unwanted(r) }),
	)
	return rapid.StringOfN(char, shortest, longest, -1)
}

func drawInstant() *rapid.Generator[time.Time] {
	first, last := instant("1900-01-01T00:00:00Z").Unix(), instant("2999-12-31T23:59:59Z").Unix()
	return rapid.Custom(func(t *rapid.T) time.Time {
		nanos := rapid.SampledFrom([]int64{0, 0, 1, 500_000_000, 999_999_999}).Draw(t, "nanos")
		return time.Unix(rapid.Int64Range(first, last).Draw(t, "seconds"), nanos).UTC()
	})
}

func drawObservation() *rapid.Generator[Observation] {
	return rapid.Custom(func(t *rapid.T) Observation {
		o := Observation{
			SourceID: drawText(1, sourceIDMax).Draw(t, "source"), ObservedAt: drawInstant().Draw(t, "observed"),
			Observation: engine.Observation{
				InstitutionID: drawText(1, engine.InstitutionIDMax).Draw(t, "institution"),
				Currency:      drawText(1, 10).Draw(t, "currency"),
				Channel:       rapid.SampledFrom(engine.Channels()).Draw(t, "channel"),
				Kind:          rapid.SampledFrom(engine.Kinds()).Draw(t, "kind"),
				Buy:           drawText(0, 100).Draw(t, "buy"), Sell: drawText(0, 100).Draw(t, "sell"),
			},
		}
		if rapid.Bool().Draw(t, "dated") {
			o.EffectiveDate = engine.DateOf(drawInstant().Draw(t, "effective").Add(24 * time.Hour))
			o.EffectiveDate = min(o.EffectiveDate, engine.DateOf(instant("2999-12-31T12:00:00Z")))
			o.PublishedAt = drawInstant().Draw(t, "published")
		}
		return o
	})
}

func TestRoundTrip(t *testing.T) {
	for _, format := range []Format{CSV, NDJSON} {
		t.Run(string(format), rapid.MakeCheck(func(t *rapid.T) {
			rows := rapid.SliceOfN(drawObservation(), 0, 20).Draw(t, "rows")
			var out bytes.Buffer
			w, err := NewWriter(&out, format)
			for _, row := range rows {
				err = errors.Join(err, w.Write(row))
			}
			if err = errors.Join(err, w.Flush()); err != nil {
				t.Fatal(err)
			}
			r, err := OpenObservations(&out, "-", format)
			if err != nil {
				t.Fatal(err)
			}
			all, err := readAll(r)
			if err != nil || len(all.problems) > 0 {
				t.Fatal(err, all.problems)
			}
			for i := range all.rows {
				all.rows[i].Line = 0
			}
			if !slices.Equal(all.rows, rows) {
				t.Errorf("wrote %+v\nread  %+v", rows, all.rows)
			}
		}))
	}
}

func TestRealFileRoundTrip(t *testing.T) {
	if RaceDetector {
		t.Skip("one goroutine does it all: without the race detector")
	}
	all := readReal(t)
	for _, format := range []Format{CSV, NDJSON} {
		var out bytes.Buffer
		w, err := NewWriter(&out, format)
		for _, batch := range all.batches {
			err = errors.Join(err, w.WriteRefresh(batch.Refresh))
		}
		if err = errors.Join(err, w.Flush()); err != nil {
			t.Fatal(err)
		}
		again := readText(t, out.String(), "again."+string(format))
		same := func(a, b Batch) bool {
			return a.Refresh.SourceID == b.Refresh.SourceID && a.Refresh.ObservedAt.Equal(b.Refresh.ObservedAt) &&
				slices.Equal(a.Refresh.Observations, b.Refresh.Observations)
		}
		if !slices.EqualFunc(again.batches, all.batches, same) {
			t.Errorf("%s: not the same after writing and reading", format)
		}
	}
}
