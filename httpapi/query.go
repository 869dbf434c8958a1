package httpapi

import (
	"github.com/tasard/tasard/engine"
)

// query is every parameter of a request in its own memory: nothing in it points into the request. Comparable. What was not
// sent is zero; limit and cursor have their defaults, and a history range is complete.
type query struct {
	id          string // path parameter of the detail
	currency    string
	institution string
	channel     engine.Channel
	kind        engine.Kind
	operation   engine.Operation
	amount      engine.Amount
	from, to    engine.Date
	limit       int
	cursor      int
}

func (q query) filter() engine.Filter {
	return engine.Filter{Currency: q.currency, Institution: q.institution, Channel: q.channel, Kind: q.kind}
}

func (q query) cut() engine.Cut { return engine.Cut{Limit: q.limit, Cursor: q.cursor} }

func (q query) ranking(comparing bool) engine.RankingQuery {
	return engine.RankingQuery{Filter: q.filter(), Cut: q.cut(), Operation: q.operation, Comparing: comparing}
}

// set reads one value, byte for byte as it was sent (Q3). False when the grammar refuses it.
func (q *query) set(p param, value []byte, catalogue *engine.Catalogue) (ok bool) {
	switch p {
	case paramCurrency:
		q.currency, ok = currencyValue(value, catalogue)
	case paramInstitution:
		q.institution, ok = institutionValue(value, catalogue)
	case paramChannel:
		q.channel, ok = oneOf(value, engine.Channels())
	case paramKind:
		q.kind, ok = oneOf(value, engine.Kinds())
	case paramOperation:
		q.operation, ok = operationValue(value)
	case paramAmount:
		q.amount, ok = amountValue(value)
	case paramFrom:
		q.from, ok = dateValue(value)
	case paramTo:
		q.to, ok = dateValue(value)
	case paramLimit:
		q.limit, ok = wholeValue(value, 1, engine.LimitMax)
	case paramCursor:
		q.cursor, ok = wholeValue(value, 0, engine.CursorMax)
	}
	return ok
}

// currencyValue reads ^[A-Z]{3}$. A code that no catalogue knows is well-formed (P9).
func currencyValue(value []byte, catalogue *engine.Catalogue) (string, bool) {
	if len(value) != len(engine.QuoteCurrency) {
		return "", false
	}
	for _, c := range value {
		if c < 'A' || c > 'Z' {
			return "", false
		}
	}
	if known, ok := catalogue.InternCurrency(value); ok {
		return known, true
	}
	return string(value), true
}

// institutionValue reads ^[a-z0-9-]+$. An id that no catalogue knows is well-formed (P9).
func institutionValue(value []byte, catalogue *engine.Catalogue) (string, bool) {
	if len(value) == 0 {
		return "", false
	}
	for _, c := range value {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return "", false
		}
	}
	if known, ok := catalogue.InternInstitution(value); ok {
		return known, true
	}
	return string(value), true
}

// oneOf finds a word in its closed list and gives the list's own copy.
func oneOf[T ~string](value []byte, words []T) (T, bool) {
	for _, word := range words {
		if string(value) == string(word) {
			return word, true
		}
	}
	return "", false
}

func operationValue(value []byte) (engine.Operation, bool) {
	switch string(value) {
	case string(engine.Buy):
		return engine.Buy, true
	case string(engine.Sell):
		return engine.Sell, true
	}
	return "", false
}

// amountValue copies the text, which the amount keeps for its echo (S9).
func amountValue(value []byte) (engine.Amount, bool) {
	amount, err := engine.ParseAmount(string(value))
	return amount, err == nil
}

func dateValue(value []byte) (engine.Date, bool) {
	date, err := engine.ParseDate(textOf(value))
	return date, err == nil
}

// wholeValue reads a whole number without sign or leading zero, from least to most.
func wholeValue(value []byte, least, most int) (int, bool) {
	const digitsMax = 6 // those of engine.CursorMax
	if len(value) == 0 || len(value) > digitsMax || value[0] == '0' && len(value) > 1 {
		return 0, false
	}
	number := 0
	for _, c := range value {
		if c < '0' || c > '9' {
			return 0, false
		}
		number = number*10 + int(c-'0')
	}
	return number, number >= least && number <= most
}
