package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/apitest"
)

// fixtureSize is how much data there is.
type fixtureSize struct {
	// institutions that publish in every currency, beside the central bank. Those that the node does not know by itself are invented,
	// and so are currencies.
	institutions, currencies int
	accounts                 int // each with one key
	days                     int // of history, today included
}

// standardSize is about what the node has to do with: every institution that it knows by itself, and nothing invented.
func standardSize() fixtureSize {
	return fixtureSize{institutions: 44, currencies: 8, accounts: 1000, days: 30}
}

// fixture is what everybody serves.
type fixture struct {
	// dir is a data directory of the node. Danger: a node that runs on it changes it; copyData makes another one.
	dir string
	// catalogue is the file that describes what is invented, "" when nothing is. The node is given it with --catalogue.
	catalogue string
	// keys are one of each account.
	keys []string
}

// fixtureSeed makes the same data on every machine, but for the dates, which end today.
const fixtureSeed = 20

// newFixture makes the data below a directory, which is new or empty.
func newFixture(dir string, size fixtureSize) (f *fixture, err error) {
	f = &fixture{dir: filepath.Join(dir, "data")}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data: %w", err)
	}
	catalogue := engine.DefaultCatalogue()
	invented, err := inventedCatalogue(size)
	if err != nil {
		return nil, err
	}
	if invented != nil {
		f.catalogue = filepath.Join(dir, "catalogue.json")
		if err := os.WriteFile(f.catalogue, invented, 0o600); err != nil {
			return nil, fmt.Errorf("make the data: %w", err)
		}
		if catalogue, err = catalogue.Extend(strings.NewReader(string(invented)), f.catalogue); err != nil {
			return nil, fmt.Errorf("make the data: %w", err)
		}
	}
	// Lenient: the market of the fixture is invented, and what is measured is not whether anybody would believe it.
	node, err := apitest.Open(apitest.Follow(time.Now), apitest.Catalogue(catalogue), apitest.Lenient())
	if err != nil {
		return nil, fmt.Errorf("make the data: %w", err)
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	if err := publishDays(node, newBooths(catalogue, size), size.days); err != nil {
		return nil, fmt.Errorf("make the data: %w", err)
	}
	if f.keys, err = node.Keys(size.accounts); err != nil {
		return nil, fmt.Errorf("make the accounts: %w", err)
	}
	state, err := node.Snapshot()
	if err != nil {
		return nil, fmt.Errorf("make the data: %w", err)
	}
	return f, state.Write(f.dir)
}

