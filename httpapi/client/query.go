package client

import (
	"net/url"
	"strconv"
)

// Filter has the parameters that all lists of rates have in common. Parameters that are zero are not sent.
type Filter struct {
	Currency    string // three capital letters
	Institution string // id of an institution
	Channel     Channel
	Kind        Kind
	Limit       int // maximum number of items of a page, 1 to 200; 0 = 100
	Cursor      int // number of items to skip
}

// BestQuery has the parameters of Client.Best. Currency and Operation are required.
type BestQuery struct {
	Filter
	Operation Operation
}

// ConvertQuery has the parameters of Client.Convert. Currency, Operation and Amount are required.
type ConvertQuery struct {
	Filter
	Operation Operation
	Amount    Decimal // in foreign currency, up to twelve digits and two decimals
}

// HistoryQuery has the parameters of Client.History. Without From and To the range is the last seven days. If only one
// of them is set, the node computes the other from it.
type HistoryQuery struct {
	Filter
	From, To Date // inclusive
}

// InstitutionsQuery has the parameters of Client.Institutions.
type InstitutionsQuery struct {
	Currency      string // only institutions that publish rates of this currency
	Limit, Cursor int
}

// values returns the parameters that are not empty. pairs alternates names and values.
func values(pairs ...string) url.Values {
	params := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			params.Set(pairs[i], pairs[i+1])
		}
	}
	return params
}

// optionalInt formats a number, 0 as "".
func optionalInt(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// optionalDate formats a date, the zero Date as "".
func optionalDate(d Date) string {
	if d.IsZero() {
		return ""
	}
	return d.String()
}

func (f *Filter) values(extra ...string) url.Values {
	return values(append(extra, "currency", f.Currency, "institution", f.Institution, "channel", string(f.Channel), "kind", string(f.Kind),
		"limit", optionalInt(f.Limit), "cursor", optionalInt(f.Cursor))...)
}
