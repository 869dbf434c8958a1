package pages

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/tasard/tasard/engine"
)

func (p *Pages) showHome(w http.ResponseWriter, r *Request) {
	q := parsePageQuery(r.URL.Query(), p.catalogue)
	p.frame.WriteCached(w, r, q.cacheKey(), func() (*Document, error) {
		l := p.texts.In(r)
		body, err := p.home(q, l)
		if err != nil {
			return nil, err
		}
		doc := &Document{
			Body: body, Title: l.Str("home.title", p.nameOf(l, q.Currency)), Description: l.Str("home.description"), Section: "/",
			Query: q.values().Encode(), Scripts: []string{"convert.js"}, NoIndex: q.AmountText != "", Feed: currencyFeed(q.Currency),
			Address: addressQuery(q.Currency), Picture: "/share/" + strings.ToLower(q.Currency) + ".png",
		}
		doc.setBadRequest(q)
		return doc, nil
	})
}

// currencyFeed returns the path of the feed of a currency.
func currencyFeed(code string) string { return "/feeds/" + strings.ToLower(code) + ".atom" }

// feedLink returns a link to a feed.
func (l *Localizer) feedLink(feed string) Node { return A(Href(feed), l.T("files.feed")) }

// setBadRequest sets the status of the page to 400 if the query has an invalid parameter.
func (doc *Document) setBadRequest(q pageQuery) {
	if len(q.Problems) > 0 {
		doc.Status, doc.NoIndex = http.StatusBadRequest, true
	}
}

// home returns the body of the home page. It calls the service several times, so a rate published in between may appear
// in only some parts of the page.
func (p *Pages) home(q pageQuery, l *Localizer) (Node, error) {
	tabs, err := p.currencyTabs(q, l)
	if err != nil {
		return nil, err
	}
	filter := engine.Filter{Currency: q.Currency, Channel: q.Channel, Kind: engine.Commercial}
	page := engine.PageRequest{Limit: engine.LimitMax}
	ranking, err := p.service.Ranking(engine.RankingQuery{Filter: filter, PageRequest: page, Operation: q.Operation})
	if err != nil {
		return nil, err
	}
	rates, err := p.service.Rates(engine.RatesQuery{Filter: filter, PageRequest: page})
	if err != nil {
		return nil, err
	}
	reference, err := p.service.Rates(engine.RatesQuery{Filter: engine.Filter{Currency: q.Currency, Kind: engine.Reference}, PageRequest: page})
	if err != nil {
		return nil, err
	}
	days, err := p.history.market(q.Currency, l.now)
	if err != nil {
		return nil, err
	}
	best, err := p.bestRates(q.Currency)
	if err != nil {
		return nil, err
	}
	before, err := closesOf(p.service, q.Currency, previousDay(days, engine.DateOf(l.now)).Date)
	if err != nil {
		return nil, err
	}
	return Group{
		H1(Text(p.heading(l, q.Currency))), tabs, l.summaryCard(best, days, p.shareLinks(q, best, l)),
		Section(ID("rates"), H2(Class("quiet"), l.T("rates.heading", q.Currency)), p.form(q, l), result(q, ranking.Items, l)),
		Section(ID("history"), H2(l.T("history.heading", q.Currency)), periodLinks(l.Path("/"), q, l), marketHistory(l, q, days)),
		Section(ID("list"), H2(l.T("list."+string(q.Operation), q.Currency)), rankingTable(q, ranking, before, l), unrankedTable(q, rates.Items, l)),
		If(len(reference.Items) > 0, referenceSection(reference.Items, l)),
		Details(Summary(l.T("files.label")),
			P(A(Href("/data/latest.csv"), Text("CSV")), Text(", "), A(Href("/data/latest.json"), Text("JSON")), Text(" · "),
				A(Href("/data/history.csv"), l.T("files.history")), Text(" · "), l.feedLink(currencyFeed(q.Currency))),
			p.embedCode(q, l)),
	}, nil
}

// currencyTabs returns links to the currencies that have rates.
func (p *Pages) currencyTabs(q pageQuery, l *Localizer) (Node, error) {
	currencies, err := p.service.Currencies()
	if err != nil {
		return nil, err
	}
	codes := []string{"USD", "EUR"} // first, because most visitors want them
	for _, item := range currencies.Items {
		if item.CurrentQuoteCount > 0 && !slices.Contains(codes, item.Code) {
			codes = append(codes, item.Code)
		}
	}
	return Nav(Class("pills tabs"), Aria("label", l.Str("form.currency")), Map(codes, func(code string) Node {
		target := pageQuery{Currency: code, Operation: q.Operation, Days: q.Days}
		return A(Href(pathWith(l.Path("/"), target.values())), If(code == q.Currency, Aria("current", "page")), Title(p.nameOf(l, code)), Text(code))
	})), nil
}

// summaryCard returns the best rates of a currency, each with the change since the previous day, today's range and a
// line of 30 days. more is shown below.
func (l *Localizer) summaryCard(best bestRates, days []marketDay, more Node) Node {
	return Section(Class("card"), Aria("label", l.Str("glance.label")), Dl(
		l.bestRate("glance.compra", best[engine.Sell], engine.Sell, days, compraOf), l.bestRate("glance.venta", best[engine.Buy], engine.Buy, days, ventaOf)), more)
}

