package collectors_test

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tasard/tasard/collectors/simulated"
	"github.com/tasard/tasard/engine"
)

// operator is one way to spoil a document. It gives nil when the document has nothing that it could spoil.
type operator struct {
	name  string
	spoil func(*trial) []byte
}

// operators are those of D1: on the text of one value, on the whole document, and those that the simulated site can show itself
// (for workbooks, which are no text).
func operators() []operator {
	all := []operator{
		{"x10", rewrite(func(v string) string { return shifted(v, 1) })},
		{"x100", rewrite(func(v string) string { return shifted(v, 2) })},
		{"/10", rewrite(func(v string) string { return shifted(v, -1) })},
		{"/1000", rewrite(func(v string) string { return shifted(v, -3) })},
		{"decimal comma", rewrite(func(v string) string { return strings.Replace(v, ".", ",", 1) })},
		{"thousands comma", rewrite(func(v string) string { return shifted(v, 1)[:1] + "," + shifted(v, 1)[1:] })},
		{"comma and three digits", rewrite(func(v string) string { return strings.Replace(v, ".", ",", 1) + "0" })},
		{"lost point", rewrite(func(v string) string { return strings.Replace(v, ".", "", 1) })},
		{"no-break space", rewrite(func(v string) string { return "\u00a0" + v + "\u00a0" })},
		{"space within", rewrite(func(v string) string { return v[:1] + " " + v[1:] })},
		{"NaN", rewrite(func(string) string { return "NaN" })},
		{"Infinity", rewrite(func(string) string { return "Infinity" })},
		{"exponent", rewrite(func(v string) string { return v + "e1" })},
		{"thirty digits", rewrite(func(v string) string { return v + strings.Repeat("7", 30) })},
		{"negative", rewrite(func(v string) string { return "-" + v })},
		{"two values", rewrite(func(v string) string { return v + " " + shifted(v, -1) })},
		{"footnote raised", footnote("<sup>1</sup>")},
		{"footnote digit", footnote("1")},
		{"footnote in brackets", footnote(" (1)")},
		{"footnote sign", footnote("¹")},
		{"one side missing", (*trial).oneSideMissing},
		{"sides exchanged", (*trial).exchanged},
		{"same side twice", (*trial).sameTwice},
		{"another currency", (*trial).otherCurrency},
		{"empty", func(*trial) []byte { return []byte{} }},
		{"blank", func(*trial) []byte { return []byte(" \r\n\t ") }},
		{"challenge", func(*trial) []byte { return []byte(challenge) }},
		{"error page", func(*trial) []byte {
			return []byte("<!doctype html><html><body><h1>Error 500: 58.90</h1></body></html>")
		}},
		{"half", (*trial).half},
		{"future date", (*trial).futureDate},
	}
	for _, fault := range []simulated.Fault{
		simulated.Zeros, simulated.Swapped, simulated.SameTwice, simulated.LostDecimal, simulated.DecimalComma, simulated.WrongCurrency,
		simulated.MissingSide, simulated.Footnote, simulated.NotAvailable, simulated.Reordered, simulated.Layout, simulated.Challenge,
		simulated.EmptyBody, simulated.Half, simulated.ErrorPage, simulated.Frozen, simulated.FutureDate,
	} {
		all = append(all, operator{"site: " + string(fault), shown(fault)})
	}
	return all
}

const challenge = `<html><head><META NAME="robots" CONTENT="noindex,nofollow"><script src="/_Incapsula_Resource?SWJIYLWA=7"></script></head>
<body><iframe src="/_Incapsula_Resource?incident_id=1">Request unsuccessful. Incapsula incident ID: 1</iframe></body></html>`

// shown lets the site itself publish the fault once.
func shown(fault simulated.Fault) func(*trial) []byte {
	return func(x *trial) []byte {
		if err := x.town.site.Break(x.source.ID, fault); err != nil {
			x.town.t.Fatal(err)
		}
		defer x.town.site.Mend(x.source.ID)
		return x.town.site.Document(x.source.ID, x.page).Body
	}
}

// value is the place of a text that stands alone: 58.90, not the end of 158.90 or the beginning of 58.901.
func value(text string) *regexp.Regexp {
	return regexp.MustCompile(`(^|[^0-9.,])(` + regexp.QuoteMeta(text) + `)($|[^0-9.,])`)
}

