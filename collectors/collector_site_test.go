package collectors

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/collectors/fetch"
	"github.com/tasard/tasard/collectors/simulated"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// pipeline is everything at once, on loopback: the simulated site, the fetcher, the collector, a node.
type pipeline struct {
	market *simulated.Market
	site   *simulated.Site
	set    *source.Set
	system *actors.System
	clock  func() time.Time
}

func newPipeline(t *testing.T) *pipeline {
	t.Helper()
	began := time.Now() //nolint:forbidigo // sockets live in real time
	noon := time.Date(2026, 9, 16, 16, 30, 0, 0, time.UTC)
	p := &pipeline{
		market: simulated.NewMarket(4), set: simulated.Definitions(source.DefaultSet()),
		clock: func() time.Time { return noon.Add(time.Since(began)) }, //nolint:forbidigo // the same clock, set to a Wednesday
	}
	p.market.Step(p.clock())
	p.site = simulated.NewSite(simulated.SiteConfig{Market: p.market, Clock: p.clock})
	if err := p.site.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.site.Close() })
	var err error
	p.system, err = actors.Open(actors.Config{
		Dir: t.TempDir(), Clock: p.clock, Catalogue: engine.DefaultCatalogue().WithSources(p.set.Sources()...),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.system.Close() })
	<-p.system.Ready()
	return p
}

// collect runs a collector that knows of nothing until every source has been tried once.
func (p *pipeline) collect(t *testing.T) map[string]Health {
	t.Helper()
	client := fetch.New(fetch.Config{
		Clock: p.clock, Dial: p.site.Dial, Roots: p.site.Roots(), Pause: -1, BudgetMax: 6 * time.Second, RequestMax: 5 * time.Second,
	})
	defer client.Close()
	c := New(Config{
		Definitions: p.set.Definitions(), Fetcher: client, Sink: p.system, Clock: p.clock, CatchUpSpread: -1,
		Random: rand.New(rand.NewPCG(1, 1)),
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), HistoryDays: HistoryDaysLive,
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	health := map[string]Health{}
	ticker, late := time.NewTicker(20*time.Millisecond), time.NewTimer(2*time.Minute)
	defer ticker.Stop()
	defer late.Stop()
	for waiting := true; waiting; {
		select {
		case <-ticker.C:
		case <-late.C:
			t.Error("some source was never tried")
			waiting = false
		}
		missing := 0
		for _, h := range c.Health() {
			if health[h.SourceID] = h; h.State == Never {
				missing++
			}
		}
		waiting = waiting && missing > 0
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	return health
}

// TestPipeline collects every definition over HTTP into a real node, with a few institutions in trouble: what is published is what
// the market says, from everybody else, and once for the slot (D5).
func TestPipeline(t *testing.T) {
	p := newPipeline(t)
	broken := map[string]struct {
		fault simulated.Fault
		state State
		kind  source.FailureKind
	}{
		"demo-bhd-site":       {simulated.Hang, Failing, source.Timeout},
		"demo-banesco-site":   {simulated.LostDecimal, Held, source.Implausible},
		"demo-lafise-site":    {simulated.EmptyBody, Failing, source.Empty},
		"demo-vimenca-site":   {simulated.Swapped, Held, source.Implausible},
		"demo-qik-site":       {simulated.Challenge, Failing, source.Blocked},
		"demo-bcrd-usd":       {simulated.Half, Failing, source.WrongContent},
		"demo-bdi-site":       {simulated.Expired, Failing, source.TLS},
		"demo-promerica-site": {simulated.Layout, Failing, source.Layout},
	}
	for id, trouble := range broken {
		if err := p.site.Break(id, trouble.fault); err != nil {
			t.Fatal(err)
		}
	}
	health := p.collect(t)
	wellRead := 0
	for id, h := range health {
		want, trouble := broken[id]
		switch {
		case h.State == Disabled:
		case trouble && (h.State != want.state || h.Failure.Kind != want.kind):
			t.Errorf("%s with %s: %s, %v; want %s, %s", id, want.fault, h.State, &h.Failure, want.state, want.kind)
		case !trouble && h.State != OK:
			t.Errorf("%s: %s: %+v", id, h.State, h)
		case !trouble:
			wellRead++
		}
	}
	page, err := p.system.Rates(engine.RatesQuery{Cut: engine.Cut{Limit: 10 * engine.LimitMax}})
	if err != nil {
		t.Fatal(err)
	}
	for _, rate := range page.Items {
		key := engine.QuoteKey{Institution: rate.InstitutionID, Channel: rate.Channel, Kind: rate.Kind}
		want, ok := p.market.Quote(key, rate.Currency)
		if _, trouble := broken[rate.SourceID]; !ok || trouble || rate.Stale ||
			!sameText(rate.Buy, want.Buy) || !sameText(rate.Sell, want.Sell) {
			t.Errorf("%s by %s: %s/%s, the market says %s/%s", rate.ID, rate.SourceID, rate.Buy, rate.Sell, want.Buy, want.Sell)
		}
	}
	t.Logf("%d sources well read, %d rates published, %d sources in trouble", wellRead, page.Total, len(broken))
	p.site.Mend("demo-bhd-site")      // nobody needs to wait for it again
	for id, h := range p.collect(t) { // the same slot once more
		if _, trouble := broken[id]; !trouble && h.State != Disabled && (h.Accepted > 0 || h.Repeated != h.Read || h.Read == 0) {
			t.Errorf("%s was taken in twice for one slot: %+v", id, h)
		}
	}
}

// sameText compares the sides as numbers: a page may write 58.1 for 58.10.
func sameText(side engine.Decimal, text string) bool {
	if text == "" {
		return side.IsNull()
	}
	want, err := engine.ParseDecimal(text)
	return err == nil && side.Equal(want)
}
