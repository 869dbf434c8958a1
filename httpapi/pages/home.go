package pages

import (
	"net/http"
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
		}
		doc.markInvalid(q)
		return doc, nil
	})
}

// currencyFeed returns the path of the feed of a currency, without the suffix.
func currencyFeed(code string) string { return "/feeds/" + strings.ToLower(code) }

// feedLink returns a link to a feed.
func (l *Localizer) feedLink(feed string) Node { return A(l.Href(feed+".atom"), l.T("files.feed")) }

// markInvalid sets the status of the page to 400 if the query has an invalid parameter.
func (doc *Document) markInvalid(q pageQuery) {
	if len(q.Problems) > 0 {
		doc.Status, doc.NoIndex = http.StatusBadRequest, true
	}
}

// home returns the body of the home page. It calls the service several times, so a rate that is published in between
// may appear in only some parts of the page.
func (p *Pages) home(q pageQuery, l *Localizer) (Node, error) {
	cards, err := p.summaryCards(q, l)
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
	history, err := p.marketHistory(l, q)
	if err != nil {
		return nil, err
	}
	return Group{
		H1(l.T("home.heading")), P(Class("lead"), l.T("home.lead")), cards,
		Nav(Class("jump"), Aria("label", l.Str("jump.label")), A(Href("#rates"), l.T("jump.rates")), Text(" "),
			A(Href("#history"), l.T("jump.history")),
			If(len(reference.Items) > 0, Group{Text(" "), A(Href("#reference"), l.T("jump.reference"))})),
		Section(ID("rates"), H2(l.T("rates.heading", q.Currency)), p.form(q, l), result(q, ranking.Items, l),
			P(Class("explain"), l.T("explain."+string(q.Operation), q.Currency)), rankingTable(q, ranking, l), unrankedTable(q, rates.Items, l),
			P(Class("fine"), l.T("files.label"), Text(" "), A(Href("/data/latest.csv"), Text("CSV")), Text(", "), A(Href("/data/latest.json"), Text("JSON")), Text(" · "),
				A(Href("/data/history.csv"), l.T("files.history")), Text(" · "), l.feedLink(currencyFeed(q.Currency)))),
		If(len(reference.Items) > 0, referenceSection(reference.Items, l)),
		Section(ID("history"), H2(l.T("history.heading", q.Currency)), periodLinks(l.Path("/"), q, l), history),
	}, nil
}

// summaryCards returns the best rates for dollars and euros.
func (p *Pages) summaryCards(q pageQuery, l *Localizer) (Node, error) {
	var cards Group
	for _, currency := range []string{"USD", "EUR"} {
		toBuy, err := p.best(currency, engine.Buy)
		if err != nil {
			return nil, err
		}
		toSell, err := p.best(currency, engine.Sell)
		if err != nil {
			return nil, err
		}
		reference, err := p.service.Rates(engine.RatesQuery{
			Filter: engine.Filter{Currency: currency, Kind: engine.Reference}, PageRequest: engine.PageRequest{Limit: 1},
		})
		if err != nil {
			return nil, err
		}
		path := pathWith(l.Path("/"), pageQuery{Currency: currency, Operation: q.Operation, Days: q.Days}.values())
		cards = append(cards, Article(Class("card"),
			H2(A(Href(path+"#rates"), Span(Class("code"), Text(currency)), Text(" "), l.T("currency."+currency))),
			Dl(l.bestRate("glance.buy", toBuy, engine.Buy), l.bestRate("glance.sell", toSell, engine.Sell)),
			Map(reference.Items, func(rate *engine.Rate) Node {
				return Div(Class("fine"), l.provenanceBehind(rate, Group{
					l.T("glance.reference"), Text(" "), l.T("glance.compra"), Text(" "), l.side(rate.Buy),
					Text(" · "), l.T("glance.venta"), Text(" "), l.side(rate.Sell),
				}))
			})))
	}
	return Section(Class("glance"), Aria("label", l.Str("glance.label")), cards), nil
}

// bestRate returns a list entry with the best rate for an operation (buy or sell). rate is nil if there is no such
// rate.
func (l *Localizer) bestRate(key string, rate *engine.Rate, operation engine.Operation) Node {
	if rate == nil {
		return Div(Dt(l.T(key)), Dd(l.T("glance.none")))
	}
	return Div(Dt(l.T(key)), Dd(Strong(Text(rate.Side(operation).String())), Text(" "),
		Span(Class("at"), Text(rate.InstitutionName), l.channel(rate)), l.provenanceBehind(rate, l.age(rate.LastCheckedAt))))
}

// best returns the best rate of a currency for an operation, or nil if there is none.
func (p *Pages) best(currency string, operation engine.Operation) (*engine.Rate, error) {
	ranking, err := p.service.Ranking(engine.RankingQuery{
		Filter: engine.Filter{Currency: currency}, PageRequest: engine.PageRequest{Limit: 1}, Operation: operation,
	})
	if err != nil || len(ranking.Items) == 0 {
		return nil, err
	}
	return ranking.Items[0], nil
}

// form returns the form for operation, amount, currency and channel.
func (p *Pages) form(q pageQuery, l *Localizer) Node {
	operation := func(value engine.Operation) Node {
		return Label(Input(Type("radio"), Name("operation"), Value(string(value)), If(q.Operation == value, Checked())),
			Text(" "), Span(l.T("form."+string(value))))
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
		FieldSet(Class("operation"), Legend(l.T("form.want")), operation(engine.Buy), Text(" "), operation(engine.Sell),
			l.problems(q, "operation")),
		field("amount", Input(ID("amount"), Name("amount"), Type("text"), Attr("inputmode", "decimal"), AutoComplete("off"), MaxLength("24"),
			Placeholder(l.Str("form.example")), Value(q.AmountText), invalidAttrs("amount"))),
		field("currency", Select(ID("currency"), Name("currency"), invalidAttrs("currency"),
			Map(p.catalogue.Currencies(), func(c *engine.Currency) Node {
				return option(c.Code, c.Code+" · "+p.nameOf(l, c.Code), c.Code == q.Currency)
			}))),
		field("channel", Select(ID("channel"), Name("channel"), invalidAttrs("channel"), channels)),
		If(q.Days != periodDefault, Input(Type("hidden"), Name("days"), Value(strconv.Itoa(q.Days)))),
		Button(Type("submit"), l.T("form.submit")),
		l.problems(q, "amount", "currency", "channel", "days"))
}

// problems returns the error messages for those of the named parameters that are invalid.
func (l *Localizer) problems(q pageQuery, names ...string) Node {
	return Map(names, func(name string) Node {
		return If(q.Problems[name] != "", P(Class("problem"), ID(name+"-problem"), l.T(q.Problems[name])))
	})
}

// nameOf returns the name of a currency. The catalogue has only Spanish names. English names come from the
// translations, which have the built-in currencies but not added ones.
func (p *Pages) nameOf(l *Localizer, code string) string {
	if name := l.Str("currency." + code); name != "" && l.Language == English {
		return name
	}
	if currency, ok := p.catalogue.Currency(code); ok {
		return currency.Name
	}
	return code
}
