package httpapi

import (
	"crypto/sha256"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/encode"
	"github.com/tasard/tasard/httpapi/internal/fields"
	"github.com/tasard/tasard/httpapi/internal/params"
	"github.com/tasard/tasard/httpapi/internal/rendered"
)

// The append functions append objects of the API (rate, institution, ...) as JSON, with all fields in the order of the
// API specification (contract/openapi.yaml). A field without a value is null, never missing.

func appendList[T any](dst []byte, items []T, appendItem func([]byte, T) []byte) []byte {
	dst = append(dst, '[')
	for _, item := range items {
		dst = appendItem(encode.Comma(dst), item)
	}
	return append(dst, ']')
}

func appendHistoryEntry(dst []byte, h engine.HistoryEntry) []byte {
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

func appendCurrency(dst []byte, c engine.CurrencyItem) []byte {
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

func appendInstitutionItem(dst []byte, item engine.InstitutionItem) []byte {
	dst = appendInstitution(dst, item.Institution)
	dst = appendList(encode.Name(dst, "currencies"), item.Currencies, encode.Text)
	dst = encode.Int(dst, "currentQuoteCount", int64(item.CurrentQuoteCount))
	return append(dst, '}')
}

// appendMeta appends the field meta of a list. It returns the extended slice and the offset in it of generatedAt's
// value.
func appendMeta(dst []byte, total, next int, generatedAt []byte) (longer []byte, offset int) {
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
	dst = append(dst, generatedAt...)
	dst = append(dst, '"')
	dst = encode.Field(dst, "quoteCurrency", engine.QuoteCurrency)
	return append(dst, '}'), offset
}

// listBody returns the body for a page of a list. operation is repeated in the body if it is not "".
func listBody[T any](page *engine.Page[T], operation engine.Operation, second *currentSecond, appendItem func([]byte, T) []byte) rendered.Encoded {
	body := append(make([]byte, 0, rateBytesGuess*(len(page.Items)+1)), `{"data":`...)
	body, offset := appendMeta(appendList(body, page.Items, appendItem), page.Total, page.NextCursor, second.Text[:])
	if operation != "" {
		body = encode.Field(body, "operation", string(operation))
	}
	return rendered.Encoded{Body: append(body, '}'), GeneratedAt: offset}
}

func currenciesBody(page *engine.Page[engine.CurrencyItem]) rendered.Encoded {
	body := appendList([]byte(`{"data":`), page.Items, appendCurrency)
	return rendered.Encoded{Body: append(body, '}'), GeneratedAt: rendered.NoGeneratedAt}
}

func institutionBody(detail *engine.InstitutionDetail) rendered.Encoded {
	body := appendInstitution([]byte(`{"data":`), detail.Institution)
	body = appendList(encode.Name(body, "rates"), detail.Items, encode.Rate)
	return rendered.Encoded{Body: append(body, `}}`...), GeneratedAt: rendered.NoGeneratedAt}
}

// conversionTemplate is the body of a response of /v1/convert without the amounts. appendBody inserts the amounts: it
// copies text, and multiplies once for each rate.
type conversionTemplate struct {
	tag         []byte // ETag of text, without the value of generatedAt
	text        []byte // the body without the amounts
	items       []amountOffsets
	generatedAt int                                           // offset in text of the value of generatedAt, the time of the response
	packed      [packedSlots]atomic.Pointer[packedConversion] // a hash table by holes
}

// packedSlots is the maximum number of cached packedConversions of a template. It is a power of two.
const packedSlots = 16

// packedConversion is a template compressed for amounts that have certain lengths.
type packedConversion struct {
	holes   []rendered.Span       // where the amounts and generatedAt are in the body
	spliced *rendered.SplicedGzip // the body compressed without them
}

// appendPacked appends the compressed body to dst. body and holes are results of appendBody.
func (t *conversionTemplate) appendPacked(dst, body []byte, holes []rendered.Span) []byte {
	hash := 0
	for _, hole := range holes {
		hash = hash*31 + hole.End
	}
	slot := &t.packed[hash&(packedSlots-1)]
	p := slot.Load()
	if p == nil || !slices.Equal(p.holes, holes) {
		p = &packedConversion{slices.Clone(holes), rendered.NewSplicedGzip(body, holes)}
		slot.Store(p)
	}
	return p.spliced.Append(dst, body, holes)
}

// amountOffsets are the offsets in conversionTemplate.text at which the two amounts of one item are inserted.
type amountOffsets struct{ foreignAmount, amountDOP int }

func newConversionTemplate(page *engine.Page[*engine.Rate], q *params.Query, feeNotice string, second *currentSecond) *conversionTemplate {
	t := &conversionTemplate{items: make([]amountOffsets, 0, len(page.Items))}
	text := append(make([]byte, 0, (rateBytesGuess+2*len(feeNotice))*(len(page.Items)+1)), `{"data":[`...)
	for _, rate := range page.Items {
		var offsets amountOffsets
		text = append(encode.Comma(text), '{')
		text = encode.Rate(encode.Name(text, "quote"), rate)
		text = encode.Field(text, "operation", string(q.Operation))
		text = append(encode.Name(text, "foreignAmount"), '"')
		offsets.foreignAmount = len(text)
		text = append(text, '"')
		text = encode.Field(text, "currency", rate.Currency)
		text = append(encode.Name(text, "amountDop"), '"')
		offsets.amountDOP = len(text)
		text = append(text, '"')
		text = encode.Field(text, "rate", rate.Side(q.Operation).String())
		text = encode.Bool(text, "feesIncluded", false)
		text = encode.Field(text, "feeNotice", feeNotice)
		text = append(text, '}')
		t.items = append(t.items, offsets)
	}
	text, t.generatedAt = appendMeta(append(text, ']'), page.Total, page.NextCursor, second.Text[:])
	t.text = append(text, '}')
	t.tag = rendered.Encoded{Body: t.text, GeneratedAt: t.generatedAt}.ETag()
	return t
}

// appendBody appends the body for the amount of q and the second now. items must be the rates of the template. It also
// appends the positions of the inserted texts in dst to holes.
func (t *conversionTemplate) appendBody(dst []byte, items []*engine.Rate, q *params.Query, now *currentSecond, holes *[]rendered.Span) []byte {
	copied := 0 // number of bytes of t.text that are in dst
	for i, offsets := range t.items {
		dst = append(dst, t.text[copied:offsets.foreignAmount]...)
		start := len(dst)
		dst = append(dst, q.Amount.String()...)
		dst = append(dst, t.text[offsets.foreignAmount:offsets.amountDOP]...)
		conversion := engine.Conversion{Quote: items[i], Operation: q.Operation, Amount: q.Amount}
		dst = conversion.AppendAmountDOP(dst)
		copied = offsets.amountDOP
		*holes = append(*holes, rendered.Span{Start: start, End: len(dst)})
	}
	dst = append(dst, t.text[copied:t.generatedAt]...)
	*holes = append(*holes, rendered.Span{Start: len(dst), End: len(dst) + len(now.Text)})
	dst = append(dst, now.Text[:]...)
	return append(dst, t.text[t.generatedAt+len(now.Text):]...)
}

// appendETag appends the ETag of the body for an amount: a digest of the template's ETag and the amount.
func (t *conversionTemplate) appendETag(dst []byte, amount engine.Amount) []byte {
	var room [64]byte
	digest := sha256.Sum256(append(append(room[:0], t.tag...), amount.String()...))
	return fields.AppendETag(dst, digest[:])
}

// rateBytesGuess is the approximate length of a rate as JSON.
const rateBytesGuess = 720
