package pages

import (
	"net/url"
	"slices"
	"strconv"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/tasard/tasard/engine"
)

// Defaults of the query.
const (
	currencyDefault   = "USD"
	periodDefault     = 30
	amountTypedMax    = 24 // a valid amount with commas has 18
	parameterCurrency = "currency"
)

// periods are the lengths of charts in days.
func periods() []int { return []int{7, 30, 90, 365} }

// pageQuery is the query of a page with rates. Unknown parameters are ignored.
type pageQuery struct {
	Currency   string
	Operation  engine.Operation
	Channel    engine.Channel // "" = all
	Days       int
	AmountText string        // as it was typed
	Amount     engine.Amount // zero = none
	// Problems are keys of texts by parameter. The page uses defaults for the rest.
	Problems map[string]string
}

// parsePageQuery parses a query. An invalid value leaves the default and a problem.
func parsePageQuery(query url.Values, catalogue *engine.Catalogue) pageQuery {
	q := pageQuery{Currency: currencyDefault, Operation: engine.Buy, Days: periodDefault, Problems: map[string]string{}}
	read := func(name string, set func(text string) bool) {
		if text := query.Get(name); text != "" && !set(text) {
			q.Problems[name] = "problem." + name
		}
	}
	read(parameterCurrency, func(text string) bool {
		known, ok := catalogue.Currency(text)
		if ok {
			q.Currency = known.Code
		}
		return ok
	})
	read("operation", func(text string) bool { return setIf(&q.Operation)(engine.ParseOperation(text)) })
	read("channel", func(text string) bool { return setIf(&q.Channel)(engine.ParseChannel(text)) })
	read("days", func(text string) bool {
		days, err := strconv.Atoi(text)
		return setIf(&q.Days)(days, err == nil && slices.Contains(periods(), days))
	})
	q.readAmount(query.Get("amount"))
	return q
}

// setIf returns a function that sets a valid value.
func setIf[T any](into *T) func(value T, ok bool) bool {
	return func(value T, ok bool) bool {
		if ok {
			*into = value
		}
		return ok
	}
}

// readAmount also accepts 1,234.50, which /v1/convert does not.
func (q *pageQuery) readAmount(text string) {
	runes := []rune(text)
	q.AmountText = string(runes[:min(len(runes), amountTypedMax)])
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

// values returns the normalized query, without defaults. An invalid amount is kept, so that the page in the other
// language shows it too.
func (q pageQuery) values() url.Values {
	values := url.Values{}
	set := func(name, value string, usual bool) {
		if !usual {
			values.Set(name, value)
		}
	}
	set(parameterCurrency, q.Currency, q.Currency == currencyDefault)
	set("operation", string(q.Operation), q.Operation == engine.Buy)
	set("channel", string(q.Channel), q.Channel == "")
	set("days", strconv.Itoa(q.Days), q.Days == periodDefault)
	set("amount", q.AmountText, q.AmountText == "")
	return values
}

// cacheKey identifies the page in the cache.
func (q pageQuery) cacheKey() string {
	values := q.values()
	for name := range q.Problems {
		values.Add("problem", name)
	}
	slices.Sort(values["problem"])
	return values.Encode()
}

// pills are links to the history with another value of one parameter.
func pills[T comparable](page string, q pageQuery, label string, values []T, current T, set func(*pageQuery, T), text func(T) string) Node {
	return Nav(Class("pills"), Aria("label", label), Map(values, func(value T) Node {
		changed := q
		set(&changed, value)
		return A(Href(pathWith(page, changed.values())+"#history"), If(value == current, Aria("current", "true")), Text(text(value)))
	}))
}

// periodLinks are links to other periods.
func periodLinks(page string, q pageQuery, l *Localizer) Node {
	return pills(page, q, l.Str("history.window"), periods(), q.Days,
		func(q *pageQuery, days int) { q.Days = days },
		func(days int) string { return l.Str("window." + strconv.Itoa(days)) })
}
