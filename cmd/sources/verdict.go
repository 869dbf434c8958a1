package sources

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// verdict is the result of checking a source, by the operator's possible action.
type verdict string

// The verdicts, in the order of the table: first those that need a repaired definition.
const (
	changed     verdict = "changed"     // the document does not match the definition, or has another address
	partial     verdict = "partial"     // a page is missing, or a rate is refused
	noPrices    verdict = "empty"       // the document is as expected, without prices
	failed      verdict = "failed"      // a fault of this program
	unreachable verdict = "unreachable" // no document: network, TLS, or a status that is not 200
	blocked     verdict = "blocked"     // the site or its robots.txt forbids the request
	fine        verdict = "ok"
)

// cutRunes is the number of runes shown of an explanation.
const cutRunes = 200

// verdictOf returns the verdict on a source. rates is the number of rates accepted by the engine, refused the list of
// those refused.
func verdictOf(failure *source.Failure, rates int, refused []string) verdict {
	switch {
	case failure == nil && len(refused) == 0:
		return fine
	case failure == nil && rates == 0:
		return changed
	case failure == nil || rates > 0:
		return partial
	}
	switch failure.Kind {
	case source.Layout, source.WrongContent, source.Value, source.Implausible:
		return changed
	case source.Empty:
		return noPrices
	case source.Blocked:
		return blocked
	case source.HTTPStatus:
		if failure.Status >= 300 && failure.Status < 400 || failure.Status == http.StatusNotFound || failure.Status == http.StatusGone {
			return changed // the page has another address now
		}
		return unreachable
	case source.Network, source.Timeout, source.TLS:
		return unreachable
	case source.Internal:
	}
	return failed
}

// refusals returns the observations that a node would not publish, and why: prices outside the plausible range, crossed
// sides and so on. It asks the engine, without earlier rates.
func refusals(catalogue *engine.Catalogue, d *source.Definition, observations []engine.Observation, now time.Time) []string {
	results := make([]source.Result, len(d.Pages))
	results[0].Observations = observations
	byCurrency, refused := engine.SplitByCurrency(catalogue, collectors.BuildRefreshes(d, results, now, time.Time{}))
	for code, parts := range byCurrency {
		state := engine.NewCurrencyState(code, catalogue, engine.DefaultRules())
		for i := range parts {
			if decision, err := state.Decide(engine.Observe{Refreshes: []engine.Refresh{parts[i].Refresh}}, now); err == nil {
				refused = append(refused, decision.Receipt.Refused...)
			}
		}
	}
	texts := make([]string, len(refused))
	for i := range refused {
		o := &refused[i].Observation
		texts[i] = o.InstitutionID + " " + o.Currency + ": " + string(refused[i].Reason) + ": " + refused[i].Detail
	}
	slices.Sort(texts)
	return texts
}

// isOffline reports whether a source was not reached at all. Its site may be well.
func (s *sourceReport) isOffline() bool {
	return s.Failure != nil && len(s.Observations) == 0 &&
		(s.Failure.Kind == string(source.Network) || s.Failure.Kind == string(source.Timeout))
}

// explanation points to the cause of the verdict.
func (s *sourceReport) explanation() string {
	var parts []string
	if s.Failure != nil {
		text := s.Failure.Detail
		if _, cause, ok := strings.Cut(text, ": dial "); ok { // earlier requests do not matter then
			text = "dial " + cause
		}
		if s.Failure.Page != "" {
			text = "page " + s.Failure.Page + ": " + text
		}
		parts = append(parts, text)
	}
	if len(s.Refused) > 0 {
		parts = append(parts, fmt.Sprintf("refused: %s", s.Refused[0]))
		if more := len(s.Refused) - 1; more > 0 {
			parts = append(parts, fmt.Sprintf("and %d more", more))
		}
	}
	return strings.Join(parts, "; ")
}

// printTable prints a line for each source, first those that need a repair: the reason for the failure, its rates
// meanwhile, and the next command.
func printTable(out io.Writer, reports []sourceReport) {
	order := []verdict{changed, partial, noPrices, failed, unreachable, blocked, fine}
	sorted := slices.SortedStableFunc(slices.Values(reports), func(a, b sourceReport) int {
		return cmp.Compare(slices.Index(order, a.Verdict), slices.Index(order, b.Verdict))
	})
	terminal.Table(out, "SOURCE\tVERDICT\tEVIDENCE\tRATES\tITS RATES MEANWHILE\tNEXT\tWHY", sorted, func(s *sourceReport) []any {
		return []any{s.Source, s.Verdict, s.Evidence, len(s.Observations), s.Meanwhile, s.Next, elide(s.explanation(), cutRunes)}
	})
}
