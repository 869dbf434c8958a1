package collectors

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// TestIsolation: whatever one source of six does for a day, the others are published as if it behaved.
func TestIsolation(t *testing.T) {
	others := func(bad pageServer, places int) map[string][]published {
		all := map[string][]published{}
		inTestEnv(t, saturday(), func(t *testing.T, w *testEnv) {
			definitions := w.manySources(6)
			w.sites["source-03"] = bad
			config := w.config(definitions...)
			config.Concurrency = places
			n := w.run(config)
			w.advanceTo(w.start.Add(24 * time.Hour))
			n.stop(w)
			for _, d := range definitions {
				if d.ID != "source-03" {
					all[d.ID] = w.sink.acceptedFrom(d.ID)
				}
			}
		})
		return all
	}
	want := others(servePages(time.Second, oneQuote), 0)
	for name, bad := range map[string]pageServer{
		"hangs":              hangUntilCancelled,
		"fetcher panics":     func(context.Context, int) (string, error) { panic("planted") },
		"reader panics":      servePages(0, "panic"),
		"says nonsense":      servePages(0, "what is this"),
		"is empty":           servePages(0, ""),
		"gives an odd error": func(context.Context, int) (string, error) { return "", errors.New("odd") },
		"is blocked":         failWith(source.Blocked),
		"lies":               servePages(0, strings.Repeat("popular USD -58.10 59.30\n", 1000)),
	} {
		t.Run(name, func(t *testing.T) {
			got := others(bad, 0)
			for id, publications := range want {
				if len(publications) == 0 || !slices.Equal(got[id], publications) {
					t.Errorf("%s:\n%v, want\n%v", id, got[id], publications)
				}
			}
		})
	}
	if reflect.DeepEqual(others(hangUntilCancelled, 1), want) {
		t.Error("control: with one place for all, a source that hangs must delay others; this test is blind")
	}
}

// TestConcurrency: eight sources are collected at once.
func TestConcurrency(t *testing.T) {
	inTestEnv(t, saturday(), func(t *testing.T, w *testEnv) {
		definitions := w.manySources(40)
		for _, d := range definitions {
			w.sites[d.ID] = servePages(10*time.Second, oneQuote)
		}
		w.sink.markDone(Daily.Last(w.now()), definitions...)
		config := w.config(definitions...)
		config.Jitter = -1
		w.run(config)
		w.advanceTo(santoDomingo(2026, 9, 12, 8, 1, 0))
		if w.inFlightMax != 8 || len(w.sink.accepted) != 40 {
			t.Errorf("%d fetches at once, %d of 40 publications", w.inFlightMax, len(w.sink.accepted))
		}
	})
}

// TestSinkFails: after an error or a panic of the sink the next slot is published.
func TestSinkFails(t *testing.T) {
	inTestEnv(t, saturday(), func(t *testing.T, w *testEnv) {
		d := usdSource("s", "popular")
		w.sites["s"] = servePages(0, oneQuote)
		config := w.config(d)
		w.sink.err = errors.New("read_only: no space")
		n := w.run(config)
		w.advanceTo(w.start.Add(48*time.Hour + 20*time.Minute))
		h := n.health("s")
		if h.State != Failing || h.Failure.Kind != source.Internal || !strings.Contains(h.Failure.Detail, "no space") ||
			h.Failures[source.Internal] != h.Runs || h.Accepted+h.Read != 0 {
			t.Errorf("%+v", h)
		}
		w.sink.err = nil
		w.advanceTo(w.start.Add(56 * time.Hour)) // a slot later
		if h := n.health("s"); h.State != OK || h.Accepted != 1 {
			t.Errorf("after it healed: %+v", h)
		}
		n.stop(w)
		config.Sink = panicking{}
		n = w.run(config)
		w.advanceTo(w.now().Add(24 * time.Hour))
		if h := n.health("s"); h.State != Failing || h.Failure.Kind != source.Internal ||
			!strings.Contains(w.log.String(), "panicking.Observe") {
			t.Errorf("a sink that panics: %+v\n%s", h, w.log)
		}
	})
}

