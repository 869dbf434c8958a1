package params

import "github.com/tasard/tasard/engine"

// Operation is one bit for each operation, so that a set of them is a number.
type Operation uint16

// The data operations of interface §4.2–4.8.
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

// Param is the row of a query parameter in the table.
type Param uint8

// The query parameters, those first that most requests have.
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

// Row is a query parameter: its name, the sentence that answers a refused value, and the operations that take or need
// it. Query.set reads the value.
type Row struct {
	Name       string
	Grammar    string
	AllowedBy  Operation
	RequiredBy Operation
}

// Table is all query parameters.
type Table [ParamCount]Row

// NewTable is the table of all query parameters (interface §4.1, §4.7, §4.8).
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

// compile-time: the sentences above name these limits.
var (
	_ [engine.LimitMax - 200]struct{}
	_ [200 - engine.LimitMax]struct{}
	_ [engine.CursorMax - 100_000]struct{}
	_ [100_000 - engine.CursorMax]struct{}
	_ [engine.HistoryRangeDaysMax - 365]struct{}
	_ [365 - engine.HistoryRangeDaysMax]struct{}
)

// Find is the row that an operation knows by a name, ParamCount when it knows none.
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

// nearest is the name that an operation knows and that takes the fewest changes to reach; "" when it knows none.
func (t *Table) nearest(op Operation, name string) string {
	best, fewest := "", 0
	for p := range ParamCount {
		if t[p].AllowedBy&op == 0 {
			continue
		}
		if changes := editDistance(name, t[p].Name); best == "" || changes < fewest {
			best, fewest = t[p].Name, changes
		}
	}
	return best
}
