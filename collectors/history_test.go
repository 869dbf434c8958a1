package collectors

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// The real workbook of the central bank, edition of 2023: every day is read, and believed but for the bank's own
// errors. Without the bounds of the definition, decades of good values would be held back. The test is skipped where
// the workbook is absent.
func TestI3_TheWholeHistoryPasses(t *testing.T) {
	body, err := os.ReadFile(filepath.Join("..", "..", "shared", "data", "bcrd__TASA_DOLAR_REFERENCIA_MC__2023-04-20.xlsx"))
	if os.IsNotExist(err) {
		t.Skip("there is no workbook")
	}
	must(t, err)
	bounded, _ := source.DefaultSet().Find("bcrd-usd")
	unbounded := *bounded
	unbounded.ID = "bcrd-unbounded"
	answer, err := bounded.Parse(0, &source.Document{Body: body})
	must(t, err)
	show := func(o engine.Observation) string {
		return fmt.Sprint(o.Currency, " ", o.Buy, " ", o.Sell, " ", o.EffectiveDate)
	}
	if len(answer.History) != 8111 || len(answer.Observations) != 1 || len(answer.Notes) > 0 {
		t.Fatalf("%d days before the newest, %d rates, notes %q", len(answer.History), len(answer.Observations), answer.Notes)
	}
	if first, newest := show(answer.History[0].Observations[0]), show(answer.Observations[0]); first != "USD 11.2 11.5 1991-01-02" || newest != "USD 54.4749 54.6807 2023-04-20" {
		t.Errorf("from %s to %s", first, newest)
	}
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, d := range []*source.Definition{bounded, &unbounded} {
		l, held := newTestEngine(t, engine.DefaultRules(), source.DefaultSet().Sources()...), []string{}
		for _, refresh := range BuildRefreshes(d, []source.Result{answer}, now, time.Time{}) {
			for _, refusal := range l.observe([]engine.Refresh{refresh}, now) {
				held = append(held, fmt.Sprint(refusal.Observation.EffectiveDate, " ", refusal.Reason))
			}
		}
		if d == bounded && !slices.Equal(held, []string{"1991-01-25 crossed"}) || d != bounded && len(held) < 1000 {
			t.Errorf("%s: %d values are held, the first of them %q", d.ID, len(held), held[:min(len(held), 3)])
		}
	}
}