// TestOffsets: jitter depends on the seed, differs from slot to slot, and ends before the next slot.
func TestOffsets(t *testing.T) {
	offsets := func(seed uint64, spread time.Duration) (all []time.Duration) {
		inTestEnv(t, saturday(), func(t *testing.T, w *testEnv) {
			definitions := w.manySources(3)
			w.sink.markDone(Daily.Last(w.now()), definitions...)
			config := w.config(definitions...)
			config.Random, config.Jitter = rand.New(rand.NewPCG(seed, 0)), spread
			w.run(config)
			w.advanceTo(w.start.Add(72 * time.Hour))
			for _, d := range definitions {
				for _, at := range w.requestTimes(d.ID) {
					all = append(all, at.Sub(Daily.Last(at)))
				}
			}
		})
		slices.Sort(all)
		return all
	}
	one, wide := offsets(1, time.Hour), offsets(1, 100*time.Hour)
	if !slices.Equal(one, offsets(1, time.Hour)) || slices.Equal(one, offsets(2, time.Hour)) {
		t.Error("offsets must come from the seed")
	}
	if len(one) != 27 || one[26] > time.Hour || one[26] < 30*time.Minute || len(slices.Compact(one)) < 25 {
		t.Errorf("offsets %v, want 27 different ones up to an hour", one)
	}
	if len(wide) != 27 || wide[26] > 8*time.Hour {
		t.Errorf("a spread beyond the next slot: %v", wide)
	}
}

func quote(institution, currency, buy string) engine.Observation {
	return engine.Observation{InstitutionID: institution, Currency: currency, Buy: buy, Document: "d1"}
}

func resultOf(observations ...engine.Observation) source.Result {
	return source.Result{Observations: observations}
}

// TestI3_CompleteWhereEveryPageAnswered: a refresh is complete exactly in the currencies of which all pages were read.
func TestI3_CompleteWhereEveryPageAnswered(t *testing.T) {
	usd, eur := source.Page{Currency: "USD"}, source.Page{Currency: "EUR"}
	fields := source.Page{Extract: source.Extract{Fields: []source.Field{{Currency: "USD"}, {Currency: "EUR"}}}}
	rows := source.Page{Extract: source.Extract{Rows: &source.Rows{Labels: map[string]source.Target{"dolar": {Currency: "USD"}}}}}
	text := source.Page{Extract: source.Extract{Text: &source.Text{Labels: map[string]source.Target{"euro": {Currency: "EUR"}}}}}
	saidUSD, saidEUR := resultOf(quote("popular", "USD", "58")), resultOf(quote("popular", "EUR", "68"))
	for _, c := range []struct {
		name     string
		pages    []source.Page
		answers  []source.Result
		complete map[string]bool // by currency that was said
	}{
		{"one page", []source.Page{usd}, []source.Result{saidUSD}, map[string]bool{"USD": true}},
		{"both pages", []source.Page{usd, eur}, []source.Result{saidUSD, saidEUR}, map[string]bool{"USD": true, "EUR": true}},
		{"a page of another currency failed", []source.Page{usd, eur}, []source.Result{saidUSD, {}}, map[string]bool{"USD": true}},
		{"a page of fields failed", []source.Page{usd, fields}, []source.Result{saidUSD, {}}, map[string]bool{"USD": false}},
		{"a page of rows failed", []source.Page{usd, rows}, []source.Result{saidUSD, {}}, map[string]bool{"USD": false}},
		{"a page of text failed", []source.Page{usd, eur, text}, []source.Result{saidUSD, saidEUR, {}}, map[string]bool{"USD": true, "EUR": false}},
		{"only history is an answer too", []source.Page{usd, usd}, []source.Result{saidUSD, {History: []source.HistoryDay{
			{Date: dateOf("2026-09-17"), Observations: []engine.Observation{quote("popular", "USD", "57")}},
		}}}, map[string]bool{"USD": true}},
		{"fewer answers than pages", []source.Page{usd, eur}, []source.Result{saidUSD}, map[string]bool{"USD": false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			at, slot := santoDomingo(2026, 9, 18, 8, 2, 0), santoDomingo(2026, 9, 18, 8, 0, 0)
			got := map[string]bool{}
			for _, refresh := range BuildRefreshes(&source.Definition{ID: "popular-site", Pages: c.pages}, c.answers, at, slot) {
				if refresh.Slot.IsZero() {
					continue
				}
				if !refresh.Slot.Equal(slot) || !refresh.ObservedAt.Equal(at) || refresh.SourceID != "popular-site" {
					t.Errorf("refresh of now: %+v", refresh)
				}
				for _, o := range refresh.Observations {
					if _, doubled := got[o.Currency]; doubled {
						t.Errorf("%s stands in two refreshes, of which the engine would hear one", o.Currency)
					}
					got[o.Currency] = refresh.Complete
				}
			}
			if !reflect.DeepEqual(got, c.complete) {
				t.Errorf("complete: %v, want %v", got, c.complete)
			}
		})
	}
}

