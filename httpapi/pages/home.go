package pages

import (
	"cmp"
	"math/big"
	"net/http"
	"net/url"
	"regexp"
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
	if err := cmp.Or(errTabs, errRanking); err != nil { // the other queries would probably fail too
		return nil, err
	}
	rates, errRates := p.service.Rates(engine.RatesQuery{Filter: filter, PageRequest: page})
	reference, errReference := p.service.Rates(engine.RatesQuery{Filter: engine.Filter{Currency: q.Currency, Kind: engine.Reference}, PageRequest: page})
	days, errDays := p.history.market(q.Currency, l.now)
	best, errBest := p.bestRates(q.Currency)
	before, errBefore := closesOf(p.service, q.Currency, previousDay(days, engine.DateOf(l.now)).Date)
	if err := cmp.Or(errRates, errReference, errDays, errBest, errBefore); err != nil {
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
