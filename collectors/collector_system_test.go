package collectors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/actors/dump"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// memoryJournal is a journal in memory. It survives the systems that write to it, and can fail in an append.
type memoryJournal struct {
	mu      sync.Mutex
	records [][]byte
	left    int    // appends until the crash; negative = none comes
	crashed func() // what happens then
}

var errCrashed = errors.New("the node crashed")

func (m *memoryJournal) Last() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return uint64(len(m.records))
}

func (m *memoryJournal) Append(expected uint64, records [][]byte) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left == 0 {
		if m.crashed != nil {
			m.crashed()
			m.crashed = nil
		}
		return 0, errCrashed
	}
	m.left--
	for _, record := range records {
		m.records = append(m.records, slices.Clone(record))
	}
	return expected + uint64(len(records)), nil
}

func (m *memoryJournal) Read(from uint64, visit func(uint64, []byte) error) error {
	for i, record := range m.records[from-1:] {
		if err := visit(from+uint64(i), record); err != nil {
			return err
		}
	}
	return nil
}

func (m *memoryJournal) Snapshot() (uint64, io.ReadCloser, bool, error) { return 0, nil, false, nil }

func (m *memoryJournal) WriteSnapshot(_ uint64, write func(io.Writer) error) error {
	return write(io.Discard)
}

func (m *memoryJournal) DropBefore(uint64) error { return nil }

func (m *memoryJournal) Close() error { return nil }

func (m *memoryJournal) publishedCounts(t testing.TB) map[string]int {
	count := map[string]int{}
	for _, record := range m.records {
		text, err := dump.Record(record)
		must(t, err)
		var line struct {
			SourceID, Currency string
			Slot               time.Time
		}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if !line.Slot.IsZero() {
			count[fmt.Sprintf("%s %s %s", line.SourceID, line.Currency, line.Slot.Format(time.RFC3339))]++
		}
	}
	return count
}

// system opens a real node over a journal. The returned function closes it.
func (w *testEnv) system(log *memoryJournal, definitions ...*source.Definition) (*actors.System, func()) {
	w.t.Helper()
	catalogue := engine.DefaultCatalogue()
	for _, d := range definitions {
		catalogue = catalogue.WithSources(d.Source())
	}
	s, err := actors.Open(actors.Config{Journal: log, Clock: w.now, Catalogue: catalogue})
	must(w.t, err)
	<-s.Ready()
	return s, func() {
		if err := s.Close(); err != nil && !errors.Is(err, errCrashed) {
			w.t.Error(err)
		}
	}
}

func (w *testEnv) collecting(s *actors.System, definitions ...*source.Definition) Config {
	c := w.config(definitions...)
	c.Sink, c.Jitter = s, -1
	slots, err := s.Slots()
	must(w.t, err)
	c.LastSlot = func(id string) time.Time { return slots[id] }
	baselines, err := s.Baselines()
	must(w.t, err)
	c.Baseline = func(id string) string { return baselines[id] }
	return c
}

func rates(t testing.TB, s *actors.System) map[string]*engine.Rate {
	t.Helper()
	page, err := s.Rates(engine.RatesQuery{PageRequest: engine.PageRequest{Limit: engine.LimitMax}})
	must(t, err)
	all := map[string]*engine.Rate{}
	for _, rate := range page.Items {
		all[rate.ID] = rate
	}
	return all
}

func inSystem(t *testing.T, start time.Time, definitions []*source.Definition, test func(t *testing.T, w *testEnv, s *actors.System, n *runningCollector)) {
	inTestEnv(t, start, func(t *testing.T, w *testEnv) {
		s, end := w.system(&memoryJournal{left: -1}, definitions...)
		defer end()
		for _, d := range definitions {
			w.sites[d.ID] = failWith(source.Empty)
		}
		c := w.collecting(s, definitions...)
		n := w.run(c)
		test(t, w, s, n)
	})
}