// TestRefreshes_History: past days come in order, each at its own end, never in the future.
func TestRefreshes_History(t *testing.T) {
	d := usdSource("bcrd-usd", "bcrd")
	d.Pages = append(d.Pages, d.Pages[0])
	d.Expiry.AfterDate = 120 * time.Hour
	today := dateOf("2026-09-18")
	past := func(days int) source.HistoryDay {
		return source.HistoryDay{Date: today.AddDays(-days), Observations: []engine.Observation{quote("bcrd", "USD", fmt.Sprint(57, days))}}
	}
	stated := quote("bcrd", "USD", "59")
	stated.EffectiveDate, stated.ExpiresAt = today, santoDomingo(2026, 9, 18, 20, 0, 0)
	answers := []source.Result{
		{History: []source.HistoryDay{past(2), past(0), {}}, Observations: []engine.Observation{stated}}, {History: []source.HistoryDay{past(3), past(2)}},
	}
	before := fmt.Sprintf("%+v", answers)
	at := santoDomingo(2026, 9, 18, 17, 1, 0)
	refreshes := BuildRefreshes(d, answers, at, santoDomingo(2026, 9, 18, 17, 0, 0))
	if after := fmt.Sprintf("%+v", answers); after != before {
		t.Errorf("the answers were changed:\n%s\n%s", before, after)
	}
	for i, want := range []struct {
		at, expires time.Time
		values      int
	}{
		{santoDomingo(2026, 9, 15, 23, 59, 59), santoDomingo(2026, 9, 17, 1, 59, 59), 1},
		{santoDomingo(2026, 9, 16, 23, 59, 59), santoDomingo(2026, 9, 18, 1, 59, 59), 2},
		{at, at.Add(26 * time.Hour), 1}, // the end of today has not come yet
		{at, stated.ExpiresAt, 1},
	} {
		got := refreshes[i]
		if !got.ObservedAt.Equal(want.at) || len(got.Observations) != want.values || !got.Observations[0].ExpiresAt.Equal(want.expires) {
			t.Errorf("refresh %d: %+v, want %d values at %v until %v", i, got, want.values, want.at, want.expires)
		}
		if history := i < 3; history != got.Slot.IsZero() || history == got.Complete {
			t.Errorf("refresh %d: slot %v, complete %v", i, got.Slot, got.Complete)
		}
		for _, o := range got.Observations {
			if o.Document != "d1" || o.EffectiveDate.IsZero() {
				t.Errorf("refresh %d: %+v lost its document or its day", i, o)
			}
		}
	}
	if len(refreshes) != 4 {
		t.Errorf("%d refreshes, want 4", len(refreshes))
	}
}

func TestRecent(t *testing.T) {
	at := santoDomingo(2026, 9, 18, 20, 30, 0) // the 19th in UTC
	answers := []source.Result{{History: []source.HistoryDay{{Date: dateOf("2026-09-15")}, {Date: dateOf("2026-09-16")}, {Date: dateOf("2026-09-17")}}}}
	for days, want := range map[int]int{0: 3, 1: 1, 2: 2, 45: 3} {
		if got := trimHistory(answers, days, at)[0].History; len(got) != want {
			t.Errorf("%d days: %v, want %d", days, got, want)
		}
	}
	if len(answers[0].History) != 3 {
		t.Error("the answers were changed")
	}
}

