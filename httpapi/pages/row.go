package pages

import (
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
)

// row is a rate in the table of rates, all of it as texts: the template does no more than write them down, which is most of the work of
// the page.
type row struct {
	Place     int // 1 = best; equal sides share a place. 0 = not ranked
	Name      string
	Path      string // of the institution's page
	Channel   string // in words, "" when the institution makes no difference
	Checked   stamp
	Source    string
	SourceURL string
	Sell, Buy string
	Side      engine.Decimal // the one that the operation applies
	Total     string         // what the amount costs or brings, with commas, "" without an amount
	Stale     bool
}

// stamp is an instant, as machines and people read it.
type stamp struct{ Machine, Instant, Ago string }

// scribe writes rows in one language.
type scribe struct {
	language Language
	texts    words
	now      time.Time
}

func (p *Pages) scribe(r *Request) *scribe {
	return &scribe{r.Language, p.words[r.Language].with(p.frame.words[r.Language]), r.Now}
}

func (s *scribe) row(rate *engine.Rate, operation engine.Operation) (row, error) {
	one := row{
		Name: rate.InstitutionName, Path: s.language.Path("/institutions/" + rate.InstitutionID), SourceURL: rate.SourceURL,
		Sell: shown(rate.Sell), Buy: shown(rate.Buy), Side: rate.Side(operation), Stale: rate.Stale,
	}
	var err error
	if one.Checked, err = s.stamp(rate.LastCheckedAt); err != nil {
		return row{}, err
	}
	if rate.Channel != engine.Unspecified {
		if one.Channel, err = s.texts.text("channel." + string(rate.Channel)); err != nil {
			return row{}, err
		}
	}
	one.Source, err = s.source(rate)
	if rate.Manual {
		one.SourceURL = ""
	}
	return one, err
}

// source says who the source of a rate is, and whom it repeats.
func (s *scribe) source(rate *engine.Rate) (string, error) {
	switch {
	case rate.Manual:
		return s.texts.text("source.manual")
	case strings.Contains(rate.SourceName, rate.UpstreamSource): // an empty one too
		return rate.SourceName, nil
	}
	via, err := s.texts.text("source.via", rate.UpstreamSource)
	return rate.SourceName + " (" + via + ")", err
}

func (s *scribe) stamp(at time.Time) (stamp, error) {
	ago, err := s.texts.ago(s.now, at)
	return stamp{at.UTC().Format(time.RFC3339), s.language.Instant(at), ago}, err
}

// shown is a side as it was published.
func shown(side engine.Decimal) string {
	if side.IsNull() {
		return noValue
	}
	return side.String()
}

// ranking are the rows of a ranking, and what the amount makes at each (S8, as /v1/convert says it).
func (s *scribe) ranking(rates []*engine.Rate, q question) ([]row, error) {
	rows := make([]row, 0, len(rates))
	for i, rate := range rates {
		one, err := s.row(rate, q.Operation)
		if err != nil {
			return nil, err
		}
		one.Place = i + 1
		if i > 0 && one.Side.Compare(rows[i-1].Side) == 0 {
			one.Place = rows[i-1].Place
		}
		if q.Amount.String() != "" {
			one.Total = grouped(engine.Conversion{Quote: rate, Operation: q.Operation, Amount: q.Amount}.AmountDOP())
		}
		rows = append(rows, one)
	}
	return rows, nil
}

// unranked are the rows of the rates that no ranking has: expired ones, and those without the side that the operation applies (S4).
func (s *scribe) unranked(rates []*engine.Rate, operation engine.Operation) ([]row, error) {
	var rows []row
	for _, rate := range rates {
		if !rate.Stale && !rate.Side(operation).IsNull() {
			continue
		}
		one, err := s.row(rate, operation)
		if err != nil {
			return nil, err
		}
		rows = append(rows, one)
	}
	return rows, nil
}