// centralBank publishes a value for each business day at 16:30; Monday the 9th is a holiday, and after Tuesday the
// 10th it is frozen.
func (w *testEnv) centralBank(context.Context, int) (string, error) {
	published := engine.DateOf(w.now().Add(-16*time.Hour - 30*time.Minute))
	for published == dateOf("2026-11-07") || published == dateOf("2026-11-08") || published == dateOf("2026-11-09") {
		published--
	}
	published = min(published, dateOf("2026-11-10"))
	return fmt.Sprintf("bcrd USD 58.%02d 59.%02d %v", published%100, published%100, published), nil
}

// TestT3_HolidayWeekend: a long weekend, with one source frozen and one silent.
func TestT3_HolidayWeekend(t *testing.T) {
	bank, popular := usdSource("bcrd-reference", "bcrd"), usdSource("popular-site", "popular")
	bank.Kind, bank.Expiry = engine.Reference, source.Expiry{AfterCheck: 98 * time.Hour, AfterDate: 120 * time.Hour}
	at := func(day, hour int) time.Time { return santoDomingo(2026, 11, day, hour, 0, 0) }
	inSystem(t, at(5, 9), []*source.Definition{bank, popular}, func(t *testing.T, w *testEnv, s *actors.System, n *runningCollector) {
		silent := func(now time.Time) bool { return !now.Before(at(7, 12)) && now.Before(at(10, 8)) }
		w.sites["bcrd-reference"] = w.centralBank
		w.sites["popular-site"] = func(context.Context, int) (string, error) {
			if silent(w.now()) {
				return "", source.Failf(source.Empty, "closed")
			}
			return oneQuote, nil
		}
		var effective engine.Date
		var first, checked time.Time // of the bank's value; of popular
		for now := at(5, 9).Add(90 * time.Minute); now.Before(at(18, 0)); now = now.Add(30 * time.Minute) {
			w.advanceTo(now)
			slot := Daily.Last(now)
			if slot.Before(at(5, 12)) {
				continue // nothing has been collected yet
			}
			all := rates(t, s)
			if !silent(slot) {
				checked = slot
			}
			rate := all["popular:USD:unspecified:commercial"]
			if rate.Stale != !now.Before(checked.Add(26*time.Hour)) || !rate.LastCheckedAt.Equal(checked) || rate.CollectedAt.After(at(5, 12)) {
				t.Fatalf("%v: popular %+v, want checked at %v", now, rate, checked)
			}
			rate = all["bcrd:USD:unspecified:reference"]
			if rate.EffectiveDate != effective {
				effective, first = rate.EffectiveDate, slot
			}
			want := engine.DateOf(slot.Add(-16*time.Hour - 30*time.Minute))
			if want > dateOf("2026-11-06") && want < dateOf("2026-11-10") {
				want = dateOf("2026-11-06")
			}
			want = min(want, dateOf("2026-11-10"))
			expires := slot.Add(98 * time.Hour)
			if end := (want + 1).Start().Add(120 * time.Hour); end.Before(expires) {
				expires = end
			}
			if rate.EffectiveDate != want || !rate.LastCheckedAt.Equal(slot) || !rate.CollectedAt.Equal(first) && first.After(at(5, 12)) ||
				!rate.ExpiresAt.Equal(expires) || rate.Stale != !now.Before(expires) {
				t.Fatalf("%v: the central bank %+v, want %v, checked at %v, until %v", now, rate, want, slot, expires)
			}
			if now.Equal(at(9, 8)) && (rate.Stale || want != dateOf("2026-11-06") || !all["popular:USD:unspecified:commercial"].Stale) {
				t.Fatalf("Monday 08:00: %+v", all)
			}
		}
		if rate := rates(t, s)["bcrd:USD:unspecified:reference"]; !rate.Stale || !rate.ExpiresAt.Equal(at(16, 0)) {
			t.Errorf("a bank that says the 10th for ever: %+v, want it stale since the 16th", rate)
		}
		if !n.health("bcrd-reference").LastSuccess.Equal(at(17, 17)) {
			t.Errorf("%+v", n.health("bcrd-reference"))
		}
	})
}