// TestT2_DailySlots: for thirty years, the slots are those that clients get.
func TestT2_DailySlots(t *testing.T) {
	schedule, slot := Daily, santoDomingo(2001, time.January, 1, 8, 0, 0)
	for i := 0; slot.Year() < 2031; i++ {
		if want := []int{12, 16, 21}[i%3]; slot.Hour() != want || slot.Minute() != 0 || slot.Second() != 0 || slot.Location() != time.UTC {
			t.Fatalf("slot %d is %v", i, slot) // 08:00, 12:00, 17:00 in Santo Domingo, which has no summer time
		}
		next := engine.NextRefresh(slot)
		for _, at := range []time.Time{slot, slot.Add(next.Sub(slot) / 3), next.Add(-time.Nanosecond)} {
			if !schedule.Last(at).Equal(slot) || !schedule.Next(at).Equal(next) {
				t.Fatalf("at %v: Last %v, Next %v; want %v, %v", at, schedule.Last(at), schedule.Next(at), slot, next)
			}
		}
		slot = next
	}
}

func TestEvery(t *testing.T) {
	schedule := Schedule(10 * time.Second)
	at := time.Date(2026, 9, 18, 12, 0, 7, 5, time.FixedZone("", 3600))
	if got, want := schedule.Last(at), time.Date(2026, 9, 18, 11, 0, 0, 0, time.UTC); !got.Equal(want) || got.Location() != time.UTC {
		t.Errorf("Last = %v, want %v", got, want)
	}
	if got, want := schedule.Next(at), time.Date(2026, 9, 18, 11, 0, 10, 0, time.UTC); !got.Equal(want) {
		t.Errorf("Next = %v, want %v", got, want)
	}
}

var baselineStart = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func everything(string) bool { return true }

// readLines makes observations from lines of institution, currency, buy and sell; a dot is a missing side.
func readLines(lines ...string) []engine.Observation {
	var all []engine.Observation
	for _, line := range lines {
		words := strings.Fields(line)
		all = append(all, engine.Observation{InstitutionID: words[0], Currency: words[1], Buy: strings.Trim(words[2], "."), Sell: strings.Trim(words[3], ".")})
	}
	return all
}

// nextRun learns one run, eight hours after the last one.
func nextRun(b Baseline, complete func(string) bool, lines ...string) Baseline {
	at := b.At.Add(8 * time.Hour)
	if b.At.IsZero() {
		at = baselineStart
	}
	return b.after(baselineRun{slot: at, at: at, observations: readLines(lines...), complete: complete})
}

// repeatRun repeats a run.
func repeatRun(b Baseline, runs int, lines ...string) Baseline {
	for range runs {
		b = nextRun(b, everything, lines...)
	}
	return b
}

