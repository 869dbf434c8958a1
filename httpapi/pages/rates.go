package pages

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/tasard/tasard/engine"
)

const noValue = "—"

// sideOrDash formats one side of a rate (compra or venta) with at least two decimals, or returns a dash if it is null.
func sideOrDash(side engine.Decimal) string { return padded(side, 2) }

// padded is sideOrDash with another minimum number of decimals.
func padded(side engine.Decimal, decimals int) string {
	if side.IsNull() {
		return noValue
	}
	whole, fraction, _ := strings.Cut(side.String(), ".")
	return grouped(whole + "." + fraction + strings.Repeat("0", max(0, decimals-len(fraction))))
}

func (l *Localizer) tag(class, key string) Node {
	return Group{Text(" "), Span(Class(class), l.T(key))}
}

// channel returns the channel of a rate as a tag, or nil if the rate has none.
func (l *Localizer) channel(rate *engine.Rate) Node {
	if rate.Channel == engine.Unspecified {
		return nil
	}
	return l.tag("tag", "channel."+string(rate.Channel))
}

func (l *Localizer) institution(rate *engine.Rate) Node {
	return A(l.Href("/institutions/"+rate.InstitutionID), Text(rate.InstitutionName))
}

// amountAt converts the amount of the query as /v1/convert does, and adds commas between thousands. An amount in pesos
// is divided by the price and rounded down to cents. Without an amount, amountAt returns "".
func amountAt(q pageQuery, rate *engine.Rate) string {
	price := rate.Side(q.Operation)
	switch {
	case q.Amount.String() == "":
		return ""
	case q.Pesos && price.Units() <= 0:
		return noValue
	case q.Pesos:
		hundredths, _ := new(big.Rat).SetString(q.Amount.String())
		hundredths.Mul(hundredths, new(big.Rat).SetFrac64(100*unitsPerDOP, price.Units()))
		cents := new(big.Int).Div(hundredths.Num(), hundredths.Denom()).String()
		cents = strings.Repeat("0", max(0, 3-len(cents))) + cents
		return grouped(cents[:len(cents)-2] + "." + cents[len(cents)-2:])
	}
	return grouped(engine.Conversion{Quote: rate, Operation: q.Operation, Amount: q.Amount}.AmountDOP())
}

// unit returns the currency sign before a converted amount: pesos, or the currency if the query's amount is in pesos.
func (q pageQuery) unit() Node {
	if q.Pesos {
		return Raw(q.Currency + "&nbsp;")
	}
	return Raw("RD$&nbsp;")
}

// result returns the conversion of the amount at the best rate, or nil without an amount.
func result(q pageQuery, ranked []*engine.Rate, l *Localizer) Node {
	if len(ranked) == 0 || amountAt(q, ranked[0]) == "" {
		return nil
	}
	best := ranked[0]
	side := best.Side(q.Operation)
	return Group{
		P(Class("result"), ID("result"), l.T("result."+q.operation(), grouped(q.Amount.String()), q.Currency), Text(" "),
			Strong(q.unit(), total(q, best)), Text(" "), l.T("result.at", best.InstitutionName, sideOrDash(side))),
		P(Class("fine"), If(q.Pesos, Group{l.T("result.down"), Text(" ")}), l.T("result.fees")),
	}
}

// total returns the amount converted at a rate. After a change of the amount, convert.js recalculates the result from
// the attribute data-total, which is the price in units of engine.Decimal.
func total(q pageQuery, rate *engine.Rate) Node {
	return Span(Data("total", strconv.FormatInt(rate.Side(q.Operation).Units(), 10)), Text(amountAt(q, rate)))
}

// Numbers of rates shown before a click. Rows with a converted amount are higher, so fewer are shown.
const (
	rowsShown           = 8
	rowsShownWithAmount = 5
)

// rankingTable returns the table of ranked rates, best first, with the time of the last check. The later rates are
// shown after a click.
func rankingTable(q pageQuery, ranking *engine.Page[*engine.Rate], before closes, l *Localizer) Node {
	if len(ranking.Items) == 0 {
		return P(Class("empty"), l.T("rates.empty", q.Currency))
	}
	var rows Group
	for _, rate := range ranking.Items {
		isBest := rate.Side(q.Operation).Compare(ranking.Items[0].Side(q.Operation)) == 0
		cell := func(operation engine.Operation) Node {
			price := Text(sideOrDash(rate.Side(operation)))
			change := If(q.AmountText == "", l.change("delta", rate.Side(operation), before.of(rate, operation)))
			if q.Operation != operation {
				return Td(Class("number"), price, change)
			}
			return Td(Class("number main"), Strong(price), change, Span(Class("total"), If(amountAt(q, rate) == "", Hidden("")), q.unit(), total(q, rate)))
		}
		rows = append(rows, Tr(If(isBest, Class("best")),
			Td(Class("name"), l.named(rate, If(isBest, l.tag("tag good", "rates.best")))), cell(engine.Sell), cell(engine.Buy)))
	}
	column := func(operation engine.Operation, key, order string) Node {
		target := q
		target.Operation, target.Pesos = operation, q.Pesos && operation == engine.Buy
		return Th(Scope("col"), Class("number"), If(q.Operation == operation, Aria("sort", order)),
			A(Href(pathWith(l.Path("/"), target.values())+"#list"), Span(l.T(key)), Small(l.T(key+".who"))))
	}
	table := func(rows Group) Node {
		return Table(Class("rates"), Caption(Class("quiet"), l.T("rates.caption", q.Currency)),
			THead(Tr(l.column("rates.institution"), column(engine.Sell, "rates.compra", "descending"), column(engine.Buy, "rates.venta", "ascending"))),
			TBody(rows))
	}
	first := min(rowsShown, len(rows))
	if q.AmountText != "" {
		first = min(rowsShownWithAmount, len(rows))
	}
	return Group{
		l.asOf(ranking.Items, If(before.date != 0 && q.AmountText == "", Group{Text(" · "), l.T("rates.since", l.ShortDate(before.date))})),
		table(rows[:first]),
		If(len(rows) > first, Details(Class("rest"), Summary(l.T("rates.all", len(rows))), table(rows[first:]))),
		If(ranking.Total > len(rows), P(Class("fine"), l.T("rates.more", len(rows), ranking.Total))),
	}
}

