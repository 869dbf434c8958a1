package httpapi

import "github.com/tasard/tasard/engine"

// operation is one bit for each operation, so that a set of them is a number.
type operation uint16

// The data operations of interface §4.2–4.8.
const (
	opCurrencies operation = 1 << iota
	opInstitutions
	opInstitution
	opRates
	opBest
	opHistory
	opConvert

	opNone    operation = 0
	opRanking           = opBest | opConvert
	opFilters           = opRates | opHistory | opRanking
	opLists             = opFilters | opInstitutions
)

// param is the row of a query parameter in the table.
type param uint8

// The query parameters, those first that most requests have.
const (
	paramCurrency param = iota
	paramOperation
	paramLimit
	paramAmount
	paramCursor
	paramInstitution
	paramChannel
	paramKind
	paramFrom
	paramTo
	paramCount
)

// parameter is one row: its name, the sentence that a refused value is answered with, and who knows and who needs it. How a
// value is read stands in query.set.
type parameter struct {
	name     string
	grammar  string
	knownBy  operation
	neededBy operation
}

type parameterTable [paramCount]parameter

// parameters is the table of all query parameters (interface §4.1, §4.7, §4.8).
func parameters() parameterTable {
	return parameterTable{
		paramCurrency:    {"currency", "must be three capital letters, as USD", opLists, opRanking},
		paramOperation:   {"operation", "must be buy or sell, seen from the caller", opRanking, opRanking},
		paramLimit:       {"limit", "must be a whole number from 1 to 200, without sign or leading zero", opLists, opNone},
		paramAmount:      {"amount", "must be up to 12 digits, optionally a point and 1 or 2 decimals, as 250.00", opConvert, opConvert},
		paramCursor:      {"cursor", "must be a whole number from 0 to 100000, without sign or leading zero", opLists, opNone},
		paramInstitution: {"institution", "must be an institution id of small letters, digits and hyphens", opFilters, opNone},
		paramChannel:     {"channel", "must be one of unspecified, branch, digital, cash, transfer", opFilters, opNone},
		paramKind:        {"kind", "must be commercial or reference", opFilters, opNone},
		paramFrom:        {"from", "must be a calendar date, as 2025-01-31", opHistory, opNone},
		paramTo:          {"to", "must be a calendar date, as 2025-01-31", opHistory, opNone},
	}
}

// compile-time: the sentences above name these limits.
var (
	_ [engine.LimitMax - 200]struct{}
	_ [200 - engine.LimitMax]struct{}
	_ [engine.CursorMax - 100_000]struct{}
	_ [100_000 - engine.CursorMax]struct{}
	_ [engine.HistoryRangeDaysMax - 365]struct{}
	_ [365 - engine.HistoryRangeDaysMax]struct{}
)

// find is the row that an operation knows by a name, paramCount when it knows none.
func (t *parameterTable) find(op operation, name []byte) param {
	for p := range paramCount {
		if string(name) == t[p].name {
			if t[p].knownBy&op == 0 {
				return paramCount
			}
			return p
		}
	}
	return paramCount
}

// nearest is the name that an operation knows and that takes the fewest changes to reach; "" when it knows none.
func (t *parameterTable) nearest(op operation, name string) string {
	best, fewest := "", 0
	for p := range paramCount {
		if t[p].knownBy&op == 0 {
			continue
		}
		if changes := editDistance(name, t[p].name); best == "" || changes < fewest {
			best, fewest = t[p].name, changes
		}
	}
	return best
}
