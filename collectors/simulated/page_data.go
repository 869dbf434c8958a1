package simulated

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
)

const futureDays = 30 // days that the fault FutureDate adds to dates; the engine rejects such dates

// pageData is the input for one response of the simulated site: the market at one time, and the fault that the response
// must have.
type pageData struct {
	snapshot
	Now         time.Time // in Santo Domingo
	fault       Fault
	frozen      bool // snapshot is of the day before, because of the fault Frozen
	request     *http.Request
	quotesShown []shownQuote // the quotes of snapshot, with faults of prices applied
}

// shownQuote is a quote as a page shows it: a fault may make its sides any text.
type shownQuote struct {
	engine.Observation
	Name string // name of the institution; only in the lists of sites that copy rates
}

func (s *Site) pageData(r *http.Request, active activeFault) *pageData {
	v := &pageData{snapshot: s.market.snapshot(), fault: active.fault, request: r}
	if v.frozen = active.frozen != nil && !v.time.IsZero(); v.frozen {
		v.snapshot = *active.frozen()
	}
	v.Now = v.time.In(engine.Location())
	if v.fault == FutureDate {
		v.Now = v.Now.AddDate(0, 0, futureDays)
	}
	for _, o := range v.quotes {
		if v.fault == FutureDate {
			o = shiftDays(o, futureDays)
		}
		v.quotesShown = append(v.quotesShown, shownQuote{Observation: o})
	}
	v.applyValueFault()
	return v
}

// shiftDays moves the dates that an institution gives by a number of days.
func shiftDays(o engine.Observation, days int) engine.Observation {
	if !o.PublishedAt.IsZero() {
		o.PublishedAt = o.PublishedAt.AddDate(0, 0, days)
	}
	if o.EffectiveDate != 0 {
		o.EffectiveDate = o.EffectiveDate.AddDays(days)
	}
	return o
}

// dayBefore returns a copy of the snapshot, with all dates one day earlier.
func (s snapshot) dayBefore() *snapshot {
	s.time = s.time.AddDate(0, 0, -1)
	s.quotes = slices.Clone(s.quotes)
	for i := range s.quotes {
		q := &s.quotes[i]
		*q = shiftDays(*q, -1)
		for q.Kind == engine.Reference && isWeekend(q.EffectiveDate) {
			q.EffectiveDate = q.EffectiveDate.AddDays(-1)
		}
	}
	s.days = s.days[:max(len(s.days)-1, 0)]
	return &s
}

func (v *pageData) applyValueFault() {
	if v.fault == WrongCurrency {
		v.exchangeCurrencies()
	}
	if v.fault == Reordered {
		slices.Reverse(v.quotesShown)
	}
	for i := range v.quotesShown {
		q := &v.quotesShown[i]
		switch v.fault {
		case Swapped:
			q.Buy, q.Sell = q.Sell, q.Buy
		case SameTwice:
			q.Buy = q.Sell
		case MissingSide:
			q.Sell = ""
		default:
			q.Buy, q.Sell = faultyText(q.Buy, v.fault), faultyText(q.Sell, v.fault)
		}
	}
}

// exchangeCurrencies gives each quote the prices of another currency of its institution. If there is no other currency,
// it uses otherCurrencyText.
func (v *pageData) exchangeCurrencies() {
	original := slices.Clone(v.quotesShown)
	for i := range v.quotesShown {
		q := &v.quotesShown[i]
		q.Buy, q.Sell = otherCurrencyText(q.Buy), otherCurrencyText(q.Sell)
		for _, other := range original {
			if other.InstitutionID == q.InstitutionID && other.Currency != q.Currency && other.Kind == q.Kind {
				q.Buy, q.Sell = other.Buy, other.Sell
				break
			}
		}
	}
}

// otherCurrencyText returns a price near that of a Canadian dollar, with the decimals of text.
func otherCurrencyText(text string) string {
	if _, decimals, ok := strings.Cut(text, "."); ok {
		return "41." + decimals
	}
	return text
}

// faultyText applies a fault to the text of a price. A missing price ("") stays missing.
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

// Quotes returns the quotes of an institution in the order of quotesShown.
func (v *pageData) Quotes(institution string) []shownQuote {
	return slices.DeleteFunc(slices.Clone(v.quotesShown), func(q shownQuote) bool { return q.InstitutionID != institution })
}

// Quote returns the quote of a currency and channel. Without channel it returns the first quote of the currency. If
// there is no such quote, both sides of the result are "".
func (v *pageData) Quote(institution, currency string, channel ...engine.Channel) shownQuote {
	for _, q := range v.quotesShown {
		if q.InstitutionID == institution && q.Currency == currency && (len(channel) == 0 || q.Channel == channel[0]) {
			return q
		}
	}
	return shownQuote{}
}