// TestT4_EverySlotIsACheck collects the same document, then another value, then the old value under a new date.
func TestT4_EverySlotIsACheck(t *testing.T) {
	d := usdSource("popular-site", "popular")
	slot := santoDomingo(2026, 9, 14, 8, 0, 0)
	inSystem(t, slot.Add(-time.Minute), []*source.Definition{d}, func(t *testing.T, w *testEnv, s *actors.System, _ *runningCollector) {
		var changed time.Time
		last := ""
		for _, text := range []string{"58.10 59.30", "58.10 59.30", "58.10 59.30", "58.20 59.30", "58.20 59.30", "58.20 59.30 2026-09-15"} {
			if text != last {
				changed, last = slot, text
			}
			w.sites[d.ID] = servePages(0, "popular USD "+text)
			w.advanceTo(slot.Add(time.Minute))
			rate := rates(t, s)["popular:USD:unspecified:commercial"]
			if !rate.LastCheckedAt.Equal(slot) || !rate.CollectedAt.Equal(changed) || !rate.ExpiresAt.Equal(slot.Add(26*time.Hour)) {
				t.Errorf("%s at %v: %+v, want it collected at %v", text, slot, rate, changed)
			}
			slot = Daily.Next(slot)
		}
	})
}

// TestI4_FailuresChangeNothing: each source fails in its own way for two days; its rates stay until they expire.
func TestI4_FailuresChangeNothing(t *testing.T) {
	always := func(b pageServer) func(string) pageServer { return func(string) pageServer { return b } }
	says := func(rest string) func(string) pageServer {
		return func(house string) pageServer { return servePages(0, house+" USD "+rest) }
	}
	faults := map[string]func(house string) pageServer{
		"hang": always(hangUntilCancelled), "panic": always(servePages(0, "panic")), "nothing": always(servePages(0, "")), "zeros": says("0 0"),
		"swapped": says("59.30 58.10"), "ten times": says("581.0 593.0"), "no side": says("N/A N/A"),
		"unknown": always(servePages(0, "unheard-of USD 58.10 59.30")),
	}
	for _, kind := range []source.FailureKind{
		source.Network, source.Timeout, source.TLS, source.HTTPStatus, source.Blocked, source.WrongContent, source.Empty, source.Layout, source.Value,
	} {
		faults[string(kind)] = always(failWith(kind))
	}
	names, houses := slices.Sorted(maps.Keys(faults)), strings.Fields(`popular bhd bdi ademi caribe lafise banesco scotiabank promerica
		qik vimenca apap banreservas union santa-cruz activo jmmb`)
	definitions := make([]*source.Definition, len(names))
	for i := range names {
		definitions[i] = usdSource(fmt.Sprintf("source-%02d", i), houses[i])
	}
	inSystem(t, santoDomingo(2026, 9, 14, 7, 0, 0), definitions, func(t *testing.T, w *testEnv, s *actors.System, n *runningCollector) {
		id := func(i int) string { return houses[i] + ":USD:unspecified:commercial" }
		recover := func() map[string]*engine.Rate {
			t.Helper()
			for i, d := range definitions {
				w.sites[d.ID] = says("58.10 59.30")(houses[i])
			}
			w.advanceTo((engine.DateOf(w.now()) + 1).Start().Add(9 * time.Hour)) // the first slot of the day, for a source that rests
			good := rates(t, s)
			for i, d := range definitions {
				if good[id(i)].Stale || n.health(d.ID).State != OK {
					t.Fatalf("beside %s: %+v, %+v", names[i], good[id(i)], n.health(d.ID))
				}
			}
			return good
		}
		good := recover()
		for i, d := range definitions {
			w.sites[d.ID] = faults[names[i]](houses[i])
		}
		for range 12 {
			w.advanceTo(w.now().Add(4 * time.Hour))
			all := rates(t, s)
			for i, name := range names {
				rate, want := *all[id(i)], *good[id(i)]
				want.Stale = !w.now().Before(want.ExpiresAt)
				if rate != want {
					t.Fatalf("%s: at %v %+v became %+v", name, w.now(), want, rate)
				}
			}
		}
		for i, d := range definitions {
			if h := n.health(d.ID); h.State == OK || h.State == Partial || h.ConsecutiveFailures < 5 {
				t.Errorf("%s: %+v", names[i], h)
			}
		}
		recover()
	})
}

