package collectors

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
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
			t: t, start: start, began: bubbleClock(), sites: map[string]pageServer{}, sink: newFakeSink(),
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

func newFakeSink() *fakeSink { return &fakeSink{newestSlots: map[[2]string]time.Time{}} }

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

func dateOf(text string) engine.Date {
	date, err := engine.ParseDate(text)
	if err != nil {
		panic(err)
	}
	return date
}

type panicking struct{}

func (panicking) Observe([]engine.Refresh) (engine.Receipt, error) { panic("planted") }
