package pages

import (
	"cmp"
	"net/http"
	"net/url"
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
	tabs, errTabs := p.currencyTabs(q, l)
	filter := engine.Filter{Currency: q.Currency, Channel: q.Channel, Kind: engine.Commercial}
	page := engine.PageRequest{Limit: engine.LimitMax}
	ranking, errRanking := p.service.Ranking(engine.RankingQuery{Filter: filter, PageRequest: page, Operation: q.Operation})
	rates, errRates := p.service.Rates(engine.RatesQuery{Filter: filter, PageRequest: page})
	reference, errReference := p.service.Rates(engine.RatesQuery{Filter: engine.Filter{Currency: q.Currency, Kind: engine.Reference}, PageRequest: page})
	days, errDays := p.history.market(q.Currency, l.now)
	best, errBest := p.bestRates(q.Currency)
	before, errBefore := closesOf(p.service, q.Currency, previousDay(days, engine.DateOf(l.now)).Date)
	if err := cmp.Or(errTabs, errRanking, errRates, errReference, errDays, errBest, errBefore); err != nil {
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
		Strong(Text(sideOrDash(rate.Side(operation)))), spark(month, sideOf),
		l.change("change", rate.Side(operation), sideOf(&before).Best, Text(" "), l.T("change.since", l.ShortDate(before.Date))),
		If(!now.Best.IsNull(), Span(Class("change"), l.T("change.range", sideOrDash(low), sideOrDash(high)))),
		Span(Class("at"), l.institution(rate), l.channel(rate))))
}

