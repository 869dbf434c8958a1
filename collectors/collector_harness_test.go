package collectors

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

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

// TestI3_CompleteWhereEveryPageAnswered: a refresh is complete exactly in the currencies of which all pages were read.
func TestI3_CompleteWhereEveryPageAnswered(t *testing.T) {
	usd, eur := source.Page{Currency: "USD"}, source.Page{Currency: "EUR"}
	fields := source.Page{Extract: source.Extract{Fields: []source.Field{{Currency: "USD"}, {Currency: "EUR"}}}}
	rows := source.Page{Extract: source.Extract{Rows: &source.Rows{Labels: map[string]source.Target{"dolar": {Currency: "USD"}}}}}
	text := source.Page{Extract: source.Extract{Text: &source.Text{Labels: map[string]source.Target{"euro": {Currency: "EUR"}}}}}
	saidUSD := source.Result{Observations: []engine.Observation{quote("popular", "USD", "58")}}
	saidEUR := source.Result{Observations: []engine.Observation{quote("popular", "EUR", "68")}}
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
		if got := trimHistory(answers, days, at)[0].History; len(got) != want || len(answers[0].History) != 3 {
			t.Errorf("%d days: %v of %v, want %d", days, got, answers[0].History, want)
		}
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

func TestSchedule_Truncates(t *testing.T) {
	at, slot := time.Date(2026, 9, 18, 12, 0, 7, 5, time.FixedZone("", 3600)), time.Date(2026, 9, 18, 11, 0, 0, 0, time.UTC)
	schedule := Schedule(10 * time.Second)
	if got := schedule.Last(at); !got.Equal(slot) || got.Location() != time.UTC || !schedule.Next(at).Equal(slot.Add(10*time.Second)) {
		t.Errorf("last %v, next %v, want %v and ten seconds later", got, schedule.Next(at), slot)
	}
}

var baselineStart = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func everything(string) bool { return true }

// readLines makes observations from lines (see parseLines).
func readLines(lines ...string) []engine.Observation {
	answer, _ := parseLines(&source.Definition{}, 0, &source.Document{Body: []byte(strings.Join(lines, "\n"))})
	return answer.Observations
}

// nextRun learns one run, eight hours after the last one.
func nextRun(b Baseline, complete func(string) bool, lines ...string) Baseline {
	at := cmp.Or(b.At, baselineStart.Add(-8*time.Hour)).Add(8 * time.Hour)
	return b.after(baselineRun{slot: at, at: at, observations: readLines(lines...), complete: complete})
}

// repeatRun repeats a run.
func repeatRun(b Baseline, runs int, lines ...string) Baseline {
	for range runs {
		b = nextRun(b, everything, lines...)
	}
	return b
}

// A source gives dollars and euros, both sides, and then loses parts in various ways, beside those of
// TestX26_LossOfAPart.
func TestBaseline_Missing(t *testing.T) {
	dollars, euros, eurosBuy := "bhd USD 57 59", "bhd EUR 66 71", "bhd EUR 66 ."
	const euroSell = "sell of bhd:EUR:unspecified:commercial missing for %d runs"
	full := repeatRun(Baseline{}, 100, dollars, euros)
	noEuros := func(currency string) bool { return currency != "EUR" }
	for name, c := range map[string]struct {
		b    Baseline
		want []string
	}{
		"a whole currency":          {repeatRun(full, 4, dollars), []string{"buy of bhd:EUR:unspecified:commercial missing for 4 runs", fmt.Sprintf(euroSell, 4)}},
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
	b := Baseline{}
	for _, step := range []struct {
		runs   int
		sell   string
		frozen bool
	}{{85, "59", false}, {1, "59", true}, {1, "59.01", false}} {
		if b = repeatRun(b, step.runs, "bhd USD 57 "+step.sell); b.Frozen() != step.frozen {
			t.Errorf("frozen: %v after %v without a change", b.Frozen(), b.Unchanged())
		}
	}
	old := readLines("bcrd USD 54 55") // a page whose own date is old is frozen at once
	old[0].EffectiveDate = engine.DateOf(baselineStart.AddDate(-4, 0, 0))
	b = Baseline{}.after(baselineRun{slot: baselineStart, at: baselineStart, complete: everything, observations: old})
	if !b.Frozen() || engine.DateOf(b.UnchangedSince()) != old[0].EffectiveDate || (Baseline{}).Frozen() {
		t.Errorf("%v since %v", b.Frozen(), b.UnchangedSince())
	}
}

// sweep returns whole when SWEEP=whole asks for complete sweeps, as make check does, and sample otherwise.
func sweep(sample, whole int) int {
	if os.Getenv("SWEEP") == "whole" {
		return whole
	}
	return sample
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func santoDomingo(year int, month time.Month, day, hour, minute, second int) time.Time {
	return time.Date(year, month, day, hour, minute, second, 0, engine.Location()).UTC()
}

// pageServer is what a source's site does when it is asked for a page: it gives the text of a document, or an error.
type pageServer func(ctx context.Context, page int) (string, error)

// testEnv is the web, the clock and the sink of a test inside a synctest bubble.
type testEnv struct {
	t       testing.TB
	start   time.Time // what the clock shows at the beginning of the bubble
	began   time.Time
	sites   map[string]pageServer
	sink    *fakeSink
	log     *bytes.Buffer
	running []*runningCollector // are stopped at the end

	mu          sync.Mutex
	clockError  time.Duration // of the clock
	requests    map[string][]time.Time
	inFlight    int
	inFlightMax int
}

func inTestEnv(t *testing.T, start time.Time, test func(t *testing.T, w *testEnv)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &testEnv{
			t: t, start: start, began: bubbleClock(), sites: map[string]pageServer{}, sink: &fakeSink{newestSlots: map[[2]string]time.Time{}},
			log: &bytes.Buffer{}, requests: map[string][]time.Time{},
		}
		defer func() {
			for _, n := range w.running {
				n.stop(w)
			}
		}()
		test(t, w)
	})
}

func bubbleClock() time.Time {
	return time.Now() //nolint:forbidigo // the one door of these tests to the bubble's clock
}

func (w *testEnv) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.start.Add(bubbleClock().Sub(w.began) + w.clockError)
}