// replaced writes another text for each place of a value, nil when there is none.
func replaced(body []byte, text, by string) []byte {
	if text == "" {
		return nil
	}
	for _, form := range []struct{ from, to string }{{text, by}, {strings.Replace(text, ".", ",", 1), by}} {
		if pattern := value(form.from); pattern.Match(body) {
			return pattern.ReplaceAll(body, []byte("${1}"+strings.ReplaceAll(form.to, "$", "$$")+"${3}"))
		}
	}
	return nil
}

// rewrite changes one side of one quote, wherever its text stands.
func rewrite(change func(string) string) func(*trial) []byte {
	return func(x *trial) []byte {
		o := x.quote()
		text := o.Buy
		if text == "" || o.Sell != "" && x.random.IntN(2) == 0 {
			text = o.Sell
		}
		if len(text) < 3 {
			return nil
		}
		return replaced(x.body, text, change(text))
	}
}

// shifted moves the decimal point.
func shifted(value string, places int) string {
	whole, part, _ := strings.Cut(value, ".")
	for ; places > 0; places-- {
		if part == "" {
			part = "0"
		}
		whole, part = whole+part[:1], part[1:]
	}
	for ; places < 0; places++ {
		if len(whole) < 2 {
			whole = "0" + whole
		}
		whole, part = whole[:len(whole)-1], whole[len(whole)-1:]+part
	}
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	if part == "" {
		return whole
	}
	return whole + "." + part
}

// footnote hangs something on a value of a page. Only pages have footnotes: in JSON a digit more is another number.
func footnote(mark string) func(*trial) []byte {
	return func(x *trial) []byte {
		if !bytes.Contains(x.body, []byte("<html")) {
			return nil
		}
		return rewrite(func(v string) string { return v + mark })(x)
	}
}

func (x *trial) oneSideMissing() []byte {
	o := x.quote()
	return replaced(x.body, o.Buy, [...]string{"", "N/A", "-", "null"}[x.random.IntN(4)])
}

func (x *trial) exchanged() []byte {
	o := x.loneQuote()
	marked := replaced(x.body, o.Buy, "@@")
	if marked = replaced(marked, o.Sell, o.Buy); marked == nil {
		return nil
	}
	return bytes.ReplaceAll(marked, []byte("@@"), []byte(o.Sell))
}

func (x *trial) sameTwice() []byte {
	o := x.loneQuote()
	if x.random.IntN(2) == 0 {
		return replaced(x.body, o.Buy, o.Sell)
	}
	return replaced(x.body, o.Sell, o.Buy)
}

// otherCurrency writes both sides of another currency of the market into a quote.
func (x *trial) otherCurrency() []byte {
	o := x.loneQuote()
	var others []engine.Observation
	for _, other := range x.town.market.Quotes() {
		if other.Currency != o.Currency && other.Kind == o.Kind && other.Buy != "" && other.Sell != "" {
			others = append(others, other)
		}
	}
	if len(others) == 0 || o.Buy == "" || o.Sell == "" || o.Buy == o.Sell {
		return nil
	}
	other := others[x.random.IntN(len(others))]
	marked := replaced(x.body, o.Buy, "@@")
	if marked = replaced(marked, o.Sell, other.Sell); marked == nil {
		return nil
	}
	return bytes.ReplaceAll(marked, []byte("@@"), []byte(other.Buy))
}

// half cuts the document anywhere in its middle.
func (x *trial) half() []byte {
	return slices.Clone(x.body[:len(x.body)/8+x.random.IntN(len(x.body)*3/4)])
}

// futureDate sets every date of the document thirty days ahead.
func (x *trial) futureDate() []byte {
	for _, o := range x.said {
		if o.EffectiveDate.IsZero() {
			continue
		}
		old, ahead := o.EffectiveDate.String(), o.EffectiveDate.AddDays(30).String()
		if bytes.Contains(x.body, []byte(old)) {
			return bytes.ReplaceAll(x.body, []byte(old), []byte(ahead))
		}
		oldText, newText := dayMonthYear(old), dayMonthYear(ahead)
		return bytes.ReplaceAll(x.body, []byte(oldText), []byte(newText))
	}
	return nil
}

func dayMonthYear(iso string) string {
	return fmt.Sprintf("%s/%s/%s", iso[8:10], iso[5:7], iso[:4])
}
