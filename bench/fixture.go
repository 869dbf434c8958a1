//go:build linux

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/apitest"
)

// fixtureSize is the amount of data.
type fixtureSize struct {
	// institutions publish rates in every currency, besides the central bank. Those beyond the node's catalogue are
	// invented, and so are currencies.
	institutions, currencies int
	accounts                 int // each with one key
	days                     int // of history, including today
}

// standardSize is about what a public node has: every institution of the catalogue.
func standardSize() fixtureSize {
	return fixtureSize{institutions: 44, currencies: 8, accounts: 1000, days: 30}
}

// fixture is the data of a node.
type fixture struct {
	// dir is a data directory. A node running on it changes it.
	dir string
	// catalogue is the path of a file that describes invented institutions and currencies, for --catalogue; "" if
	// there are none.
	catalogue string
	// keys are one for each account.
	keys []string
	// certificate makes the node serve HTTPS; nil = HTTP.
	certificate *certificate
}

// fixtureSeed makes the data reproducible, except for dates, which end today.
const fixtureSeed = 20

// newFixture makes the data below a new or empty directory.
func newFixture(dir string, size fixtureSize) (*fixture, error) {
	f := &fixture{dir: filepath.Join(dir, "data")}
	if err := f.make(dir, size); err != nil {
		return nil, fmt.Errorf("make the data of a node: %w", err)
	}
	return f, nil
}

func (f *fixture) make(dir string, size fixtureSize) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	catalogue := engine.DefaultCatalogue()
	invented, err := inventedCatalogue(size)
	if err != nil {
		return err
	}
	if invented != nil {
		f.catalogue = filepath.Join(dir, "catalogue.json")
		if err := os.WriteFile(f.catalogue, invented, 0o600); err != nil {
			return err
		}
		if catalogue, err = catalogue.Extend(bytes.NewReader(invented), f.catalogue); err != nil {
			return err
		}
	}
	// Lenient: plausibility checks would quarantine the invented market.
	node, err := apitest.Open(apitest.Catalogue(catalogue), apitest.Lenient())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	var state *apitest.State
	if err := node.Do(func(s *apitest.Server) {
		publishDays(s, newMarket(catalogue, size), size.days)
		f.keys, state = s.Keys(size.accounts), s.Snapshot()
	}); err != nil {
		return err
	}
	return state.Write(f.dir)
}

// publishDays has every institution publish once a day, until now.
func publishDays(node *apitest.Server, all []quoteSource, days int) {
	random := rand.New(rand.NewPCG(fixtureSeed, 0))
	for day := max(1, days) - 1; day >= 0; day-- {
		// Whole seconds, because PostgreSQL stores microseconds and must answer the same.
		at, rates := time.Now().AddDate(0, 0, -day).Truncate(time.Second), []apitest.Rate{}
		for i := range all {
			all[i].drift(random)
			rates = append(rates, all[i].rate(at))
		}
		node.Clock.Set(at)
		node.Publish(rates...)
	}
}

// quoteSource is the quote of one institution for one currency, in hundredths of a peso.
type quoteSource struct {
	institution, currency string
	source                string
	kind                  engine.Kind
	mid, spread           int
	hasDate               bool // it publishes an effective date
}

// newMarket returns the quotes of all institutions, including the central bank's reference rates.
func newMarket(catalogue *engine.Catalogue, size fixtureSize) []quoteSource {
	random := rand.New(rand.NewPCG(fixtureSeed, 1))
	var all []quoteSource
	for _, currency := range chosenCurrencies(catalogue, size.currencies) {
		worth := cmp.Or(midRates()[currency], mediumRate)
		sellers := 0
		for _, institution := range catalogue.Institutions() {
			one := quoteSource{
				institution: institution.ID, currency: currency, source: institution.ID + "-site", kind: engine.Commercial,
				mid: worth + random.IntN(worth/40+1), spread: worth/200 + random.IntN(worth/50+1) + 1,
				hasDate: random.IntN(3) == 0,
			}
			switch {
			case !institution.Active:
				continue
			case institution.Type == engine.Official:
				one.kind = engine.Reference
			case sellers == size.institutions:
				continue
			default:
				sellers++
			}
			all = append(all, one)
		}
	}
	return all
}