func (w *testEnv) jumpClock(by time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clockError += by
}

func (w *testEnv) advanceTo(until time.Time) {
	<-time.NewTimer(until.Sub(w.now())).C
	synctest.Wait()
}

func (w *testEnv) Fetch(ctx context.Context, d *source.Definition, page int) (*source.Document, error) {
	w.mu.Lock()
	w.requests[d.ID] = append(w.requests[d.ID], w.start.Add(bubbleClock().Sub(w.began)+w.clockError))
	w.inFlight++
	w.inFlightMax = max(w.inFlightMax, w.inFlight)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.inFlight--
	}()
	text, err := w.sites[d.ID](ctx, page)
	if err != nil {
		return nil, err
	}
	return &source.Document{URL: "https://example.do/", Body: []byte(text), FetchedAt: w.now()}, nil
}

func (w *testEnv) requestTimes(id string) []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.requests[id])
}

// parseLines reads lines of institution, currency, buy, sell (dot = none) and perhaps a date; + is a past day, # a
// note.
func parseLines(d *source.Definition, page int, doc *source.Document) (source.Result, error) {
	var answer source.Result
	for line := range strings.Lines(string(doc.Body)) {
		line = strings.TrimSpace(line)
		if note, is := strings.CutPrefix(line, "#"); is {
			answer.Notes = append(answer.Notes, note)
			continue
		}
		if line == "panic" {
			panic("a reader that is not ready for this")
		}
		rest, past := strings.CutPrefix(line, "+")
		words := append(strings.Fields(rest), "")
		if len(words) < 5 {
			return source.Result{}, source.Failf(source.Layout, "line %q", line)
		}
		o := engine.Observation{
			InstitutionID: words[0], Currency: words[1], Buy: strings.Trim(words[2], "."), Sell: strings.Trim(words[3], "."),
			Kind: d.Kind, Document: doc.Digest(),
		}
		if words[4] != "" {
			o.EffectiveDate = dateOf(words[4])
		}
		if past {
			answer.History = append(answer.History, source.HistoryDay{Date: o.EffectiveDate, Observations: []engine.Observation{o}})
		} else {
			answer.Observations = append(answer.Observations, o)
		}
	}
	return answer, nil
}

func usdSource(id, institution string) *source.Definition {
	return &source.Definition{
		ID: id, Name: id, Institution: institution, Priority: engine.PriorityDefault, Kind: engine.Commercial,
		Expiry: source.Expiry{AfterCheck: engine.LifetimeDefault}, Pages: []source.Page{{Currency: "USD"}},
	}
}

func twoPages(id, institution string) *source.Definition {
	d := usdSource(id, institution)
	d.Pages = []source.Page{{Name: "usd", Currency: "USD"}, {Name: "eur", Currency: "EUR"}}
	return d
}