// asOf returns the time of the last check of rates, the number of sources, and more. There must be at least one rate.
func (l *Localizer) asOf(rates []*engine.Rate, more Node) Node {
	sources, newest := map[string]bool{}, rates[0].LastCheckedAt
	for _, rate := range rates {
		sources[rate.SourceID] = true
		if rate.LastCheckedAt.After(newest) {
			newest = rate.LastCheckedAt
		}
	}
	at := l.Clock(newest)
	if engine.DateOf(newest) != engine.DateOf(l.now) {
		at = l.ShortDate(engine.DateOf(newest)) + ", " + at
	}
	return P(Class("fine"), l.T("rates.asof"), Text(" "), Time(DateTime(rfc3339(newest)), Title(l.Instant(newest)), Text(at)),
		Text(" · "+l.Count("rates.sources", len(sources))), more)
}

// named returns the name of a rate's institution, with tags. A click on the name shows the origin of the rate.
func (l *Localizer) named(rate *engine.Rate, tags ...Node) Node {
	return l.provenanceBehind(rate, Group{Span(Class("who"), Text(rate.InstitutionName)), l.channel(rate), Group(tags)}, P(l.institution(rate)))
}

// unrankedTable returns the table of rates without a rank: they are stale, or have no value for the operation.
func unrankedTable(q pageQuery, rates []*engine.Rate, l *Localizer) Node {
	var rows Group
	for _, rate := range rates {
		reason := l.tag("tag bad", "rates.stale")
		if !rate.Stale {
			if !rate.Side(q.Operation).IsNull() {
				continue
			}
			reason = l.tag("tag", "rates.oneside")
		}
		rows = append(rows, Tr(Td(Class("name"), l.named(rate, reason)), Td(Class("number"), Text(sideOrDash(rate.Buy))), Td(Class("number"), Text(sideOrDash(rate.Sell)))))
	}
	if len(rows) == 0 {
		return nil
	}
	number := func(key string) Node { return Th(Scope("col"), Class("number"), l.T(key)) }
	return Details(Class("unranked"), Summary(Text(l.Count("unranked.summary", len(rows)))), P(Class("fine"), l.T("unranked.why")),
		Table(Class("rates stale"),
			THead(Tr(l.column("rates.institution"), number("rates.compra"), number("rates.venta"))), TBody(rows)))
}

func referenceSection(rates []*engine.Rate, l *Localizer) Node {
	return Section(Class("reference"), ID("reference"), H2(l.T("reference.heading")), P(l.T("reference.text")),
		Dl(Class("facts"), Map(rates, func(rate *engine.Rate) Node {
			return Div(Dt(l.institution(rate), If(rate.Stale, l.tag("tag bad", "rates.stale"))),
				Dd(l.T("side.compra"), Text(" "), Strong(Text(sideOrDash(rate.Buy))), Text(" · "), l.T("side.venta"), Text(" "), Strong(Text(sideOrDash(rate.Sell))),
					l.provenanceBehind(rate, Group{
						If(!rate.EffectiveDate.IsZero(), Group{l.T("rate.effective", l.Date(rate.EffectiveDate)), Text(" · ")}),
						l.T("rates.updated"), Text(" "), l.Time(rate.LastCheckedAt)}, nil)))
		})))
}

// grouped adds commas between thousands, as usual in the Dominican Republic: 5,935.00.
func grouped(text string) string {
	whole, fraction, hasPoint := strings.Cut(text, ".")
	var out strings.Builder
	for i, digit := range []byte(whole) {
		if i > 0 && (len(whole)-i)%3 == 0 {
			out.WriteByte(',')
		}
		out.WriteByte(digit)
	}
	if hasPoint {
		out.WriteString("." + fraction)
	}
	return out.String()
}

// Grouped formats a count with commas between thousands.
func Grouped(n int) string { return grouped(strconv.Itoa(n)) }

var (
	groupedPattern      = regexp.MustCompile(`^[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?$`)
	decimalCommaPattern = regexp.MustCompile(`^[0-9]+,[0-9]{1,2}$`)
)

// ungrouped removes the commas between thousands. It replaces a decimal comma (a single comma before one or two final
// digits, as in 250,50) by a point. If a comma is anywhere else, ungrouped returns the text unchanged.
func ungrouped(text string) string {
	switch {
	case groupedPattern.MatchString(text):
		return strings.ReplaceAll(text, ",", "")
	case decimalCommaPattern.MatchString(text):
		return strings.Replace(text, ",", ".", 1)
	}
	return text
}

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
