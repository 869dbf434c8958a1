package pages

import (
	"strings"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/tasard/tasard/engine"
)

// sourceName returns the name of a rate's source. If the source republishes rates of another, it adds the other's name.
func (l *Localizer) sourceName(rate *engine.Rate) string {
	switch {
	case rate.Manual:
		return l.Str("source.manual")
	case strings.Contains(rate.SourceName, rate.UpstreamSource): // always true if UpstreamSource is ""
		return rate.SourceName
	}
	return rate.SourceName + " (" + l.Str("source.via", rate.UpstreamSource) + ")"
}

// provenanceBehind returns a summary. A click on the summary shows more and the origin of the rate: the source, the
// times of reading, and the values as published.
func (l *Localizer) provenanceBehind(rate *engine.Rate, summary, more Node) Node {
	expires := "provenance.expires"
	if rate.Stale {
		expires = "provenance.expired"
	}
	entry := func(key string, value ...Node) Node { return Div(Dt(l.T(key)), Dd(value...)) }
	name := l.sourceName(rate)
	source := Text(name)
	if !rate.Manual {
		source = External(rate.SourceURL, name)
	}
	return Details(Class("origin"), Summary(summary), more,
		Dl(entry("provenance.source", source),
			entry("provenance.said", l.T("side.compra"), Text(" "+said(rate.Buy)+" · "), l.T("side.venta"), Text(" "+said(rate.Sell))),
			entry("provenance.dated", l.statedDates(rate)),
			entry("provenance.first", l.Time(rate.CollectedAt)),
			entry("provenance.last", l.Time(rate.LastCheckedAt)),
			entry(expires, l.Time(rate.ExpiresAt))))
}

// said returns one side of a rate as the source has published it.
func said(side engine.Decimal) string {
	if side.IsNull() {
		return noValue
	}
	return side.String()
}

// statedDates returns the dates that the source has published for a rate.
func (l *Localizer) statedDates(rate *engine.Rate) Node {
	var dates Group
	if !rate.EffectiveDate.IsZero() {
		dates = append(dates, l.T("provenance.effective", l.Date(rate.EffectiveDate)))
	}
	if !rate.PublishedAt.IsZero() {
		if len(dates) > 0 {
			dates = append(dates, Text(" · "))
		}
		dates = append(dates, l.T("provenance.published"), Text(" "), l.Time(rate.PublishedAt))
	}
	if len(dates) == 0 {
		return l.T("provenance.undated")
	}
	return dates
}
