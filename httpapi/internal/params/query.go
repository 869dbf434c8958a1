package params

import "github.com/tasard/tasard/engine"

// Query has the parameters of a request. It is comparable and has no pointer into the request. A missing parameter is
// zero, but Limit has its default, and From and To are always set for History.
type Query struct {
	ID          string // id of an institution, from the path
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

// Filter returns the parameters that select rates.
func (q *Query) Filter() engine.Filter {
	return engine.Filter{Currency: q.Currency, Institution: q.Institution, Channel: q.Channel, Kind: q.Kind}
}

// Page returns the parameters that select a page.
func (q *Query) Page() engine.PageRequest {
	return engine.PageRequest{Limit: q.Limit, Cursor: q.Cursor}
}

// Ranking returns the query for /v1/convert if forConvert is true, else for /v1/rates/best. now is in Unix nanoseconds.
func (q *Query) Ranking(now int64, forConvert bool) engine.RankingQuery {
	return engine.RankingQuery{Filter: q.Filter(), PageRequest: q.Page(), Operation: q.Operation, ForConvert: forConvert, At: now}
}

// set parses a value into its field of q. The value must be percent-decoded already. It returns false if the value is
// invalid.
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

// currencyValue parses ^[A-Z]{3}$. The currency need not be in the catalogue of known currencies.
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

// institutionValue parses ^[a-z0-9-]+$. The institution need not be in the catalogue of known institutions.
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

// oneOf returns the element of words that equals value. It does not allocate.
func oneOf[T ~string](value []byte, words []T) (T, bool) {
	for _, word := range words {
		if string(value) == string(word) {
			return word, true
		}
	}
	return "", false
}

func amountValue(value []byte) (engine.Amount, bool) {
	amount, err := engine.ParseAmount(string(value))
	return amount, err == nil
}

func dateValue(value []byte) (engine.Date, bool) {
	date, err := engine.ParseDate(string(value))
	return date, err == nil
}

// wholeValue parses a whole number from minimum to maximum, without sign or leading zero.
func wholeValue(value []byte, minimum, maximum int) (int, bool) {
	const digitsMax = 6 // as many as engine.CursorMax has
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
	return number, number >= minimum && number <= maximum
}
