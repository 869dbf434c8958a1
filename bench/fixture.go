//go:build linux

package main

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/apitest"
)

// fixtureSize is the amount of data in a fixture.
type fixtureSize struct {
	// institutions is the number of institutions that publish rates in every currency, without the central bank.
	// currencies is the number of currencies. If the program's catalogue of institutions and currencies has fewer,
	// newFixture invents more.
	institutions, currencies int
	accounts                 int // number of accounts, each with one API key
	days                     int // number of days with rates, including today
}

// standardSize is about the amount of data in a public node. It has all institutions of the catalogue.
func standardSize() fixtureSize {
	return fixtureSize{institutions: 44, currencies: 8, accounts: 1000, days: 30}
}

// fixture is a data directory for a node, with the API keys of its accounts.
type fixture struct {
	dir         string       // the data directory; a node that uses it changes its contents
	catalogue   string       // file for the flag --catalogue, with the invented institutions and currencies; "" if there are none
	keys        []string     // one API key for each account
	certificate *certificate // of the node; nil if it serves plain HTTP
}

// certificate is a certificate for the loopback address.
type certificate struct {
	file, key string      // paths of the PEM files with the certificate and its key
	client    *tls.Config // configuration of a client that trusts the certificate
}

// newCertificate writes the certificate of package httptest and its key into the directory dir.
func newCertificate(dir string) (*certificate, error) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		return nil, err
	}
	c := &certificate{file: filepath.Join(dir, "tls.pem"), key: filepath.Join(dir, "tls.key")}
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	c.client = &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS13}
	return c, errors.Join(
		os.WriteFile(c.file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600),
		os.WriteFile(c.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
}

// fixtureSeed makes the data the same in each run, except for the dates: the newest day is today.
const fixtureSeed = 20

// newFixture creates the data in dir, which must be new or empty.
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
	// Lenient turns off checks of plausibility. They would keep invented quotes from being published.
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

// publishDays publishes one quote (buy and sell price) of each source for each of the days up to today.
func publishDays(node *apitest.Server, sources []quoteSource, days int) {
	random := rand.New(rand.NewPCG(fixtureSeed, 0))
	for day := max(1, days) - 1; day >= 0; day-- {
		// The times are whole seconds, because PostgreSQL stores microseconds and must return the same times as the node.
		observedAt, rates := time.Now().AddDate(0, 0, -day).Truncate(time.Second), []apitest.Rate{}
		for i := range sources {
			sources[i].drift(random)
			rates = append(rates, sources[i].rate(observedAt))
		}
		node.Clock.Set(observedAt)
		node.Publish(rates...)
	}
}

// quoteSource generates the quotes of one institution for one currency. Prices are in hundredths of a peso.
type quoteSource struct {
	institution, currency string
	source                string
	kind                  engine.Kind
	mid, spread           int
	hasDate               bool // quotes have an effective date
}

// newMarket returns the quote sources of all institutions and currencies. The quotes of the central bank are reference
// rates: official rates, which are published only for information.
func newMarket(catalogue *engine.Catalogue, size fixtureSize) []quoteSource {
	random := rand.New(rand.NewPCG(fixtureSeed, 1))
	var sources []quoteSource
	for _, currency := range pickCurrencies(catalogue, size.currencies) {
		price := cmp.Or(midRates()[currency], otherMidRate)
		count := 0
		for _, institution := range catalogue.Institutions() {
			s := quoteSource{
				institution: institution.ID, currency: currency, source: institution.ID + "-site", kind: engine.Commercial,
				mid: price + random.IntN(price/40+1), spread: price/200 + random.IntN(price/50+1) + 1,
				hasDate: random.IntN(3) == 0,
			}
			switch {
			case !institution.Active:
				continue
			case institution.Type == engine.Official:
				s.kind = engine.Reference
			case count == size.institutions:
				continue
			default:
				count++
			}
			sources = append(sources, s)
		}
	}
	return sources
}

// drift changes the mid price at random by at most a thousandth. Real prices change by about as much in a day.
func (q *quoteSource) drift(random *rand.Rand) { q.mid += random.IntN(q.mid/500+1) - q.mid/1000 }

func (q *quoteSource) rate(at time.Time) apitest.Rate {
	format := func(hundredths int) string { return fmt.Sprintf("%d.%02d", hundredths/100, hundredths%100) }
	r := apitest.Rate{
		Institution: q.institution, Currency: q.currency, Kind: q.kind, Buy: format(q.mid - q.spread), Sell: format(q.mid + q.spread), Source: q.source,
	}
	if q.hasDate {
		r.EffectiveDate = engine.DateOf(at).String()
	}
	return r
}

// midRates returns plausible mid prices in hundredths of a peso. Currencies that it leaves out have the price
// otherMidRate.
func midRates() map[string]int {
	return map[string]int{"USD": 5900, "EUR": 6800, "GBP": 7800, "CHF": 7200, "CAD": 4300}
}

const otherMidRate = 2000

// pickCurrencies returns count currency codes, the currencies of midRates first.
func pickCurrencies(catalogue *engine.Catalogue, count int) []string {
	codes := slices.Sorted(maps.Keys(midRates()))
	for _, currency := range catalogue.Currencies() {
		if midRates()[currency.Code] == 0 {
			codes = append(codes, currency.Code)
		}
	}
	return codes[:min(count, len(codes))]
}

// inventedCatalogue returns a catalogue file with the institutions and currencies that a size needs in addition to
// those of the program. It returns nil if none are needed.
func inventedCatalogue(size fixtureSize) ([]byte, error) {
	type entry map[string]string
	institutions, currencies := []entry{}, []entry{}                                                              // not nil: null in JSON is not a valid list
	known := len(newMarket(engine.DefaultCatalogue(), fixtureSize{institutions: math.MaxInt, currencies: 1})) - 1 // without the central bank
	for number := 1; known+len(institutions) < size.institutions; number++ {
		id := fmt.Sprintf("inventada-%04d", number)
		institutions = append(institutions, entry{
			"id": id, "name": fmt.Sprintf("Entidad Inventada Número %d", number), "type": string(engine.Exchange), "website": "https://" + id + ".example",
			"description": "Entidad inventada para medir con más entidades que las que hay.",
		})
	}
	for number := len(engine.DefaultCatalogue().Currencies()); number < size.currencies; number++ {
		// ISO 4217 assigns only one code that begins with Q, and the catalogue does not have it.
		code := string([]byte{'Q', byte('A' + number/26%26), byte('A' + number%26)})
		currencies = append(currencies, entry{"code": code, "name": "Moneda inventada " + code})
	}
	if len(institutions)+len(currencies) == 0 {
		return nil, nil
	}
	return json.Marshal(map[string]any{"institutions": institutions, "currencies": currencies})
}

// observationHeader is the first line of an observations file, a CSV file for tasard import.
const observationHeader = "observedAt,institutionId,currency,channel,kind,buy,sell,sourceId,effectiveDate,publishedAt\n"

// appendLine appends a quote as a line of an observations file.
func (q *quoteSource) appendLine(dst []byte, source string, at time.Time) []byte {
	r := q.rate(at)
	return fmt.Appendf(dst, "%s,%s,%s,%s,%s,%s,%s,%s,%s,\n", at.UTC().Format(time.RFC3339), r.Institution, r.Currency, engine.Unspecified, r.Kind,
		r.Buy, r.Sell, source, r.EffectiveDate)
}

// writeObservations writes an observations file. It writes a quote of each source in market, one source after the
// other, and starts again until the file has at least the given number of lines. age returns how long ago a line was
// observed. source is the source ID in each line. If it is "", a line has the source ID of its quote.
func writeObservations(path string, market []quoteSource, lines int, source string, age func(line int) time.Duration) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write observations: %w", err)
	}
	now, random := time.Now().Truncate(time.Second), rand.New(rand.NewPCG(fixtureSeed, 8))
	text := []byte(observationHeader)
	for line := 0; line < lines && err == nil; {
		for i := range market {
			market[i].drift(random)
			text = market[i].appendLine(text, cmp.Or(source, market[i].source), now.Add(-age(line)))
			line++
		}
		_, err = file.Write(text)
		text = text[:0]
	}
	return errors.Join(err, file.Close())
}
