package simulated

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
)

const aheadDays = 30 // of FutureDate: more than the engine accepts

// pageData is the input of one response: the market at one instant, with the fault of the response applied to its
// values.
type pageData struct {
	snapshot
	Now         time.Time // in Santo Domingo
	fault       Fault
	old         bool // as of the day before
	request     *http.Request
	quotesShown []shownQuote
}

// shownQuote is a quote as a page shows it. A side is "" where the institution has none, and any text with a fault.
type shownQuote struct {
	Institution, Currency string
	Name                  string // of the institution, in lists
	Channel               engine.Channel
	Kind                  engine.Kind
	Buy, Sell             string
	Date                  engine.Date // zero = the institution gives none
	Published             time.Time   // in Santo Domingo; zero = the institution gives none
}

func (s *Site) pageData(r *http.Request, on activeFault) *pageData {
	v := &pageData{snapshot: s.market.snapshot(), fault: on.fault, request: r}
	if v.old = on.frozen != nil && !v.at.IsZero(); v.old {
		v.snapshot = *on.frozen()
	}
	v.Now = v.at.In(engine.Location())
	if v.fault == FutureDate {
		v.Now = v.Now.AddDate(0, 0, aheadDays)
	}
	for _, o := range v.quotes {
		v.quotesShown = append(v.quotesShown, shownQuoteOf(o, v.fault))
	}
	v.applyValueFault()
	return v
}

func shownQuoteOf(o engine.Observation, fault Fault) shownQuote {
	l := shownQuote{
		Institution: o.InstitutionID, Currency: o.Currency, Channel: o.Channel, Kind: o.Kind, Buy: o.Buy, Sell: o.Sell,
		Date: o.EffectiveDate,
	}
	if !o.PublishedAt.IsZero() {
		l.Published = o.PublishedAt.In(engine.Location())
	}
	if fault == FutureDate {
		if l.Date != 0 {
			l.Date = l.Date.AddDays(aheadDays)
		}
		if !l.Published.IsZero() {
			l.Published = l.Published.AddDate(0, 0, aheadDays)
		}
	}
	return l
}

// dayBefore returns the snapshot with all dates one day earlier.
func (o snapshot) dayBefore() *snapshot {
	o.at = o.at.AddDate(0, 0, -1)
	o.quotes = slices.Clone(o.quotes)
	for i := range o.quotes {
		q := &o.quotes[i]
		if !q.PublishedAt.IsZero() {
			q.PublishedAt = q.PublishedAt.AddDate(0, 0, -1)
		}
		if q.EffectiveDate != 0 {
			q.EffectiveDate = q.EffectiveDate.AddDays(-1)
		}
		for q.Kind == engine.Reference && weekend(q.EffectiveDate) {
			q.EffectiveDate = q.EffectiveDate.AddDays(-1)
		}
	}
	o.days = o.days[:max(len(o.days)-1, 0)]
	return &o
}

func (v *pageData) applyValueFault() {
	if v.fault == WrongCurrency {
		v.exchangeCurrencies()
	}
	if v.fault == Reordered {
		slices.Reverse(v.quotesShown)
	}
	for i := range v.quotesShown {
		l := &v.quotesShown[i]
		switch v.fault {
		case Swapped:
			l.Buy, l.Sell = l.Sell, l.Buy
		case SameTwice:
			l.Buy = l.Sell
		case MissingSide:
			l.Sell = ""
		default:
			l.Buy, l.Sell = faultyText(l.Buy, v.fault), faultyText(l.Sell, v.fault)
		}
	}
}

// exchangeCurrencies gives each quote the values of the same institution in another currency, or of about a Canadian
// dollar.
func (v *pageData) exchangeCurrencies() {
	right := slices.Clone(v.quotesShown)
	for i := range v.quotesShown {
		l := &v.quotesShown[i]
		l.Buy, l.Sell = otherCurrencyText(l.Buy), otherCurrencyText(l.Sell)
		for _, other := range right {
			if other.Institution == l.Institution && other.Currency != l.Currency && other.Kind == l.Kind {
				l.Buy, l.Sell = other.Buy, other.Sell
				break
			}
		}
	}
}

// otherCurrencyText is about the price of a Canadian dollar, with the decimals of the right value.
func otherCurrencyText(text string) string {
	if _, decimals, ok := strings.Cut(text, "."); ok {
		return "41." + decimals
	}
	return text
}

// faultyText returns a side with a fault. A missing side stays missing.
func faultyText(text string, fault Fault) string {
	if text == "" {
		return ""
	}
	switch fault {
	case Zeros:
		return "0.00"
	case LostDecimal:
		return strings.Replace(text, ".", "", 1)
	case DecimalComma:
		return strings.Replace(text, ".", ",", 1)
	case Footnote:
		return text + footnote
	case NotAvailable:
		return "N/A"
	default:
		return text
	}
}

// Of returns the quotes of an institution in order.
func (v *pageData) Of(institution string) []shownQuote {
	return slices.DeleteFunc(slices.Clone(v.quotesShown), func(l shownQuote) bool { return l.Institution != institution })
}

// Quote returns one quote, of any channel if none is given; a quote without values if there is none.
func (v *pageData) Quote(institution, currency string, channel ...engine.Channel) shownQuote {
	for _, l := range v.quotesShown {
		if l.Institution == institution && l.Currency == currency && (len(channel) == 0 || l.Channel == channel[0]) {
			return l
		}
	}
	return shownQuote{Institution: institution, Currency: currency}
}