// change returns the difference between a value and that of an earlier day, and more, or nil if a value is missing. The
// difference has a sign, and words for screen readers.
func (l *Localizer) change(class string, value, before engine.Decimal, more ...Node) Node {
	if value.IsNull() || before.IsNull() {
		return nil
	}
	sign, words := "=", l.Str("change.same")
	if units := value.Units() - before.Units(); units > 0 {
		sign, words = "▲ "+tickLabel(units, units), l.Str("change.up", tickLabel(units, units))
	} else if units < 0 {
		sign, words = "▼ "+tickLabel(-units, -units), l.Str("change.down", tickLabel(-units, -units))
	}
	return Span(Class(class), Span(Aria("hidden", "true"), Text(sign)), Span(Class("quiet"), Text(words)), Group(more))
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

// Defaults, limits and names of parameters in the URL query.
const (
	currencyDefault   = "USD"
	periodDefault     = 30
	amountTextMax     = 24 // maximum length of an amount in characters; valid amounts with commas have at most 18
	parameterCurrency = "currency"
	operationPesos    = "pesos" // the operation buy, with an amount in pesos
)

// periods returns the possible lengths of a chart, in days.
func periods() []int { return []int{7, 30, 90, 365} }

// pageQuery is the parsed URL query of a page with rates.
type pageQuery struct {
	Currency   string
	Operation  engine.Operation
	Pesos      bool           // the amount is in pesos; Operation is Buy
	Channel    engine.Channel // "" means all channels
	Days       int
	AmountText string            // as typed
	Amount     engine.Amount     // zero if missing or invalid
	Problems   map[string]string // for each invalid parameter, the key of its error message
}

// parameter is a parameter of the URL query.
type parameter struct {
	name  string
	parse func(q *pageQuery, text string, catalogue *engine.Catalogue) bool // stores the value; false if text is invalid
	text  func(q *pageQuery) string                                         // the value in a normalized query
}

// parameters returns the parameters of pages with rates.
func parameters() []parameter {
	return []parameter{
		{parameterCurrency, func(q *pageQuery, text string, catalogue *engine.Catalogue) bool {
			currency, ok := catalogue.Currency(text)
			return ok && set(&q.Currency, currency.Code, ok)
		}, func(q *pageQuery) string { return q.Currency }},
		{"operation", func(q *pageQuery, text string, _ *engine.Catalogue) bool {
			operation, ok := engine.ParseOperation(text)
			q.Pesos = text == operationPesos
			return q.Pesos || set(&q.Operation, operation, ok)
		}, (*pageQuery).operation},
		{"channel", func(q *pageQuery, text string, _ *engine.Catalogue) bool {
			channel, ok := engine.ParseChannel(text)
			return set(&q.Channel, channel, ok)
		}, func(q *pageQuery) string { return string(q.Channel) }},
		{"days", func(q *pageQuery, text string, _ *engine.Catalogue) bool {
			days, err := strconv.Atoi(text)
			return set(&q.Days, days, err == nil && slices.Contains(periods(), days))
		}, func(q *pageQuery) string { return strconv.Itoa(q.Days) }},
		{"amount", func(q *pageQuery, text string, _ *engine.Catalogue) bool { return q.readAmount(text) },
			func(q *pageQuery) string { return q.AmountText }},
	}
}

// set stores a value in dst if ok is true, and returns ok.
func set[T any](dst *T, value T, ok bool) bool {
	if ok {
		*dst = value
	}
	return ok
}

// newPageQuery returns a query with a currency and the defaults of all other parameters.
func newPageQuery(currency string) pageQuery {
	return pageQuery{Currency: currency, Operation: engine.Buy, Days: periodDefault}
}

// parsePageQuery parses a query. For an invalid value it uses the default and adds a problem.
func parsePageQuery(query url.Values, catalogue *engine.Catalogue) pageQuery {
	q := newPageQuery(currencyDefault)
	q.Problems = map[string]string{}
	for _, p := range parameters() {
		if text := query.Get(p.name); text != "" && !p.parse(&q, text, catalogue) {
			q.Problems[p.name] = "problem." + p.name
		}
	}
	return q
}

// readAmount parses the amount. Unlike /v1/convert, it accepts commas between thousands.
func (q *pageQuery) readAmount(text string) bool {
	runes := []rune(text)
	q.AmountText = string(runes[:min(len(runes), amountTextMax)])
	amount, err := engine.ParseAmount(ungrouped(text))
	return set(&q.Amount, amount, err == nil)
}

// operation returns the value of the parameter operation.
func (q *pageQuery) operation() string {
	if q.Pesos {
		return operationPesos
	}
	return string(q.Operation)
}

// values returns the normalized URL query, without default values. It includes even an invalid amount, so that the page
// in the other language shows the amount too.
func (q pageQuery) values() url.Values {
	values, defaults := url.Values{}, newPageQuery(currencyDefault)
	for _, p := range parameters() {
		if text := p.text(&q); text != p.text(&defaults) {
			values.Set(p.name, text)
		}
	}
	return values
}

// addressQuery returns the URL query of a currency's home page without an amount.
func addressQuery(currency string) string {
	return newPageQuery(currency).values().Encode()
}

// cacheKey returns the argument query of WriteCached: the normalized query and the names of invalid parameters.
func (q pageQuery) cacheKey() string {
	values := q.values()
	for name := range q.Problems {
		values.Add("problem", name)
	}
	slices.Sort(values["problem"])
	return values.Encode()
}

// pills returns a row of links to the history on the same page, one for each value of a parameter. set sets the
// parameter in a query, and text returns the text of a link.
func pills[T comparable](page string, q pageQuery, label string, values []T, current T, set func(*pageQuery, T), text func(T) string) Node {
	return Nav(Class("pills"), Aria("label", label), Map(values, func(value T) Node {
		target := q
		set(&target, value)
		return A(Href(pathWith(page, target.values())+"#history"), If(value == current, Aria("current", "true")), Text(text(value)))
	}))
}

func periodLinks(page string, q pageQuery, l *Localizer) Node {
	return pills(page, q, l.Str("history.window"), periods(), q.Days,
		func(q *pageQuery, days int) { q.Days = days },
		func(days int) string { return l.Str("window." + strconv.Itoa(days)) })
}
