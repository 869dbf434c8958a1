package params

import "github.com/tasard/tasard/engine"

// Operation is a set of data operations (all of /v1 except /v1/account), one bit for each.
type Operation uint16

// Data operations.
const (
	Currencies Operation = 1 << iota
	Institutions
	Institution
	Rates
	Best
	History
	Convert

	None      Operation = 0
	opRanking           = Best | Convert
	opFilters           = Rates | History | opRanking
	opLists             = opFilters | Institutions
)

// Param is the index of a query parameter in a Table.
type Param uint8

// Query parameters. Frequent ones come first, because Find searches in this order.
const (
	ParamCurrency Param = iota
	ParamOperation
	ParamLimit
	ParamAmount
	ParamCursor
	ParamInstitution
	ParamChannel
	ParamKind
	ParamFrom
	ParamTo
	ParamCount
)

// Row describes a query parameter.
type Row struct {
	Name       string
	Grammar    string // the message for an invalid value, without the name
	AllowedBy  Operation
	RequiredBy Operation
}

// Table has a Row for each Param.
type Table [ParamCount]Row

// NewTable returns the table of all query parameters. A new parameter also needs a case in Query.set.
func NewTable() Table {
	return Table{
		ParamCurrency:    {"currency", "must be three capital letters, as USD", opLists, opRanking},
		ParamOperation:   {"operation", "must be buy or sell, seen from the caller", opRanking, opRanking},
		ParamLimit:       {"limit", "must be a whole number from 1 to 200, without sign or leading zero", opLists, None},
		ParamAmount:      {"amount", "must be up to 12 digits, optionally a point and 1 or 2 decimals, as 250.00", Convert, Convert},
		ParamCursor:      {"cursor", "must be a whole number from 0 to 100000, without sign or leading zero", opLists, None},
		ParamInstitution: {"institution", "must be an institution id of small letters, digits and hyphens", opFilters, None},
		ParamChannel:     {"channel", "must be one of unspecified, branch, digital, cash, transfer", opFilters, None},
		ParamKind:        {"kind", "must be commercial or reference", opFilters, None},
		ParamFrom:        {"from", "must be a calendar date, as 2025-01-31", History, None},
		ParamTo:          {"to", "must be a calendar date, as 2025-01-31", History, None},
	}
}

// Compile-time checks that these limits have not changed: messages contain them as text.
var (
	_ [engine.LimitMax - 200]struct{}
	_ [200 - engine.LimitMax]struct{}
	_ [engine.CursorMax - 100_000]struct{}
	_ [100_000 - engine.CursorMax]struct{}
	_ [engine.HistoryRangeDaysMax - 365]struct{}
	_ [365 - engine.HistoryRangeDaysMax]struct{}
)

// Find returns the parameter with a name, or ParamCount if the operation has no such parameter.
func (t *Table) Find(op Operation, name []byte) Param {
	for p := range ParamCount {
		if string(name) == t[p].Name {
			if t[p].AllowedBy&op == 0 {
				return ParamCount
			}
			return p
		}
	}
	return ParamCount
}

// nearest returns the allowed name with the smallest edit distance to name, or "" if the operation has no parameters.
func (t *Table) nearest(op Operation, name string) string {
	best, bestDistance := "", 0
	for p := range ParamCount {
		if t[p].AllowedBy&op == 0 {
			continue
		}
		if distance := engine.EditDistance(name, t[p].Name); best == "" || distance < bestDistance {
			best, bestDistance = t[p].Name, distance
		}
	}
	return best
}