// drift moves the mid price by at most a thousandth, as a day does.
func (b *quoteSource) drift(random *rand.Rand) { b.mid += random.IntN(b.mid/500+1) - b.mid/1000 }

func (b *quoteSource) rate(at time.Time) apitest.Rate {
	text := func(hundredths int) string { return fmt.Sprintf("%d.%02d", hundredths/100, hundredths%100) }
	r := apitest.Rate{
		Institution: b.institution, Currency: b.currency, Kind: b.kind, Buy: text(b.mid - b.spread), Sell: text(b.mid + b.spread), Source: b.source,
	}
	if b.hasDate {
		r.EffectiveDate = engine.DateOf(at).String()
	}
	return r
}

// midRates are plausible mid prices of the requested currencies, in hundredths of a peso. Others have midRateDefault.
func midRates() map[string]int {
	return map[string]int{"USD": 5900, "EUR": 6800, "GBP": 7800, "CHF": 7200, "CAD": 4300}
}

const mediumRate = 2000

// chosenCurrencies returns count currencies, those of midRates first.
func chosenCurrencies(catalogue *engine.Catalogue, count int) []string {
	chosen := []string{"USD", "EUR", "GBP", "CAD", "CHF"}
	for _, currency := range catalogue.Currencies() {
		if midRates()[currency.Code] == 0 {
			chosen = append(chosen, currency.Code)
		}
	}
	return chosen[:min(count, len(chosen))]
}

// inventedCatalogue describes the institutions and currencies that a size needs beyond the program's catalogue; nil
// if there are none.
func inventedCatalogue(size fixtureSize) ([]byte, error) {
	type entry map[string]string
	file := map[string][]entry{"institutions": {}, "currencies": {}} // a list must not be null
	sellers := 0
	for _, known := range engine.DefaultCatalogue().Institutions() {
		if known.Active && known.Type != engine.Official {
			sellers++
		}
	}
	for number := 1; sellers < size.institutions; number++ {
		id := fmt.Sprintf("inventada-%04d", number)
		file["institutions"] = append(file["institutions"], entry{
			"id": id, "name": fmt.Sprintf("Entidad Inventada Número %d", number), "type": string(engine.Exchange), "website": "https://" + id + ".example",
			"description": "Entidad inventada para medir con más entidades que las que hay.",
		})
		sellers++
	}
	for number := len(engine.DefaultCatalogue().Currencies()); number < size.currencies; number++ {
		// ISO 4217 assigns one code from QAA on, which the catalogue does not have.
		code := string([]byte{'Q', byte('A' + number/26%26), byte('A' + number%26)})
		file["currencies"] = append(file["currencies"], entry{"code": code, "name": "Moneda inventada " + code})
	}
	if len(file["institutions"])+len(file["currencies"]) == 0 {
		return nil, nil
	}
	return json.Marshal(file)
}

// observationHeader is the first line of an observations file.
const observationHeader = "observedAt,institutionId,currency,channel,kind,buy,sell,sourceId,effectiveDate,publishedAt\n"

// appendLine appends a line of an observations file: the quote at an instant, published by source.
func (b *quoteSource) appendLine(dst []byte, source string, at time.Time) []byte {
	r := b.rate(at)
	return fmt.Appendf(dst, "%s,%s,%s,%s,%s,%s,%s,%s,%s,\n", at.UTC().Format(time.RFC3339), r.Institution, r.Currency, engine.Unspecified, r.Kind,
		r.Buy, r.Sell, source, r.EffectiveDate)
}

// writeObservations writes an observations file: whole rounds of a market, each line observed ago(line). list is the
// one source of all lines; "" = each institution is its own source.
func writeObservations(path string, market []quoteSource, lines int, list string, ago func(line int) time.Duration) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write observations: %w", err)
	}
	now, random := time.Now().Truncate(time.Second), rand.New(rand.NewPCG(fixtureSeed, 8))
	text := []byte(observationHeader)
	for line := 0; line < lines && err == nil; {
		for i := range market {
			market[i].drift(random)
			text = market[i].appendLine(text, cmp.Or(list, market[i].source), now.Add(-ago(line)))
			line++
		}
		_, err = file.Write(text)
		text = text[:0]
	}
	return errors.Join(err, file.Close())
}
