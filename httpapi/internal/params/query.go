package params

import "github.com/tasard/tasard/engine"

// Query contains the parameters of a request. It is comparable and shares no memory with the request. Missing
// parameters are zero, except that Limit has the default, and From and To are always set for the operation History.
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

// Filter returns the filter of rates.
func (q *Query) Filter() engine.Filter {
	return engine.Filter{Currency: q.Currency, Institution: q.Institution, Channel: q.Channel, Kind: q.Kind}
}

// Page returns the limit and the cursor.
func (q *Query) Page() engine.PageRequest {
	return engine.PageRequest{Limit: q.Limit, Cursor: q.Cursor}
}

// Ranking returns the query for /v1/convert if forConvert is true, else for /v1/rates/best. now is in Unix nanoseconds.
func (q *Query) Ranking(now int64, forConvert bool) engine.RankingQuery {
	return engine.RankingQuery{Filter: q.Filter(), PageRequest: q.Page(), Operation: q.Operation, ForConvert: forConvert, At: now}
}

// setCurrency parses ^[A-Z]{3}$. It also accepts currencies that are not in the catalogue.
func (q *Query) setCurrency(value []byte, catalogue *engine.Catalogue) bool {
	if len(value) != len(engine.QuoteCurrency) {
		return false
	}
	for _, c := range value {
		if c < 'A' || c > 'Z' {
			return false
		}
	}
	if known, ok := catalogue.Currency(string(value)); ok {
		q.Currency = known.Code // without an allocation
	} else {
		q.Currency = string(value)
	}
	return true
}

// setInstitution parses ^[a-z0-9-]+$. It also accepts institutions that are not in the catalogue.
func (q *Query) setInstitution(value []byte, catalogue *engine.Catalogue) bool {
	for _, c := range value {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	if known, ok := catalogue.Institution(string(value)); ok {
		q.Institution = known.ID // without an allocation
	} else {
		q.Institution = string(value)
	}
	return len(value) > 0
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

func setDate(to *engine.Date, value []byte) bool {
	date, err := engine.ParseDate(string(value))
	*to = date
	return err == nil
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
