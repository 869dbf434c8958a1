package source_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// realWorkbook parses a real workbook of the central bank; the test is skipped where it is absent.
func realWorkbook(t *testing.T, id, name string) (*source.Definition, source.Answer) {
	t.Helper()
	file := filepath.Join("..", "..", "..", "shared", "data", name)
	body, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		t.Skip("there is no " + name)
	}
	if err != nil {
		t.Fatal(err)
	}
	d, known := source.DefaultSet().Find(id)
	if !known {
		t.Fatalf("there is no source %s", id)
	}
	answer, err := d.Parse(0, &source.Document{Body: body})
	if err != nil {
		t.Fatal(err)
	}
	return d, answer
}

// takeIn hands a whole history to fresh books, and returns what each currency accepted and what was held, as "CAD 2018-01-18".
func takeIn(t *testing.T, d *source.Definition, answer source.Answer, rules engine.Rules) (accepted map[string]int, held []string) {
	t.Helper()
	catalogue := engine.DefaultCatalogue().WithSources(source.DefaultSet().Sources()...)
	books := map[string]*engine.Book{}
	accepted = map[string]int{}
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, refresh := range collectors.Refreshes(d, []source.Answer{answer}, now, time.Time{}) {
		byCurrency := map[string][]engine.Observation{}
		for _, observation := range refresh.Observations {
			byCurrency[observation.Currency] = append(byCurrency[observation.Currency], observation)
		}
		for currency, observations := range byCurrency {
			if books[currency] == nil {
				books[currency] = engine.NewBook(currency, catalogue, rules)
			}
			own := refresh
			own.Observations = observations
			decision, err := books[currency].Decide(engine.Observe{Refreshes: []engine.Refresh{own}}, now)
			if err != nil {
				t.Fatal(err)
			}
			for _, event := range decision.Events {
				books[currency].Apply(event)
			}
			accepted[currency] += decision.Receipt.Accepted
			for _, refusal := range decision.Receipt.Refused {
				held = append(held, fmt.Sprintf("%s %s %s", currency, refusal.Observation.EffectiveDate, refusal.Reason))
			}
		}
	}
	slices.Sort(held)
	return accepted, held
}

// Errors of the central bank's own files: exchanged sides, and values that leap and come back the next day.
func knownErrorsOfUSD() []string { return []string{"USD 1991-01-25 crossed"} }

func knownErrorsOfOthers() []string {
	return []string{
		"CAD 2008-10-16 jump", "CAD 2010-05-31 jump", "CAD 2010-06-28 jump", "CAD 2018-01-18 jump", "CHF 2009-08-22 jump",
		"DKK 2009-07-03 jump", "SEK 2005-07-11 jump", "SEK 2009-08-22 jump", "SEK 2017-03-07 jump",
	}
}

func TestI3_TheWholeHistoryOfTheDollarPasses(t *testing.T) {
	d, answer := realWorkbook(t, "bcrd-usd", "bcrd__TASA_DOLAR_REFERENCIA_MC__2020-12-07.xls")
	accepted, held := takeIn(t, d, answer, engine.DefaultRules())
	t.Logf("%d days accepted, held: %v", accepted["USD"], held)
	if accepted["USD"] != 7516 || !slices.Equal(held, knownErrorsOfUSD()) {
		t.Errorf("%d days accepted, want 7516; held %v, want %v", accepted["USD"], held, knownErrorsOfUSD())
	}
}

func TestI3_TheWholeHistoryOfTheOtherCurrenciesPasses(t *testing.T) {
	if source.RaceDetector {
		t.Skip("one goroutine reads it all: without the race detector")
	}
	d, answer := realWorkbook(t, "bcrd-currencies", "bcrd__TASAS_CONVERTIBLES_OTRAS_MONEDAS__2020-03-27.xls")
	accepted, held := takeIn(t, d, answer, engine.DefaultRules())
	t.Logf("accepted: %v, held: %v, notes: %q", accepted, held, answer.Notes)
	if !slices.Equal(held, knownErrorsOfOthers()) {
		t.Errorf("held %v, want %v", held, knownErrorsOfOthers())
	}
	if accepted["EUR"] < 4000 || accepted["CNY"] < 2000 || accepted["VES"] != 0 {
		t.Errorf("accepted %v; want 4,000 of the euro, 2,000 of the yuan, none of the bolivar fuerte", accepted)
	}
}

// Control: without the bounds of the definition, decades of good values would be held back.
func TestI3_TheHistoryNeedsItsBounds(t *testing.T) {
	if source.RaceDetector {
		t.Skip("one goroutine does it all: without the race detector")
	}
	d, answer := realWorkbook(t, "bcrd-usd", "bcrd__TASA_DOLAR_REFERENCIA_MC__2020-12-07.xls")
	unbounded := *d
	unbounded.ID = "bcrd-unbounded"
	if _, held := takeIn(t, &unbounded, answer, engine.DefaultRules()); len(held) < 1000 {
		t.Errorf("only %d values are held without bounds: the test above proves nothing", len(held))
	}
}
