package engine

import (
	"encoding/csv"
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// sweep returns whole when SWEEP=whole, as in make check, and sample otherwise.
func sweep(sample, whole int) int {
	if os.Getenv("SWEEP") == "whole" {
		return whole
	}
	return sample
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// parsed returns a value without its error.
func parsed[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func at(text string) time.Time { return parsed(time.Parse(time.RFC3339, text)) }

func dayOf(text string) Date { return parsed(ParseDate(text)) }

func decimalFrom(text string) Decimal { return parsed(ParseDecimal(text)) }

// noon is an ordinary Wednesday in Santo Domingo.
var noon = at("2026-06-17T16:00:00Z")

// fixture is a state whose events are applied at once.
type fixture struct {
	t     *testing.T
	state *CurrencyState
	now   time.Time
}

func newFixture(t *testing.T) *fixture {
	return &fixture{t, NewCurrencyState("USD", testCatalogue(), DefaultRules()), noon}
}

// testCatalogue adds sources of all kinds: an aggregator, an official one that speaks only on business days, one with
// plausible ranges, and one with a name and an address.
func testCatalogue() *Catalogue {
	return DefaultCatalogue().WithSources(
		Source{ID: "infodolar", Name: "InfoDolar", Priority: 200, UpstreamSource: "InfoDolar", Lifetime: LifetimeDefault},
		Source{ID: "bcrd-reference", Name: "Tasa de referencia", Priority: 100, Lifetime: 98 * time.Hour},
		Source{ID: "past", Name: "Historia", Priority: 100, Lifetime: LifetimeDefault, PlausibleRanges: []PlausibleRange{
			{Currency: "USD", JumpPermille: 100},
			{Currency: "USD", Until: dayOf("2003-12-31"), Lowest: decimalFrom("10"), Highest: decimalFrom("60"), JumpPermille: 300},
			{Currency: "USD", Until: dayOf("1999-12-31"), Lowest: decimalFrom("8"), Highest: decimalFrom("20")},
			{Currency: "EUR", Lowest: decimalFrom("1")},
		}},
		Source{ID: "bdi-site", Name: "Sitio web de Banco BDI", URL: "https://www.bdi.com.do/", Priority: 100, Lifetime: LifetimeDefault},
	)
}

func (f *fixture) apply(command Command) Receipt {
	f.t.Helper()
	decision, err := f.state.Decide(command, f.now)
	if err != nil {
		f.t.Fatalf("decide %T: %v", command, err)
	}
	for _, event := range decision.Events {
		f.state.Apply(event)
	}
	return decision.Receipt
}

// observe adds one refresh of a source, observed now.
func (f *fixture) observe(source string, observations ...Observation) Receipt {
	f.t.Helper()
	return f.apply(Observe{[]Refresh{{SourceID: source, ObservedAt: f.now, Observations: observations}}})
}

// accept is observe without refusals.
func (f *fixture) accept(source string, observations ...Observation) {
	f.t.Helper()
	if receipt := f.observe(source, observations...); len(receipt.Refused) > 0 {
		f.t.Fatalf("refused: %+v", receipt.Refused)
	}
}

// refuse is observe with all observations refused for one reason.
func (f *fixture) refuse(reason Reason, source string, observations ...Observation) {
	f.t.Helper()
	receipt := f.observe(source, observations...)
	if len(receipt.Refused) == 0 {
		f.t.Fatalf("accepted, want %s: %+v", reason, observations)
	}
	for _, refusal := range receipt.Refused {
		if refusal.Reason != reason || refusal.Detail == "" || refusal.QuarantineID == 0 {
			f.t.Fatalf("refusal %+v, want reason %s, a detail and a number in quarantine", refusal, reason)
		}
	}
}

func (f *fixture) advance(d time.Duration) { f.now = f.now.Add(d) }

func (f *fixture) view() *currencyView { return f.state.Snapshot().view(f.now) }

func (f *fixture) marketView() *MarketView {
	return NewMarketView(f.state.catalogue, []*CurrencySnapshot{f.state.Snapshot()}, f.now)
}

func (f *fixture) ranked(q RankingQuery) *Page[*Rate] {
	q.Currency = f.state.currency
	return f.marketView().Ranking(q)
}

// rate is the only published rate of an institution.
func (f *fixture) rate(institution string) *Rate {
	f.t.Helper()
	page := f.marketView().Rates(RatesQuery{Filter{Institution: institution}, PageRequest{LimitMax, 0}})
	if len(page.Items) != 1 {
		f.t.Fatalf("%s has %d rates, want 1", institution, len(page.Items))
	}
	return page.Items[0]
}

func (f *fixture) ranking(operation Operation) []string {
	page := f.ranked(RankingQuery{Operation: operation, PageRequest: PageRequest{LimitMax, 0}})
	ids := make([]string, len(page.Items))
	for i, rate := range page.Items {
		ids[i] = rate.InstitutionID + "/" + string(rate.Channel)
	}
	return ids
}

func usd(institution, buy, sell string) Observation {
	return Observation{InstitutionID: institution, Currency: "USD", Buy: buy, Sell: sell}
}

const realObservations = "../../shared/data/observations.csv"

// realRefreshes are real observations, grouped by source and time.
func realRefreshes(t *testing.T) []Refresh {
	t.Helper()
	file, err := os.Open(realObservations)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the real observations are not here: " + realObservations)
	}
	must(t, err)
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	must(t, err)
	var refreshes []Refresh
	for _, line := range lines[1:] {
		observed, source := at(line[0]), line[7]
		if n := len(refreshes); n == 0 || refreshes[n-1].SourceID != source || !refreshes[n-1].ObservedAt.Equal(observed) {
			refreshes = append(refreshes, Refresh{SourceID: source, ObservedAt: observed})
		}
		effective, _ := ParseDate(line[8])
		last := &refreshes[len(refreshes)-1]
		last.Observations = append(last.Observations, Observation{
			InstitutionID: line[1], Currency: line[2], Channel: Channel(line[3]), Kind: Kind(line[4]),
			Buy: line[5], Sell: line[6], EffectiveDate: effective,
		})
	}
	return refreshes
}

// drawTexts checks random texts, fuzzTexts those of a fuzzer.
func drawTexts(t *testing.T, texts *rapid.Generator[string], faultOf func(string) string) {
	rapid.Check(t, func(t *rapid.T) {
		if fault := faultOf(texts.Draw(t, "text")); fault != "" {
			t.Fatal(fault)
		}
	})
}

func fuzzTexts(f *testing.F, faultOf func(string) string, seeds ...string) {
	for _, text := range seeds {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if fault := faultOf(text); fault != "" {
			t.Error(fault)
		}
	})
}

// History returns the daily rows that match the query, including those of inactive institutions.
func (s *CurrencySnapshot) History(q HistoryQuery) *Page[HistoryEntry] {
	return (&MarketView{snapshots: []*CurrencySnapshot{s}}).History(q)
}
