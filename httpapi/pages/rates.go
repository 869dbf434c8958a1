package pages

import (
	"strconv"
	"time"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/tasard/tasard/engine"
)

const noValue = "—"

// sideOrDash formats one side of a rate (compra or venta), or returns a dash if the rate lacks this side.
func sideOrDash(side engine.Decimal) string {
	if side.IsNull() {
		return noValue
	}
	return side.String()
}

// side formats one side of a rate. A missing side is a dash with an explanation as its title.
func (l *Localizer) side(side engine.Decimal) Node {
	if side.IsNull() {
		return Span(Class("none"), Title(l.Str("side.none")), Text(noValue))
	}
	return Text(side.String())
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

// age returns how long ago t was (see Since), with the exact time as tooltip.
func (l *Localizer) age(t time.Time) Node { return l.Since(t, Title(l.Instant(t))) }

func (l *Localizer) institution(rate *engine.Rate) Node {
	return A(l.Href("/institutions/"+rate.InstitutionID), Text(rate.InstitutionName))
}

// amountAt converts the amount of the query to pesos like /v1/convert, and adds commas. It returns "" without an
// amount.
func amountAt(q pageQuery, rate *engine.Rate) string {
	if q.Amount.String() == "" {
		return ""
	}
	return grouped(engine.Conversion{Quote: rate, Operation: q.Operation, Amount: q.Amount}.AmountDOP())
}

// result returns the conversion of the amount at the best rate, or nil without an amount.
func result(q pageQuery, ranked []*engine.Rate, l *Localizer) Node {
	if len(ranked) == 0 || amountAt(q, ranked[0]) == "" {
		return nil
	}
	best := ranked[0]
	side := best.Side(q.Operation)
	return Group{
		P(Class("result"), ID("result"), l.T("result."+string(q.Operation), grouped(q.Amount.String()), q.Currency), Text(" "),
			Strong(Raw("RD$&nbsp;"), total(q, best)), Text(" "), l.T("result.at", best.InstitutionName, side)),
		P(Class("fine"), l.T("result.fees")),
	}
}

// total returns the amount in pesos at a rate. When the visitor changes the amount, convert.js recalculates it. The
// attribute data-total has the price, not the total, in units of engine.Decimal.
func total(q pageQuery, rate *engine.Rate) Node {
	return Span(Data("total", strconv.FormatInt(rate.Side(q.Operation).Units(), 10)), Text(amountAt(q, rate)))
}

// rankingTable returns the table of ranked rates. Rates with equal prices have the same rank.
func rankingTable(q pageQuery, ranking *engine.Page[*engine.Rate], l *Localizer) Node {
	if len(ranking.Items) == 0 {
		return P(Class("empty"), l.T("rates.empty", q.Currency))
	}
	column := func(operation engine.Operation, key, order string) Node {
		target := q
		target.Operation = operation
		return Th(Scope("col"), Class("number"), If(q.Operation == operation, Aria("sort", order)),
			A(Href(pathWith(l.Path("/"), target.values())+"#rates"), Span(l.T(key)), Small(l.T(key+".who"))))
	}
	cell := func(operation engine.Operation, rate *engine.Rate) Node {
		if q.Operation != operation {
			return Td(Class("number"), Text(sideOrDash(rate.Side(operation))))
		}
		return Td(Class("number main"), Strong(Text(sideOrDash(rate.Side(operation)))),
			Span(Class("total"), If(amountAt(q, rate) == "", Hidden("")), Raw("RD$&nbsp;"), total(q, rate)))
	}
	var rows Group
	rank := 1
	for i, rate := range ranking.Items {
		if i > 0 && rate.Side(q.Operation).Compare(ranking.Items[i-1].Side(q.Operation)) != 0 {
			rank = i + 1
		}
		rows = append(rows, Tr(If(rank == 1, Class("best")), Td(Class("place"), Text(strconv.Itoa(rank))),
			Td(Class("name"), l.institution(rate), l.channel(rate), If(rank == 1, l.tag("tag good", "rates.best")), l.provenance(rate)),
			cell(engine.Buy, rate), cell(engine.Sell, rate)))
	}
	return Group{
		Table(Class("rates"), Caption(Class("quiet"), l.T("rates.caption", q.Currency)),
			THead(Tr(Th(Scope("col"), Class("place"), Span(Class("quiet"), l.T("rates.place"))), Th(Scope("col"), l.T("rates.institution")),
				column(engine.Buy, "rates.venta", "ascending"), column(engine.Sell, "rates.compra", "descending"))),
			TBody(rows)),
		If(ranking.Total > len(rows), P(Class("fine"), l.T("rates.more", len(rows), ranking.Total))),
	}
}

// unrankedTable returns the table of rates that are not ranked: they are stale or lack the side for the operation.
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
		rows = append(rows, Tr(Td(Class("name"), l.institution(rate), l.channel(rate), reason, l.provenance(rate)),
			Td(Class("number"), Text(sideOrDash(rate.Sell))), Td(Class("number"), Text(sideOrDash(rate.Buy)))))
	}
	if len(rows) == 0 {
		return nil
	}
	number := func(key string) Node { return Th(Scope("col"), Class("number"), l.T(key)) }
	return Details(Class("unranked"), Summary(Text(l.Count("unranked.summary", len(rows)))), P(Class("fine"), l.T("unranked.why")),
		Table(Class("rates stale"),
			THead(Tr(l.column("rates.institution"), number("rates.venta"), number("rates.compra"))), TBody(rows)))
}

func referenceSection(rates []*engine.Rate, l *Localizer) Node {
	return Section(Class("reference"), ID("reference"), H2(l.T("reference.heading")), P(l.T("reference.text")),
		Dl(Class("facts"), Map(rates, func(rate *engine.Rate) Node {
			return Div(Dt(l.institution(rate), If(rate.Stale, l.tag("tag bad", "rates.stale"))),
				Dd(l.T("side.compra"), Text(" "), Strong(l.side(rate.Buy)), Text(" · "), l.T("side.venta"), Text(" "), Strong(l.side(rate.Sell)),
					l.provenance(rate)))
		})))
}
