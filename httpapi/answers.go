package httpapi

import (
	"strconv"

	"github.com/tasard/tasard/engine"
)

// The fields of every resource, in the order of interface §2. All of them are always there; K8 closes the list.

func appendRate(dst []byte, r *engine.Rate) []byte {
	dst = append(dst, '{')
	dst = appendField(dst, "institutionId", r.InstitutionID)
	dst = appendField(dst, "currency", r.Currency)
	dst = appendField(dst, "quoteCurrency", engine.QuoteCurrency)
	dst = appendDecimal(dst, "buy", r.Buy)
	dst = appendDecimal(dst, "sell", r.Sell)
	dst = appendField(dst, "channel", string(r.Channel))
	dst = appendField(dst, "kind", string(r.Kind))
	dst = appendDate(dst, "effectiveDate", r.EffectiveDate)
	dst = appendTime(dst, "publishedAt", r.PublishedAt)
	dst = appendNullable(dst, "upstreamSource", r.UpstreamSource)
	dst = appendField(dst, "id", r.ID)
	dst = appendField(dst, "institutionName", r.InstitutionName)
	dst = appendField(dst, "institutionType", string(r.InstitutionType))
	dst = appendField(dst, "website", r.Website)
	dst = appendField(dst, "sourceId", r.SourceID)
	dst = appendField(dst, "sourceName", r.SourceName)
	dst = appendField(dst, "sourceUrl", r.SourceURL)
	dst = appendTime(dst, "collectedAt", r.CollectedAt)
	dst = appendTime(dst, "lastCheckedAt", r.LastCheckedAt)
	dst = appendTime(dst, "expiresAt", r.ExpiresAt)
	dst = appendWhole(dst, "priority", r.Priority)
	dst = appendBool(dst, "manual", r.Manual)
	dst = appendBool(dst, "stale", r.Stale)
	dst = appendField(dst, "datePrecision", string(r.DatePrecision))
	return append(dst, '}')
}

func appendRates(dst []byte, rates []*engine.Rate) []byte {
	dst = append(dst, '[')
	for _, rate := range rates {
		dst = appendRate(appendComma(dst), rate)
	}
	return append(dst, ']')
}

func appendHistoryEntry(dst []byte, h *engine.HistoryEntry) []byte {
	dst = append(dst, '{')
	dst = appendDate(dst, "date", h.Date)
	dst = appendField(dst, "institutionId", h.InstitutionID)
	dst = appendField(dst, "currency", h.Currency)
	dst = appendField(dst, "channel", string(h.Channel))
	dst = appendField(dst, "kind", string(h.Kind))
	dst = appendDecimal(dst, "buy", h.Buy)
	dst = appendDecimal(dst, "sell", h.Sell)
	dst = appendField(dst, "sourceId", h.SourceID)
	dst = appendField(dst, "datePrecision", string(h.DatePrecision))
	return append(dst, '}')
}

func appendCurrency(dst []byte, c *engine.CurrencyItem) []byte {
	dst = append(dst, '{')
	dst = appendField(dst, "code", c.Code)
	dst = appendField(dst, "name", c.Name)
	dst = appendField(dst, "symbol", c.Symbol)
	dst = appendWhole(dst, "quoteCount", int64(c.QuoteCount))
	dst = appendWhole(dst, "currentQuoteCount", int64(c.CurrentQuoteCount))
	return append(dst, '}')
}

// appendInstitution appends what list item and detail have in common, and leaves the object open.
func appendInstitution(dst []byte, i *engine.Institution) []byte {
	dst = append(dst, '{')
	dst = appendField(dst, "id", i.ID)
	dst = appendField(dst, "name", i.Name)
	dst = appendField(dst, "type", string(i.Type))
	dst = appendField(dst, "website", i.Website)
	dst = appendField(dst, "description", i.Description)
	dst = appendField(dst, "contact", i.Contact)
	return appendBool(dst, "active", i.Active)
}

func appendInstitutionItem(dst []byte, item *engine.InstitutionItem) []byte {
	dst = appendInstitution(dst, item.Institution)
	dst = append(appendName(dst, "currencies"), '[')
	for _, code := range item.Currencies {
		dst = appendText(appendComma(dst), code)
	}
	dst = append(dst, ']')
	dst = appendWhole(dst, "currentQuoteCount", int64(item.CurrentQuoteCount))
	return append(dst, '}')
}

// appendMeta appends page metadata (interface §2.2) and tells where the time in it stands.
func appendMeta(dst []byte, total, next int, generatedAt *timeText) (longer []byte, stamp int) {
	dst = append(appendName(dst, "meta"), '{')
	dst = appendWhole(dst, "total", int64(total))
	dst = appendName(dst, "nextCursor")
	if next == engine.NoNext {
		dst = append(dst, "null"...)
	} else {
		dst = strconv.AppendInt(dst, int64(next), 10)
	}
	dst = append(appendName(dst, "generatedAt"), '"')
	stamp = len(dst)
	dst = append(dst, generatedAt[:]...)
	dst = append(dst, '"')
	dst = appendField(dst, "quoteCurrency", engine.QuoteCurrency)
	return append(dst, '}'), stamp
}

// ratesBody is the answer of rates, and of best, which echoes its operation.
func ratesBody(page *engine.Page[*engine.Rate], operation engine.Operation, now instant) draft {
	body := append(make([]byte, 0, rateBytesGuess*(len(page.Items)+1)), `{"data":`...)
	body = appendRates(body, page.Items)
	body, stamp := appendMeta(body, page.Total, page.Next, &now.text)
	if operation != "" {
		body = appendField(body, "operation", string(operation))
	}
	return draft{append(body, '}'), stamp}
}

func historyBody(page *engine.Page[engine.HistoryEntry], now instant) draft {
	body := []byte(`{"data":[`)
	for i := range page.Items {
		body = appendHistoryEntry(appendComma(body), &page.Items[i])
	}
	body, stamp := appendMeta(append(body, ']'), page.Total, page.Next, &now.text)
	return draft{append(body, '}'), stamp}
}

func institutionsBody(page *engine.Page[engine.InstitutionItem], now instant) draft {
	body := []byte(`{"data":[`)
	for i := range page.Items {
		body = appendInstitutionItem(appendComma(body), &page.Items[i])
	}
	body, stamp := appendMeta(append(body, ']'), page.Total, page.Next, &now.text)
	return draft{append(body, '}'), stamp}
}

// currenciesBody has no meta (interface §4.2).
func currenciesBody(page *engine.Page[engine.CurrencyItem]) draft {
	body := []byte(`{"data":[`)
	for i := range page.Items {
		body = appendCurrency(appendComma(body), &page.Items[i])
	}
	return draft{append(body, `]}`...), noStamp}
}

// institutionBody has no meta either (interface §4.4).
func institutionBody(detail *engine.InstitutionDetail) draft {
	body := appendInstitution([]byte(`{"data":`), detail.Institution)
	body = appendRates(appendName(body, "rates"), detail.Rates)
	return draft{append(body, `}}`...), noStamp}
}
