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
	amountTextMax     = 24 // longest amount in characters; a valid amount with commas has at most 18
	parameterCurrency = "currency"
	operationPesos    = "pesos" // to buy, with an amount in pesos
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
	Amount     engine.Amount     // zero if there is none or it is invalid
	Problems   map[string]string // for each invalid parameter: the key of its error message in the texts of the pages
}

// parsePageQuery parses a query. For an invalid value it uses the default and adds a problem.
func parsePageQuery(query url.Values, catalogue *engine.Catalogue) pageQuery {
	q := pageQuery{Currency: currencyDefault, Operation: engine.Buy, Days: periodDefault, Problems: map[string]string{}}
	parse := func(name string, set func(text string) bool) {
		if text := query.Get(name); text != "" && !set(text) {
			q.Problems[name] = "problem." + name
		}
	}
	parse(parameterCurrency, func(text string) bool {
		currency, ok := catalogue.Currency(text)
		if ok {
			q.Currency = currency.Code
		}
		return ok
	})
	parse("operation", func(text string) bool {
		if q.Pesos = text == operationPesos; q.Pesos {
			return true
		}
		return setIf(&q.Operation)(engine.ParseOperation(text))
	})
	parse("channel", func(text string) bool { return setIf(&q.Channel)(engine.ParseChannel(text)) })
	parse("days", func(text string) bool {
		days, err := strconv.Atoi(text)
		return setIf(&q.Days)(days, err == nil && slices.Contains(periods(), days))
	})
	q.readAmount(query.Get("amount"))
	return q
}

// setIf returns a function that stores a value in dst if ok is true, and returns ok.
func setIf[T any](dst *T) func(value T, ok bool) bool {
	return func(value T, ok bool) bool {
		if ok {
			*dst = value
		}
		return ok
	}
}

// readAmount parses the amount. Unlike /v1/convert, it accepts commas between thousands.
func (q *pageQuery) readAmount(text string) {
	runes := []rune(text)
	q.AmountText = string(runes[:min(len(runes), amountTextMax)])
	if text == "" {
		return
	}
	amount, err := engine.ParseAmount(ungrouped(text))
	if err != nil {
		q.Problems["amount"] = "problem.amount"
		return
	}
	q.Amount = amount
}

// operation returns the value of the parameter operation.
func (q pageQuery) operation() string {
	if q.Pesos {
		return operationPesos
	}
	return string(q.Operation)
}

// values returns the normalized URL query, without parameters that have their default. It includes an invalid amount,
// so that the page in the other language shows that amount too.
func (q pageQuery) values() url.Values {
	values := url.Values{}
	set := func(name, value string, isDefault bool) {
		if !isDefault {
			values.Set(name, value)
		}
	}
	set(parameterCurrency, q.Currency, q.Currency == currencyDefault)
	set("operation", q.operation(), q.operation() == string(engine.Buy))
	set("channel", string(q.Channel), q.Channel == "")
	set("days", strconv.Itoa(q.Days), q.Days == periodDefault)
	set("amount", q.AmountText, q.AmountText == "")
	return values
}

// addressQuery returns the URL query of the home page of a currency, without a question.
func addressQuery(currency string) string {
	return pageQuery{Currency: currency, Operation: engine.Buy, Days: periodDefault}.values().Encode()
}

// cacheKey returns the part of the page's key in the cache that depends on the query: the normalized query and the
// names of invalid parameters.
func (q pageQuery) cacheKey() string {
	values := q.values()
	for name := range q.Problems {
		values.Add("problem", name)
	}
	slices.Sort(values["problem"])
	return values.Encode()
}

// pills returns links to the history on the same page, one for each value of a parameter. set sets the parameter in a
// query, and text is the text of the link.
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
