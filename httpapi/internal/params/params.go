package params

import "github.com/tasard/tasard/engine"

// Operation is a set of data operations, one bit for each.
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

// Row is a query parameter.
type Row struct {
	Name       string
	Grammar    string // message for an invalid value, without the name
	AllowedBy  Operation
	RequiredBy Operation

	// set parses a percent-decoded value into a field of q. It returns false if the value is invalid.
	set func(q *Query, value []byte, catalogue *engine.Catalogue) bool
	// nearest returns the known value that is most similar to an invalid one, or "". It may be nil.
	nearest func(catalogue *engine.Catalogue, value string) string
}

// rowsMax is the number of query parameters.
const rowsMax = 10

// Table lists the query parameters. Frequent parameters are first, because Find searches in this order.
type Table [rowsMax]Row

// Names of the parameters of a range.
const (
	fromName = "from"
	toName   = "to"
)

// NewTable returns the table of all query parameters. docs/contributing.md lists the other steps for a new one.
func NewTable() Table {
	return Table{
		{"currency", "must be three capital letters, as USD", opLists, opRanking, (*Query).setCurrency, (*engine.Catalogue).NearestCurrency},
		{"operation", "must be buy or sell, seen from the caller", opRanking, opRanking, func(q *Query, value []byte, _ *engine.Catalogue) (ok bool) {
			q.Operation, ok = oneOf(value, []engine.Operation{engine.Buy, engine.Sell})
			return ok
		}, nil},
		{"limit", "must be a whole number from 1 to 200, without sign or leading zero", opLists, None, func(q *Query, value []byte, _ *engine.Catalogue) (ok bool) {
			q.Limit, ok = wholeValue(value, 1, engine.LimitMax)
			return ok
		}, nil},
		{"amount", "must be up to 12 digits, optionally a point and 1 or 2 decimals, as 250.00", Convert, Convert, func(q *Query, value []byte, _ *engine.Catalogue) bool {
			var err error
			q.Amount, err = engine.ParseAmount(string(value))
			return err == nil
		}, nil},
		{"cursor", "must be a whole number from 0 to 100000, without sign or leading zero", opLists, None, func(q *Query, value []byte, _ *engine.Catalogue) (ok bool) {
			q.Cursor, ok = wholeValue(value, 0, engine.CursorMax)
			return ok
		}, nil},
		{"institution", "must be an institution id of small letters, digits and hyphens", opFilters, None, (*Query).setInstitution, (*engine.Catalogue).NearestInstitution},
		{"channel", "must be one of unspecified, branch, digital, cash, transfer", opFilters, None, func(q *Query, value []byte, _ *engine.Catalogue) (ok bool) {
			q.Channel, ok = oneOf(value, engine.Channels())
			return ok
		}, nil},
		{"kind", "must be commercial or reference", opFilters, None, func(q *Query, value []byte, _ *engine.Catalogue) (ok bool) {
			q.Kind, ok = oneOf(value, engine.Kinds())
			return ok
		}, nil},
		{fromName, "must be a calendar date, as 2025-01-31", History, None, func(q *Query, value []byte, _ *engine.Catalogue) bool {
			return setDate(&q.From, value)
		}, nil},
		{toName, "must be a calendar date, as 2025-01-31", History, None, func(q *Query, value []byte, _ *engine.Catalogue) bool {
			return setDate(&q.To, value)
		}, nil},
	}
}

// Find returns the index of an operation's parameter, or -1 if the operation has no parameter of this name.
func (t *Table) Find(op Operation, name []byte) int {
	for i := range t {
		if row := &t[i]; string(name) == row.Name && row.AllowedBy&op != 0 {
			return i
		}
	}
	return -1
}

// nearest returns the parameter name with the smallest edit distance to name, or "" if the operation has no parameters.
func (t *Table) nearest(op Operation, name string) string {
	best, bestDistance := "", 0
	for i := range t {
		if t[i].AllowedBy&op == 0 {
			continue
		}
		if distance := engine.EditDistance(name, t[i].Name); best == "" || distance < bestDistance {
			best, bestDistance = t[i].Name, distance
		}
	}
	return best
}