// A source gives dollars and euros, both sides, and then loses parts in various ways.
func TestBaseline_Missing(t *testing.T) {
	dollars, euros, eurosBuy := "bhd USD 57 59", "bhd EUR 66 71", "bhd EUR 66 ."
	const euroSell = "sell of bhd:EUR:unspecified:commercial missing for %d runs"
	full := repeatRun(Baseline{}, 100, dollars, euros)
	noEuros := func(currency string) bool { return currency != "EUR" }
	for name, c := range map[string]struct {
		b    Baseline
		want []string
	}{
		"all there":                 {full, nil},
		"two runs":                  {repeatRun(full, 2, dollars, eurosBuy), nil},
		"one side for three runs":   {repeatRun(full, 3, dollars, eurosBuy), []string{fmt.Sprintf(euroSell, 3)}},
		"one side for long":         {repeatRun(full, 63, dollars, eurosBuy), []string{fmt.Sprintf(euroSell, 63)}},
		"forgotten":                 {repeatRun(full, 64, dollars, eurosBuy), nil},
		"a whole currency":          {repeatRun(full, 4, dollars), []string{"buy of bhd:EUR:unspecified:commercial missing for 4 runs", fmt.Sprintf(euroSell, 4)}},
		"it came back":              {repeatRun(repeatRun(full, 4, dollars), 1, dollars, euros), nil},
		"it comes and goes":         {repeatRun(repeatRun(repeatRun(full, 4, dollars), 1, dollars, euros), 3, dollars, eurosBuy), nil},
		"too new":                   {repeatRun(repeatRun(Baseline{}, 20, dollars, euros), 30, dollars, eurosBuy), nil},
		"just known":                {repeatRun(repeatRun(Baseline{}, 21, dollars, euros), 3, dollars, eurosBuy), []string{fmt.Sprintf(euroSell, 3)}},
		"a new side, and gone":      {repeatRun(nextRun(full, everything, dollars, euros, "bhd CHF 70 75"), 10, dollars, euros), nil},
		"a page that fails":         {nextRun(nextRun(nextRun(full, noEuros, dollars), noEuros, dollars), noEuros, dollars), nil},
		"sides in two observations": {repeatRun(repeatRun(full, 5, dollars, "bhd EUR 66 .", "bhd EUR . 71"), 5, dollars, "bhd EUR . 71", "bhd EUR 66 ."), nil},
		"nothing":                   {Baseline{}, nil},
	} {
		if got := c.b.Missing(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	for runs, want := range []int{0, 0, 0, 1, 0} {
		if got := repeatRun(Baseline{}, runs, dollars).neverRead([]string{"EUR", "USD"}); len(got) != want || want == 1 && got[0] != "EUR" {
			t.Errorf("never read after %d runs: %q", runs, got)
		}
	}
}

// Neither many quotes nor strange ones make a Baseline large or unreadable, a slot counts once, and what older versions
// wrote is read.
func TestBaseline_Limits(t *testing.T) {
	var lines []string
	for i := range 2 * baselineQuotesMax {
		lines = append(lines, fmt.Sprintf("house-%d USD 57 59", i))
	}
	b := nextRun(Baseline{}, everything, "bhd USD 57 59", "a:b USD 57 59", strings.Repeat("x", 500)+" USD 57 59", "bad\xff USD 57 59")
	if len(b.Quotes) != 1 {
		t.Errorf("strange institutions are learnt: %v", b)
	}
	b = repeatRun(b, 70, lines...)
	if text := b.Encode(); len(b.Quotes) != baselineQuotesMax || len(text) > engine.BaselineBytesMax {
		t.Errorf("%d quotes in %d bytes", len(b.Quotes), len(text))
	}
	if again := b.after(baselineRun{slot: b.Slot, at: b.At.Add(time.Hour), complete: everything}); !reflect.DeepEqual(again, b) {
		t.Error("the same slot is learnt twice")
	}
	if back, err := DecodeBaseline(b.Encode()); err != nil || !reflect.DeepEqual(back, b) {
		t.Errorf("%v: another Baseline is read: %+v\nwant %+v", err, back, b)
	}
	for _, text := range []string{"{", "[]"} {
		if got, err := DecodeBaseline(text); err == nil || got.Quotes != nil {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	const older = `{"slot":"2026-06-01T12:00:00Z","at":"2026-06-01T12:00:01Z","spans":[1,3],"quotes":{"bhd:USD:unspecified:commercial":` +
		`{"prices":12345678901234567890,"unchangedSince":"2026-05-31T12:00:00Z","sides":[{"seen":18446744073709551615,"runs":64},{"seen":7,"runs":3,"missing":2}]}}}`
	if got, err := DecodeBaseline(older); err != nil || got.Quotes["bhd:USD:unspecified:commercial"].Sides != [2]BaselineSide{{64, 0}, {3, 2}} {
		t.Errorf("of an older version: %+v, %v", got, err)
	}
}

func TestBaseline_Frozen(t *testing.T) {
	b := repeatRun(Baseline{}, 85, "bhd USD 57 59")
	if b.Frozen() {
		t.Errorf("frozen after %v", b.Unchanged())
	}
	if b = repeatRun(b, 1, "bhd USD 57 59"); !b.Frozen() {
		t.Errorf("not frozen after %v", b.Unchanged())
	}
	if b = repeatRun(b, 1, "bhd USD 57 59.01"); b.Frozen() || b.Unchanged() != 0 {
		t.Errorf("frozen after a change, for %v", b.Unchanged())
	}
	old := readLines("bcrd USD 54 55") // a page whose own date is old is frozen at once
	old[0].EffectiveDate = engine.DateOf(baselineStart.AddDate(-4, 0, 0))
	b = Baseline{}.after(baselineRun{slot: baselineStart, at: baselineStart, complete: everything, observations: old})
	if !b.Frozen() || engine.DateOf(b.UnchangedSince()) != old[0].EffectiveDate || (Baseline{}).Frozen() {
		t.Errorf("%v since %v", b.Frozen(), b.UnchangedSince())
	}
}
