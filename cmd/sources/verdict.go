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
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/admin"
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

// verdictOf returns the verdict on a source of whose rates some were accepted.
func verdictOf(failure *source.Failure, accepted, rates int) verdict {
	switch {
	case failure == nil && accepted == rates:
		return fine
	case accepted > 0:
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

// judge is a collectors.Sink that publishes nothing: it tells what a node without earlier rates would refuse.
type judge struct {
	catalogue *engine.Catalogue
	clock     func() time.Time
}

// Observe implements collectors.Sink.
func (j judge) Observe(refreshes []engine.Refresh) (receipt engine.Receipt, err error) {
	byCurrency, refused := engine.SplitByCurrency(j.catalogue, refreshes)
	receipt.Refused = refused
	for code, parts := range byCurrency {
		for i := range parts {
			state := engine.NewCurrencyState(code, j.catalogue, engine.DefaultRules())
			decision, err := state.Decide(engine.Observe{Refreshes: []engine.Refresh{parts[i].Refresh}}, j.clock())
			if err != nil {
				return receipt, err
			}
			for _, refusal := range decision.Receipt.Refused {
				refusal.Refresh = parts[i].RefreshIndex
				receipt.Refused = append(receipt.Refused, refusal)
			}
		}
	}
	return receipt, nil
}

// accepted returns the rates that a node would publish.
func (s *sourceReport) accepted() []admin.SourceRate {
	return slices.DeleteFunc(slices.Clone(s.Rates), func(r admin.SourceRate) bool { return r.Reason != "" })
}

// isOffline reports whether a source was not reached at all. Its site may be well.
func (s *sourceReport) isOffline() bool {
	return s.Failure != nil && len(s.Rates) == 0 &&
		(s.Failure.Kind == string(source.Network) || s.Failure.Kind == string(source.Timeout))
}

// explanation describes the cause of the verdict.
func (s *sourceReport) explanation() string {
	var parts []string
	if s.Failure != nil && s.Failure.Kind != string(source.Implausible) { // the refusals say more
		text := s.Failure.Detail
		if _, cause, ok := strings.Cut(text, ": dial "); ok { // earlier requests do not matter then
			text = "dial " + cause
		}
		if s.Failure.Page != "" {
			text = "page " + s.Failure.Page + ": " + text
		}
		parts = append(parts, text)
	}
	more := -1
	for _, r := range s.Rates {
		if r.Reason == "" {
			continue
		}
		if more++; more == 0 {
			parts = append(parts, fmt.Sprintf("refused: %s %s: %s: %s", r.InstitutionID, r.Currency, r.Reason, r.Detail))
		}
	}
	if more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
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
		return []any{s.Source, s.Verdict, s.Evidence, len(s.Rates), s.Meanwhile, s.Next, shortenMiddle(s.explanation(), cutRunes)}
	})
}
