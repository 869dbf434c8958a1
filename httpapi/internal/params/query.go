package params

import "github.com/tasard/tasard/engine"

// Query holds the parameters of a request. It is comparable and has no pointer into the request. A parameter that was
// not sent is zero, but limit has its default, and a history range is complete.
type Query struct {
	ID          string // path parameter of the detail
	Currency    string
	Institution string
	Channel     engine.Channel
	Kind        engine.Kind
	Operation   engine.Operation
	Amount      engine.Amount
	From, To    engine.Date
	Limit       int
	Cursor      int
}

// Filter selects the rates.
func (q Query) Filter() engine.Filter {
	return engine.Filter{Currency: q.Currency, Institution: q.Institution, Channel: q.Channel, Kind: q.Kind}
}

// Page selects the page.
func (q Query) Page() engine.PageRequest { return engine.PageRequest{Limit: q.Limit, Cursor: q.Cursor} }

// Ranking is the query for the best rates; comparing means that it is for a conversion.
func (q Query) Ranking(comparing bool) engine.RankingQuery {
	return engine.RankingQuery{Filter: q.Filter(), PageRequest: q.Page(), Operation: q.Operation, ForConvert: comparing}
}

// set reads a value byte for byte as it was sent. It returns false when the grammar refuses the value.
func (q *Query) set(p Param, value []byte, catalogue *engine.Catalogue) (ok bool) {
	switch p {
	case ParamCurrency:
		q.Currency, ok = currencyValue(value, catalogue)
	case ParamInstitution:
		q.Institution, ok = institutionValue(value, catalogue)
	case ParamChannel:
		q.Channel, ok = oneOf(value, engine.Channels())
	case ParamKind:
		q.Kind, ok = oneOf(value, engine.Kinds())
	case ParamOperation:
		q.Operation, ok = oneOf(value, []engine.Operation{engine.Buy, engine.Sell})
	case ParamAmount:
		q.Amount, ok = amountValue(value)
	case ParamFrom:
		q.From, ok = dateValue(value)
	case ParamTo:
		q.To, ok = dateValue(value)
	case ParamLimit:
		q.Limit, ok = wholeValue(value, 1, engine.LimitMax)
	case ParamCursor:
		q.Cursor, ok = wholeValue(value, 0, engine.CursorMax)
	}
	return ok
}

// currencyValue reads ^[A-Z]{3}$. A code that no catalogue knows is well-formed.
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

// institutionValue reads ^[a-z0-9-]+$. An id that no catalogue knows is well-formed.
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

// amountValue copies the text, which the amount keeps for its echo.
func amountValue(value []byte) (engine.Amount, bool) {
	amount, err := engine.ParseAmount(string(value))
	return amount, err == nil
}

func dateValue(value []byte) (engine.Date, bool) {
	date, err := engine.ParseDate(string(value))
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