// TestX26_LossOfAPart: a source that lacks a part for three slots is degraded, also after a crash, until the part is
// back or has been gone for 64 slots. Its rates are what it says all the time.
func TestX26_LossOfAPart(t *testing.T) {
	d, other := usdSource("popular-site", "popular"), usdSource("bhd-site", "bhd")
	inTestEnv(t, santoDomingo(2026, 9, 14, 7, 0, 0), func(t *testing.T, w *testEnv) {
		log := &memoryJournal{left: -1}
		s, end := w.system(log, d, other)
		const step = 10 * time.Minute
		run := func() *runningCollector {
			c := w.collecting(s, d, other)
			c.Schedule = Schedule(step)
			return w.run(c)
		}
		n := run()
		w.sites[other.ID] = servePages(0, "bhd USD 58 59\nbhd EUR 68 70")
		// expect runs some slots with a page, and then wants the state, the missing sides and the sell price of the euro.
		expect := func(page string, slots int, state State, missing int, sell string) {
			t.Helper()
			w.sites[d.ID] = servePages(0, page)
			for range slots {
				w.advanceTo(w.now().Truncate(step).Add(step + time.Minute))
			}
			h := n.health(d.ID)
			if got := h.Baseline.Missing(); h.State != state || len(got) != missing {
				t.Fatalf("%v: %s, %q, want %s and %d missing: %+v", w.now(), h.State, got, state, missing, h)
			}
			if rate := rates(t, s)["popular:EUR:unspecified:commercial"]; rate.Sell.String() != sell || !rate.LastCheckedAt.Equal(h.LastTry.Truncate(time.Second)) {
				t.Fatalf("%v: published %+v, want sell %q as the page says", w.now(), rate, sell)
			}
		}
		logged := func(text string, times int) {
			t.Helper()
			if got := strings.Count(w.log.String(), text); got != times {
				t.Fatalf("%q is logged %d times, want %d:\n%s", text, got, times, w.log)
			}
		}
		const whole, half = "popular USD 58 59\npopular EUR 68 70", "popular USD 58 59\npopular EUR 68 ."
		expect(whole, 30, OK, 0, "70")
		expect(half, 2, OK, 0, "")
		expect(half, 1, Degraded, 1, "")
		logged("lacks a side that it gave before", 1)

		n.stop(w)
		end()
		s, end = w.system(log, d, other)
		defer func() { end() }()
		n = run()
		if h := n.health(d.ID); h.Runs != 0 || len(h.Baseline.Missing()) != 1 {
			t.Fatalf("after a crash: %+v", h)
		}
		expect(half, 5, Degraded, 1, "")
		w.sites[d.ID] = failWith(source.Empty) // it is not the fault of a side
		w.advanceTo(w.now().Truncate(step).Add(step + time.Minute))
		if h := n.health(d.ID); h.State != Failing {
			t.Fatalf("%+v", h)
		}
		expect(whole, 1, OK, 0, "70")
		logged("lacks no side any more", 1)

		expect(whole, 60, OK, 0, "70")
		expect(half, 63, Degraded, 1, "")
		expect(half, 1, OK, 0, "")
		expect(half, 5, OK, 0, "")
		if h := n.health(other.ID); h.State != OK || len(h.Baseline.Missing()) != 0 {
			t.Fatalf("another source: %+v", h)
		}
		n.stop(w)
		w.running = nil
	})
}