// bestRate returns a list entry with the best rate for an operation (buy or sell). rate may be nil.
func (l *Localizer) bestRate(key string, rate *engine.Rate, operation engine.Operation, days []marketDay, sideOf func(*marketDay) *sideSummary) Node {
	if rate == nil {
		return Div(Dt(l.T(key)), Dd(l.T("glance.none")))
	}
	today := engine.DateOf(l.now)
	before, month := previousDay(days, today), daysSince(days, today.AddDays(1-periodDefault))
	var now sideSummary
	if len(days) > 0 && days[len(days)-1].Date == today {
		now = *sideOf(&days[len(days)-1])
	}
	low, high := now.Best, now.Worst
	if operation == engine.Sell {
		low, high = high, low
	}
	return Div(Dt(l.T(key), Text(" "), Small(l.T(key+".who"))), Dd(
		Strong(Text(sideOrDash(rate.Side(operation)))), spark(month, sideOf), l.change(rate.Side(operation), sideOf(&before).Best, before.Date),
		If(!now.Best.IsNull(), Span(Class("change"), l.T("change.range", sideOrDash(low), sideOrDash(high)))),
		Span(Class("at"), l.institution(rate), l.channel(rate))))
}

// change returns the difference between a value and the value of an earlier day, with the day, or nil if a value is
// missing.
func (l *Localizer) change(value, before engine.Decimal, day engine.Date) Node {
	if value.IsNull() || before.IsNull() {
		return nil
	}
	return Span(Class("change"), l.difference(value, before), Text(" "), l.T("change.since", l.ShortDate(day)))
}

// rowChange is change without the day, for a row of a table.
func (l *Localizer) rowChange(value, before engine.Decimal) Node {
	if value.IsNull() || before.IsNull() {
		return nil
	}
	return Span(Class("delta"), l.difference(value, before))
}

// difference returns a difference with a sign, and in words for screen readers.
func (l *Localizer) difference(value, before engine.Decimal) Node {
	sign, words := "=", l.Str("change.same")
	if units := value.Units() - before.Units(); units > 0 {
		sign, words = "▲ "+tickLabel(units, units), l.Str("change.up", tickLabel(units, units))
	} else if units < 0 {
		sign, words = "▼ "+tickLabel(-units, -units), l.Str("change.down", tickLabel(-units, -units))
	}
	return Group{Span(Aria("hidden", "true"), Text(sign)), Span(Class("quiet"), Text(words))}
}

// form returns the form for operation, amount, currency and channel.
func (p *Pages) form(q pageQuery, l *Localizer) Node {
	operation := func(value string) Node {
		return Label(Input(Type("radio"), Name("operation"), Value(value), If(q.operation() == value, Checked())),
			Text(" "), Span(l.T("form."+value)))
	}
	invalidAttrs := func(name string) Node {
		return If(q.Problems[name] != "", Group{Aria("invalid", "true"), Aria("describedby", name+"-problem")})
	}
	field := func(name string, input Node) Node {
		return P(Class("field"), Label(For(name), l.T("form."+name)), Text(" "), input)
	}
	option := func(value, text string, selected bool) Node {
		return Option(Value(value), If(selected, Selected()), Text(text))
	}
	channels := Group{option("", l.Str("channel.all"), q.Channel == "")}
	for _, channel := range engine.Channels() {
		channels = append(channels, option(string(channel), l.Str("channel."+string(channel)), channel == q.Channel))
	}
	return Form(Class("ask"), Method("get"), Action(l.Path("/")+"#rates"),
		FieldSet(Class("operation"), Legend(l.T("form.want")), operation("buy"), Text(" "), operation("sell"), Text(" "),
			operation(operationPesos), l.problems(q, "operation")),
		Div(Class("field"), Label(For("amount"), l.T("form.amount")), Text(" "), Input(ID("amount"), Name("amount"), Type("text"), Attr("inputmode", "decimal"), AutoComplete("off"), MaxLength("24"),
			Placeholder(l.Str("form.example")), If(q.Pesos, Data("pesos", "")), Value(q.AmountText), invalidAttrs("amount")),
			l.problems(q, "amount")),
		field("currency", Select(ID("currency"), Name("currency"), invalidAttrs("currency"),
			Map(p.catalogue.Currencies(), func(c *engine.Currency) Node {
				return option(c.Code, c.Code+" · "+p.nameOf(l, c.Code), c.Code == q.Currency)
			}))),
		field("channel", Select(ID("channel"), Name("channel"), invalidAttrs("channel"), channels)),
		If(q.Days != periodDefault, Input(Type("hidden"), Name("days"), Value(strconv.Itoa(q.Days)))),
		Button(Type("submit"), l.T("form.submit")),
		l.problems(q, "currency", "channel", "days"))
}

// problems returns the error messages of the named parameters.
func (l *Localizer) problems(q pageQuery, names ...string) Node {
	return Map(names, func(name string) Node {
		return If(q.Problems[name] != "", P(Class("problem"), ID(name+"-problem"), l.T(q.Problems[name])))
	})
}

// nameOf returns the name of a currency. The catalogue has Spanish names; English names are texts of this package. A
// currency added by the operator has no English name.
func (p *Pages) nameOf(l *Localizer, code string) string {
	if name := l.Str("currency." + code); name != "" && l.Language == English {
		return name
	}
	if currency, ok := p.catalogue.Currency(code); ok {
		return currency.Name
	}
	return code
}
