package pages

import (
	"net/url"
	"slices"
	"strconv"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/tasard/tasard/engine"
)

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
