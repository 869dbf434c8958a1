package httpapi

import (
	"crypto/sha256"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/encode"
	"github.com/tasard/tasard/httpapi/internal/fields"
	"github.com/tasard/tasard/httpapi/internal/params"
)

// conversionTemplate is the answer of convert without its amounts: the rest is the same for every request, so a new
// amount costs copies and one multiplication for each rate.
type conversionTemplate struct {
	digest []byte // of text
	// text is the whole answer without the amounts.
	text        []byte
	items       []amountOffsets
	generatedAt int // where generatedAt stands in text
}

// amountOffsets are the places in conversionTemplate.text where the amounts of one item belong.
type amountOffsets struct{ foreignAmount, amountDOP int }

func newConversionTemplate(page *engine.Page[*engine.Rate], q *params.Query, feeNotice string, now requestTime) *conversionTemplate {
	s := &conversionTemplate{items: make([]amountOffsets, 0, len(page.Items))}
	text := append(make([]byte, 0, (rateBytesGuess+2*len(feeNotice))*(len(page.Items)+1)), `{"data":[`...)
	for _, rate := range page.Items {
		var line amountOffsets
		text = append(encode.Comma(text), '{')
		text = appendRate(encode.Name(text, "quote"), rate)
		text = encode.Field(text, "operation", string(q.Operation))
		text = append(encode.Name(text, "foreignAmount"), '"')
		line.foreignAmount = len(text)
		text = append(text, '"')
		text = encode.Field(text, "currency", rate.Currency)
		text = append(encode.Name(text, "amountDop"), '"')
		line.amountDOP = len(text)
		text = append(text, '"')
		text = encode.Field(text, "rate", rate.Side(q.Operation).String())
		text = encode.Bool(text, "feesIncluded", false)
		text = encode.Field(text, "feeNotice", feeNotice)
		text = append(text, '}')
		s.items = append(s.items, line)
	}
	text, s.generatedAt = appendMeta(append(text, ']'), page.Total, page.NextCursor, &now.text)
	s.text = append(text, '}')
	s.digest = bodyTag(encodedBody{s.text, s.generatedAt})
	return s
}

// appendBody appends the answer for an amount, with the time of now.
func (s *conversionTemplate) appendBody(dst []byte, items []*engine.Rate, q *params.Query, now requestTime) []byte {
	from := 0
	for i, line := range s.items {
		dst = append(dst, s.text[from:line.foreignAmount]...)
		dst = append(dst, q.Amount.String()...)
		dst = append(dst, s.text[line.foreignAmount:line.amountDOP]...)
		conversion := engine.Conversion{Quote: items[i], Operation: q.Operation, Amount: q.Amount}
		dst = conversion.AppendAmountDOP(dst)
		from = line.amountDOP
	}
	dst = append(dst, s.text[from:s.generatedAt]...)
	dst = append(dst, now.text[:]...)
	return append(dst, s.text[s.generatedAt+len(now.text):]...)
}

// etag is that of the answer for an amount: the body is a function of the template and the amount's text.
func (s *conversionTemplate) etag(dst []byte, amount engine.Amount) []byte {
	var room [64]byte
	digest := sha256.Sum256(append(append(room[:0], s.digest...), amount.String()...))
	return fields.AppendETag(dst, digest[:])
}

// operationIndex is the place of an operation's template.
func operationIndex(operation engine.Operation) int {
	if operation == engine.Buy {
		return 0
	}
	return 1
}