func servePages(after time.Duration, pages ...string) pageServer {
	return func(ctx context.Context, page int) (string, error) {
		if after > 0 {
			select {
			case <-time.NewTimer(after).C:
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return pages[page], nil
	}
}

func failWith(kind source.FailureKind) pageServer {
	return func(context.Context, int) (string, error) { return "", source.Failf(kind, "planted") }
}

func hangUntilCancelled(ctx context.Context, _ int) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

func (w *testEnv) config(definitions ...*source.Definition) Config {
	return Config{
		Definitions: definitions, Fetcher: w, Sink: w.sink, Clock: w.now, LastSlot: w.sink.lastSlot,
		Random: rand.New(rand.NewPCG(1, 2)), Logger: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelInfo})),
	}
}

type runningCollector struct {
	*Collector
	cancel context.CancelFunc
	ended  chan error
}

func (w *testEnv) run(c Config) *runningCollector {
	ctx, cancel := context.WithCancel(context.Background())
	n := &runningCollector{Collector: New(c), cancel: cancel, ended: make(chan error, 1)}
	n.parse = parseLines
	go func() {
		n.ended <- n.Run(ctx)
		close(n.ended)
	}()
	w.running = append(w.running, n)
	synctest.Wait()
	return n
}

func (n *runningCollector) stop(w *testEnv) time.Duration {
	w.t.Helper()
	before := bubbleClock()
	n.cancel()
	if err := <-n.ended; err != nil {
		w.t.Errorf("Run: %v", err)
	}
	return bubbleClock().Sub(before)
}

func (n *runningCollector) health(id string) Health {
	all := n.Health()
	return all[slices.IndexFunc(all, func(h Health) bool { return h.SourceID == id })]
}

type published struct {
	source, currency string
	slot, at         time.Time
	values           int
	complete         bool
}

func (p published) String() string {
	return fmt.Sprintf("%s %s slot %s at %s", p.source, p.currency, p.slot.Format(time.RFC3339), p.at.Format(time.RFC3339))
}

// fakeSink is a sink that survives the lives of a node. Like the engine it takes a source once for a slot and
// currency.
type fakeSink struct {
	mu          sync.Mutex
	newestSlots map[[2]string]time.Time // the newest slot, by source and currency
	accepted    []published
	err         error // what every Observe is answered, nil = as it should be
}

// lastSlot is System.Slots: the oldest slot of the currencies that know the source.
func (s *fakeSink) lastSlot(id string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	var oldest time.Time
	for key, slot := range s.newestSlots {
		if key[0] == id && (oldest.IsZero() || slot.Before(oldest)) {
			oldest = slot
		}
	}
	return oldest
}

func (s *fakeSink) markDone(slot time.Time, definitions ...*source.Definition) {
	for _, d := range definitions {
		for _, page := range d.Pages {
			s.newestSlots[[2]string{d.ID, page.Currency}] = slot
		}
	}
}

// acceptedFrom returns what was accepted of a source, slots only.
func (s *fakeSink) acceptedFrom(id string) []published {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.accepted), func(p published) bool { return p.source != id || p.slot.IsZero() })
}

// Observe is Sink. Values that begin with a minus are refused.
func (s *fakeSink) Observe(refreshes []engine.Refresh) (receipt engine.Receipt, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return receipt, s.err
	}
	for i, refresh := range refreshes {
		values := map[string]int{} // by currency
		for j, o := range refresh.Observations {
			values[o.Currency]++
			if strings.HasPrefix(o.Buy, "-") {
				values[o.Currency]--
				receipt.Refused = append(receipt.Refused, engine.Refusal{Refresh: i, Index: j, Observation: o, Reason: engine.Negative})
			}
		}
		for _, currency := range slices.Sorted(maps.Keys(values)) {
			key := [2]string{refresh.SourceID, currency}
			switch known := s.newestSlots[key]; {
			case refresh.Slot.After(known):
				s.newestSlots[key] = refresh.Slot
			case !refresh.Slot.IsZero():
				receipt.Repeated += values[currency]
				continue
			}
			receipt.Accepted += values[currency]
			s.accepted = append(s.accepted, published{refresh.SourceID, currency, refresh.Slot, refresh.ObservedAt, values[currency], refresh.Complete})
		}
	}
	return receipt, nil
}

func dateOf(text string) engine.Date { return parsed(engine.ParseDate(text)) }

type panicking struct{}

func (panicking) Observe([]engine.Refresh) (engine.Receipt, error) { panic("planted") }
