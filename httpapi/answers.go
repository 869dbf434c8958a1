package httpapi

import (
	"strconv"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/encode"
	"github.com/tasard/tasard/httpapi/internal/rendered"
)

// The append functions append objects of the API (rate, institution, ...) as JSON, with all fields in the order of the
// API specification (contract/openapi.yaml). A field without a value is null, never missing.

func appendRates(dst []byte, rates []*engine.Rate) []byte {
	dst = append(dst, '[')
	for _, rate := range rates {
		dst = encode.Rate(encode.Comma(dst), rate)
	}
	return append(dst, ']')
}

func appendHistoryEntry(dst []byte, h *engine.HistoryEntry) []byte {
	dst = append(dst, '{')
	dst = encode.Date(dst, "date", h.Date)
	dst = encode.Field(dst, "institutionId", h.InstitutionID)
	dst = encode.Field(dst, "currency", h.Currency)
	dst = encode.Field(dst, "channel", string(h.Channel))
	dst = encode.Field(dst, "kind", string(h.Kind))
	dst = encode.Decimal(dst, "buy", h.Buy)
	dst = encode.Decimal(dst, "sell", h.Sell)
	dst = encode.Field(dst, "sourceId", h.SourceID)
	dst = encode.Field(dst, "datePrecision", string(h.DatePrecision))
	return append(dst, '}')
}

func appendCurrency(dst []byte, c *engine.CurrencyItem) []byte {
	dst = append(dst, '{')
	dst = encode.Field(dst, "code", c.Code)
	dst = encode.Field(dst, "name", c.Name)
	dst = encode.Field(dst, "symbol", c.Symbol)
	dst = encode.Int(dst, "quoteCount", int64(c.QuoteCount))
	dst = encode.Int(dst, "currentQuoteCount", int64(c.CurrentQuoteCount))
	return append(dst, '}')
}

// appendInstitution appends an institution without the closing brace, so that callers can append more fields.
func appendInstitution(dst []byte, i *engine.Institution) []byte {
	dst = append(dst, '{')
	dst = encode.Field(dst, "id", i.ID)
	dst = encode.Field(dst, "name", i.Name)
	dst = encode.Field(dst, "type", string(i.Type))
	dst = encode.Field(dst, "website", i.Website)
	dst = encode.Field(dst, "description", i.Description)
	dst = encode.Field(dst, "contact", i.Contact)
	return encode.Bool(dst, "active", i.Active)
}

func appendInstitutionItem(dst []byte, item *engine.InstitutionItem) []byte {
	dst = appendInstitution(dst, item.Institution)
	dst = append(encode.Name(dst, "currencies"), '[')
	for _, code := range item.Currencies {
		dst = encode.Text(encode.Comma(dst), code)
	}
	dst = append(dst, ']')
	dst = encode.Int(dst, "currentQuoteCount", int64(item.CurrentQuoteCount))
	return append(dst, '}')
}

// appendMeta appends the field meta of a list. It returns the extended slice and the offset in it of generatedAt's
// value.
func appendMeta(dst []byte, total, next int, generatedAt *rendered.Text) (longer []byte, offset int) {
	dst = append(encode.Name(dst, "meta"), '{')
	dst = encode.Int(dst, "total", int64(total))
	dst = encode.Name(dst, "nextCursor")
	if next == engine.NoNextCursor {
		dst = append(dst, "null"...)
	} else {
		dst = strconv.AppendInt(dst, int64(next), 10)
	}
	dst = append(encode.Name(dst, "generatedAt"), '"')
	offset = len(dst)
	dst = append(dst, generatedAt[:]...)
	dst = append(dst, '"')
	dst = encode.Field(dst, "quoteCurrency", engine.QuoteCurrency)
	return append(dst, '}'), offset
}

func ratesBody(page *engine.Page[*engine.Rate], now requestTime) rendered.Encoded {
	body, offset := appendRatesPage(page, now)
	return rendered.Encoded{Body: append(body, '}'), GeneratedAt: offset}
}

func bestToBuyBody(page *engine.Page[*engine.Rate], now requestTime) rendered.Encoded {
	body, offset := appendRatesPage(page, now)
	return rendered.Encoded{Body: append(body, `,"operation":"buy"}`...), GeneratedAt: offset}
}

func bestToSellBody(page *engine.Page[*engine.Rate], now requestTime) rendered.Encoded {
	body, offset := appendRatesPage(page, now)
	return rendered.Encoded{Body: append(body, `,"operation":"sell"}`...), GeneratedAt: offset}
}

// appendRatesPage returns the fields data and meta, and the offset of generatedAt's value.
func appendRatesPage(page *engine.Page[*engine.Rate], now requestTime) (body []byte, offset int) {
	body = append(make([]byte, 0, rateBytesGuess*(len(page.Items)+1)), `{"data":`...)
	return appendMeta(appendRates(body, page.Items), page.Total, page.NextCursor, &now.Text)
}

func historyBody(page *engine.Page[engine.HistoryEntry], now requestTime) rendered.Encoded {
	body := []byte(`{"data":[`)
	for i := range page.Items {
		body = appendHistoryEntry(encode.Comma(body), &page.Items[i])
	}
	body, offset := appendMeta(append(body, ']'), page.Total, page.NextCursor, &now.Text)
	return rendered.Encoded{Body: append(body, '}'), GeneratedAt: offset}
}

func institutionsBody(page *engine.Page[engine.InstitutionItem], now requestTime) rendered.Encoded {
	body := []byte(`{"data":[`)
	for i := range page.Items {
		body = appendInstitutionItem(encode.Comma(body), &page.Items[i])
	}
	body, offset := appendMeta(append(body, ']'), page.Total, page.NextCursor, &now.Text)
	return rendered.Encoded{Body: append(body, '}'), GeneratedAt: offset}
}

func currenciesBody(page *engine.Page[engine.CurrencyItem], _ requestTime) rendered.Encoded {
	body := []byte(`{"data":[`)
	for i := range page.Items {
		body = appendCurrency(encode.Comma(body), &page.Items[i])
	}
	return rendered.Encoded{Body: append(body, `]}`...), GeneratedAt: rendered.NoGeneratedAt}
}

func institutionBody(detail *engine.InstitutionDetail) rendered.Encoded {
	body := appendInstitution([]byte(`{"data":`), detail.Institution)
	body = appendRates(encode.Name(body, "rates"), detail.Rates)
	return rendered.Encoded{Body: append(body, `}}`...), GeneratedAt: rendered.NoGeneratedAt}
}
