package sources

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/setting"
	"github.com/tasard/tasard/collectors/archive"
	"github.com/tasard/tasard/collectors/source"
)

// archiveOptions select an archive of fetched documents.
type archiveOptions struct {
	data, archive string
	save          bool
}

func (o *archiveOptions) add(flags *pflag.FlagSet) {
	setting.AddData(flags, &o.data)
	setting.AddArchive(flags, &o.archive)
}

func (o *archiveOptions) dir() (string, error) {
	if dir := setting.ArchiveDir(o.archive, o.data); dir != "" {
		return dir, nil
	}
	return "", exit.Errorf(exit.Usage, "no archive; name it with --archive DIR, or the data directory of its node with --data DIR")
}

// existing returns the directory of an archive from which documents are read.
func (o *archiveOptions) existing() (string, error) {
	dir, err := o.dir()
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", exit.Errorf(exit.NoInput, "%s: there is no archive; a node that collects makes one, and so does tasard sources check --save", dir)
	}
	return dir, nil
}

// keepingError adds an exit code to an error of a Writer. If err is nil, it returns nil.
func keepingError(dir string, err error) error {
	if err == nil {
		return nil
	}
	return exit.Errorf(exit.CannotWrite, "keep documents in %s: %w", dir, err)
}

// reading is what a definition reads from a document.
type reading struct {
	Failure string         `json:"failure,omitempty"`
	Rates   []archive.Rate `json:"rates"`
	Notes   []string       `json:"notes,omitempty"`
}

// read reads an archived document with a definition. The page is that of the same name, or the only one.
func read(d *source.Definition, entry *archive.Entry, document *source.Document) reading {
	page := slices.IndexFunc(d.Pages, func(p source.Page) bool { return p.Name == entry.Page })
	if page < 0 {
		only, err := FindPage(d, "")
		if err != nil {
			return reading{Failure: fmt.Sprintf("the definition has no page %s", entry.Page), Rates: []archive.Rate{}}
		}
		page = only
	}
	result, err := d.Parse(page, document)
	r := reading{Rates: []archive.Rate{}, Notes: result.Notes}
	if err != nil {
		r.Failure = err.Error()
	}
	for i := range result.Observations {
		r.Rates = append(r.Rates, archive.RateOf(&result.Observations[i]))
	}
	return r
}

// change is a quote of a document that is read in two different ways. One of them may be nil: the quote is not read.
type change struct {
	Before *archive.Rate `json:"before,omitempty"`
	After  *archive.Rate `json:"after,omitempty"`
}

// compareRates returns the quotes that differ, sorted. If a quote is there twice, both are compared in their order.
func compareRates(before, after []archive.Rate) []change {
	byQuote := map[string]*change{}
	add := func(rates []archive.Rate, set func(*change, *archive.Rate)) {
		seen := map[string]int{}
		for i := range rates {
			quote := quoteOf(&rates[i])
			seen[quote]++
			key := fmt.Sprint(quote, " ", seen[quote])
			if byQuote[key] == nil {
				byQuote[key] = &change{}
			}
			set(byQuote[key], &rates[i])
		}
	}
	add(before, func(c *change, rate *archive.Rate) { c.Before = rate })
	add(after, func(c *change, rate *archive.Rate) { c.After = rate })
	changes := []change{}
	for _, c := range byQuote {
		if c.Before == nil || c.After == nil || valueOf(c.Before) != valueOf(c.After) {
			changes = append(changes, *c)
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.quote()+valueOf(a.After), b.quote()+valueOf(b.After)) })
	return changes
}

func (c *change) quote() string { return quoteOf(cmp.Or(c.Before, c.After)) }

// quoteOf names the quote of a rate as the API does: institution:currency:channel:kind.
func quoteOf(r *archive.Rate) string {
	return strings.Join([]string{r.InstitutionID, r.Currency, string(r.Channel), string(r.Kind)}, ":")
}

// valueOf returns the sides of a rate and its date. It is "-" for nil.
func valueOf(r *archive.Rate) string {
	if r == nil {
		return "-"
	}
	value := cmp.Or(r.Buy, "-") + " / " + cmp.Or(r.Sell, "-")
	if r.EffectiveDate != "" {
		value += ", " + r.EffectiveDate
	}
	return value
}