// TestI3_ThinAnswers: a page that lost most of its rows changes nothing; a page that failed removes no quote.
func TestI3_ThinAnswers(t *testing.T) {
	d := twoPages("infodolar", "")
	start := santoDomingo(2026, 9, 14, 7, 0, 0)
	houses := []string{"popular", "bhd", "bdi", "ademi", "caribe", "lafise"}
	table := func(currency, buy, sell string, n int) string {
		var lines strings.Builder
		for _, house := range houses[:n] {
			fmt.Fprintf(&lines, "%s %s %s %s\n", house, currency, buy, sell)
		}
		return lines.String()
	}
	inSystem(t, start, []*source.Definition{d}, func(t *testing.T, w *testEnv, s *actors.System, n *runningCollector) {
		usd, eur := table("USD", "58.10", "59.30", 6), table("EUR", "68.10", "70.30", 6)
		w.sites[d.ID] = func(_ context.Context, page int) (string, error) {
			if text := []string{usd, eur}[page]; text != "" {
				return text, nil
			}
			return "", source.Failf(source.Network, "planted")
		}
		expect := func(when string, state State, want map[string]string) {
			t.Helper()
			w.advanceTo(Daily.Next(w.now()).Add(time.Minute))
			if h := n.health(d.ID); h.State != state {
				t.Errorf("%s: %+v, want %s", when, h, state)
			}
			all := rates(t, s)
			for id, buy := range want {
				if rate := all[id]; rate == nil || rate.Buy.String() != buy {
					t.Errorf("%s: %s is %+v, want %s", when, id, rate, buy)
				}
			}
		}
		usdOf, eurOf := "%s:USD:unspecified:commercial", "%s:EUR:unspecified:commercial"
		popularUSD, lafiseUSD := fmt.Sprintf(usdOf, "popular"), fmt.Sprintf(usdOf, "lafise")
		popularEUR := fmt.Sprintf(eurOf, "popular")
		expect("the whole table", OK, map[string]string{popularUSD: "58.10", lafiseUSD: "58.10", popularEUR: "68.10"})
		usd = table("USD", "58.20", "59.40", 2)
		expect("two rows of six", Partial, map[string]string{popularUSD: "58.10", lafiseUSD: "58.10", popularEUR: "68.10"})
		usd, eur = table("USD", "58.30", "59.50", 4), ""
		expect("four rows, and no page of euros", Partial, map[string]string{popularUSD: "58.30", lafiseUSD: "58.10", popularEUR: "68.10"})
		if h := n.health(d.ID); h.Quarantined != 0 || h.Failure.Page != "eur" {
			t.Errorf("%+v", h)
		}
		usd, eur = "", table("EUR", "68.20", "70.40", 1)
		expect("one row of euros, and no page of dollars", Quarantined, map[string]string{popularUSD: "58.30", popularEUR: "68.10"})
		usd, eur = table("USD", "58.40", "59.60", 6), table("EUR", "68.30", "70.50", 6)
		expect("the whole table again", OK, map[string]string{popularUSD: "58.40", lafiseUSD: "58.40", popularEUR: "68.30"})
	})
}

// TestI4_HalvesOfAQuote: a quote with one page for each side keeps both sides until both pages have answered again.
func TestI4_HalvesOfAQuote(t *testing.T) {
	d := twoPages("empire-site", "empire")
	d.Pages[1].Currency = "USD"
	start := santoDomingo(2026, 9, 14, 7, 0, 0)
	inTestEnv(t, start, func(t *testing.T, w *testEnv) {
		s, end := w.system(&memoryJournal{left: -1}, d)
		defer end()
		buy, fails := "58.10", 0
		w.sites[d.ID] = func(_ context.Context, page int) (string, error) {
			if page == 1 && fails > 0 {
				fails--
				return "", source.Failf(source.Network, "planted")
			}
			return []string{"empire USD " + buy + " .", "empire USD . 59.30"}[page], nil
		}
		n := w.run(w.collecting(s, d))
		expect := func(when, want string, checked time.Time) {
			t.Helper()
			rate := rates(t, s)["empire:USD:unspecified:commercial"]
			if got := rate.Buy.String() + "/" + rate.Sell.String(); got != want || !rate.LastCheckedAt.Equal(checked) {
				t.Errorf("%s: %s checked at %v, want %s at %v", when, got, rate.LastCheckedAt, want, checked)
			}
		}
		w.advanceTo(start.Add(time.Minute))
		expect("both pages", "58.10/59.30", start)
		slot := Daily.Next(start)
		buy, fails = "58.20", 1
		w.advanceTo(slot.Add(time.Minute))
		expect("one page of two", "58.10/59.30", start)
		slot = Daily.Next(slot)
		w.advanceTo(slot.Add(time.Minute))
		expect("both at the next slot", "58.20/59.30", slot)
		if h := n.health(d.ID); h.State != OK || h.Accepted != 1 {
			t.Errorf("%+v", h)
		}
		buy, fails = "58.30", 99
		w.advanceTo(Daily.Next(slot).Add(time.Minute))
		expect("one page at another slot", "58.20/59.30", slot)
		if h := n.health(d.ID); h.State != Failing || h.Failure.Page != "eur" || h.ConsecutiveFailures != 1 {
			t.Errorf("%+v", h)
		}
	})
}

