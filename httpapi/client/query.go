package client

import (
	"net/url"
	"strconv"
)

// Filter is what all lists of rates share. What is zero is not sent.
type Filter struct {
	Currency    string // three capital letters
	Institution string // an id
	Channel     Channel
	Kind        Kind
	Limit       int // items of a page, 1 to 200; the node's default is 100
	Cursor      int // items to skip
}

// BestQuery asks for a ranking. Currency and Operation are required.
type BestQuery struct {
	Filter
	Operation Operation
}

// ConvertQuery asks what an amount of foreign currency makes. Currency, Operation and Amount are required.
type ConvertQuery struct {
	Filter
	Operation Operation
	Amount    Decimal // up to twelve digits and two decimals
}

// HistoryQuery asks for days. Without From and To it is the last seven, with one of them the range is completed (T6).
type HistoryQuery struct {
	Filter
	From, To Date // both are in
}

// InstitutionsQuery asks for institutions.
type InstitutionsQuery struct {
	Currency      string // only those that publish it
	Limit, Cursor int
}

// values are parameters without those that are not given.
func values(pairs ...string) url.Values {
	given := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			given.Set(pairs[i], pairs[i+1])
		}
	}
	return given
}

// optionalInt is a number as a parameter, "" for 0, which is the node's default.
func optionalInt(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// optionalDate is a date as a parameter, "" for none.
func optionalDate(d Date) string {
	if d.IsZero() {
		return ""
	}
	return d.String()
}

func (f *Filter) values(more ...string) url.Values {
	return values(append(more, "currency", f.Currency, "institution", f.Institution, "channel", string(f.Channel), "kind", string(f.Kind),
		"limit", optionalInt(f.Limit), "cursor", optionalInt(f.Cursor))...)
}