// publishDays has everybody publish once a day, until now.
func publishDays(node *apitest.Node, all []booth, days int) error {
	random := rand.New(rand.NewPCG(fixtureSeed, 0))
	for day := max(1, days) - 1; day >= 0; day-- {
		// Whole seconds, because PostgreSQL keeps no nanoseconds and must answer the same.
		at := time.Now().AddDate(0, 0, -day).Truncate(time.Second)
		node.Clock.Set(at)
		for i := range all {
			all[i].drift(random)
		}
		receipt, err := node.Observe(refreshesOf(all, at)...)
		if err == nil && len(receipt.Refused) > 0 {
			err = fmt.Errorf("%d rates are not published: %s", len(receipt.Refused), receipt.Refused[0].Detail)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// refreshesOf is what each institution's source says at an instant.
func refreshesOf(all []booth, at time.Time) []engine.Refresh {
	var list []engine.Refresh
	places := map[string]int{}
	for i := range all {
		b := &all[i]
		place, known := places[b.source]
		if !known {
			place = len(list)
			places[b.source], list = place, append(list, engine.Refresh{SourceID: b.source, ObservedAt: at})
		}
		list[place].Observations = append(list[place].Observations, b.observation(at))
	}
	return list
}

// booth is where an institution changes a currency: what it asks and pays, in hundredths of a peso.
type booth struct {
	institution, currency string
	source                string
	kind                  engine.Kind
	middle, spread        int
	dated                 bool // it says for which day it is
}

// newBooths are those of all institutions, the central bank's references included.
func newBooths(catalogue *engine.Catalogue, size fixtureSize) []booth {
	random := rand.New(rand.NewPCG(fixtureSeed, 1))
	var all []booth
	for _, currency := range chosenCurrencies(catalogue, size.currencies) {
		worth := worthOf(currency)
		sellers := 0
		for _, institution := range catalogue.Institutions() {
			one := booth{
				institution: institution.ID, currency: currency, source: institution.ID + "-site", kind: engine.Commercial,
				middle: worth + random.IntN(worth/40+1), spread: worth/200 + random.IntN(worth/50+1) + 1,
				dated: random.IntN(3) == 0,
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

// drift is what a day does to a price: a part in a thousand up or down, at most.
func (b *booth) drift(random *rand.Rand) { b.middle += random.IntN(b.middle/500+1) - b.middle/1000 }

func (b *booth) observation(at time.Time) engine.Observation {
	text := func(hundredths int) string { return fmt.Sprintf("%d.%02d", hundredths/100, hundredths%100) }
	o := engine.Observation{
		InstitutionID: b.institution, Currency: b.currency, Kind: b.kind, Buy: text(b.middle - b.spread), Sell: text(b.middle + b.spread),
	}
	if b.dated {
		o.EffectiveDate = engine.DateOf(at)
	}
	return o
}

// worthOf is about what a unit of a currency costs, in hundredths of a peso: within the band in which it is believed.
func worthOf(currency string) int {
	known := map[string]int{"USD": 5900, "EUR": 6800, "GBP": 7800, "CHF": 7200, "CAD": 4300}
	if worth, is := known[currency]; is {
		return worth
	}
	return 2000
}

// chosenCurrencies begin with those that are asked for.
func chosenCurrencies(catalogue *engine.Catalogue, count int) []string {
	chosen := []string{"USD", "EUR", "GBP", "CAD", "CHF"}
	for _, currency := range catalogue.Currencies() {
		switch currency.Code {
		case "USD", "EUR", "GBP", "CAD", "CHF":
		default:
			chosen = append(chosen, currency.Code)
		}
	}
	return chosen[:min(count, len(chosen))]
}

// inventedCatalogue describes what a size needs beyond what the program knows; nil when that is enough.
func inventedCatalogue(size fixtureSize) ([]byte, error) {
	type institution struct {
		ID          string                 `json:"id"`
		Name        string                 `json:"name"`
		Type        engine.InstitutionType `json:"type"`
		Website     string                 `json:"website"`
		Description string                 `json:"description"`
	}
	type currency struct {
		Code string `json:"code"`
		Name string `json:"name"`
	}
	var file struct {
		Institutions []institution `json:"institutions"`
		Currencies   []currency    `json:"currencies"`
	}
	file.Institutions, file.Currencies = []institution{}, []currency{} // a catalogue has lists, and no null
	sellers := 0
	for _, known := range engine.DefaultCatalogue().Institutions() {
		if known.Active && known.Type != engine.Official {
			sellers++
		}
	}
	for number := 1; sellers < size.institutions; number++ {
		id := fmt.Sprintf("inventada-%04d", number)
		file.Institutions = append(file.Institutions, institution{
			id, fmt.Sprintf("Entidad Inventada Número %d", number), engine.Exchange, "https://" + id + ".example",
			"Entidad inventada para medir con más entidades que las que hay.",
		})
		sellers++
	}
	for number := len(engine.DefaultCatalogue().Currencies()); number < size.currencies; number++ {
		// From QAA on there is one code of ISO 4217, and it is not among ours.
		code := string([]byte{'Q', byte('A' + number/26%26), byte('A' + number%26)})
		file.Currencies = append(file.Currencies, currency{code, "Moneda inventada " + code})
	}
	if len(file.Institutions)+len(file.Currencies) == 0 {
		return nil, nil
	}
	return json.Marshal(&file)
}

// copyData copies a data directory on which no node runs into a new one.
func copyData(from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return fmt.Errorf("copy the data: %w", err)
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return fmt.Errorf("copy the data: %w", err)
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue // the socket of a node that was killed
		}
		if err := copyFile(filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())); err != nil {
			return fmt.Errorf("copy the data: %w", err)
		}
	}
	return nil
}

func copyFile(from, to string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