// crashRound kills a real node at instants around a slot, and counts its log by source, currency and slot, and the
// broken appends.
func crashRound(t *testing.T, random *rand.Rand, slot time.Time, plant func(*Config)) (count map[string]int, cut int) {
	definitions := []*source.Definition{twoPages("a-site", "popular"), twoPages("b-site", "bhd"), twoPages("c-site", "bdi")}
	inTestEnv(t, slot.Add(-10*time.Second), func(t *testing.T, w *testEnv) {
		for _, d := range definitions {
			w.sites[d.ID] = servePages(time.Second, d.Institution+" USD 58.10 59.30", d.Institution+" EUR 68.10 70.30")
		}
		log := &memoryJournal{}
		live := func(appends int, span time.Duration) {
			s, end := w.system(log, definitions...)
			c := w.collecting(s, definitions...)
			c.Jitter, c.Random = time.Second, rand.New(rand.NewPCG(random.Uint64(), 0))
			plant(&c)
			crashed := make(chan struct{})
			log.left, log.crashed = appends, func() { close(crashed); cut++ }
			n := w.run(c)
			select {
			case <-crashed:
			case <-time.NewTimer(span).C:
			}
			n.stop(w)
			end()
		}
		for w.now().Before(slot.Add(30 * time.Second)) {
			live(random.IntN(4), time.Duration(random.Int64N(int64(15*time.Second))))
		}
		live(-1, time.Hour)
		count = log.publishedCounts(t)
	})
	for _, d := range definitions {
		for _, currency := range []string{"USD", "EUR"} {
			count[fmt.Sprintf("%s %s %s", d.ID, currency, slot.Format(time.RFC3339))] += 0
		}
	}
	return count, cut
}

// checkCrashes wants each slot of each source and currency once in the log, and gives how many lives ended within an
// append.
func checkCrashes(t *testing.T, seed uint64, slot time.Time, rounds int) (cut int) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, uint64(slot.Hour())))
	for round := range rounds {
		count, lives := crashRound(t, random, slot, func(*Config) {})
		cut += lives
		for name, times := range count {
			if times != 1 {
				t.Errorf("seed %d, round %d: %s: %d publications, want 1", seed, round, name, times)
			}
		}
	}
	if cut == 0 {
		t.Error("no life ended within an append")
	}
	return cut
}

// TestD5_CrashAroundASlot kills a real node around a slot and starts it again: each quote is published once.
func TestD5_CrashAroundASlot(t *testing.T) {
	seed := rand.Uint64() //nolint:forbidigo // printed below
	cut := checkCrashes(t, seed, santoDomingo(2026, 9, 14, 8, 0, 0), sweep(8, 200))
	t.Logf("seed %d: %d crashes within an append", seed, cut)
}

// otherSlots gives each publication a slot of its own.
type otherSlots struct {
	Sink
	count *atomic.Int64
}

func (o otherSlots) Observe(refreshes []engine.Refresh) (engine.Receipt, error) {
	for i := range refreshes {
		if !refreshes[i].Slot.IsZero() {
			refreshes[i].Slot = refreshes[i].Slot.Add(time.Duration(o.count.Add(1)))
		}
	}
	return o.Sink.Observe(refreshes)
}

// TestD5_ControlCrash takes away what keeps a slot from being published twice.
func TestD5_ControlCrash(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 0))
	var published atomic.Int64
	found := 0
	for range 5 {
		count, _ := crashRound(t, random, santoDomingo(2026, 9, 14, 8, 0, 0), func(c *Config) {
			c.Sink, c.LastSlot = otherSlots{c.Sink, &published}, nil
		})
		for _, times := range count {
			found += max(times-1, 0)
		}
	}
	if found == 0 {
		t.Error("nothing was published twice; TestD5_CrashAroundASlot is blind")
	}
	t.Logf("%d publications too many in 5 rounds", found)
}
