package params

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tasard/tasard/engine"
)

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
			q.Operation, ok = engine.ParseOperation(string(value))
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
			q.Channel, ok = engine.ParseChannel(string(value))
			return ok
		}, nil},
		{"kind", "must be commercial or reference", opFilters, None, func(q *Query, value []byte, _ *engine.Catalogue) (ok bool) {
			q.Kind, ok = engine.ParseKind(string(value))
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

// InstitutionPath is the path of an institution without its id.
const InstitutionPath = "/v1/institutions/"

// Values of Problem.Message. The messages for invalid values are in Row.Grammar.
const (
	problemEncoding      = "has a '%' that is not followed by two hexadecimal digits"
	ProblemRepeated      = "must not be repeated"
	ProblemMissing       = "is required: it "
	ProblemRangeReversed = "must not be later than to"
	ProblemRangeTooLong  = "must be at most 365 days before to; ask for a longer range in parts"
	problemNoParameters  = "is not known; this operation takes no parameters"
	problemNearest       = "is not known; the nearest known name is "
	ProblemID            = "must be correctly percent-encoded and at most 80 characters long"
	problemKey           = "is not a parameter: keys go in the Authorization header, as 'Bearer KEY', and never in a URL. " +
		"If this was a key, logs on its way may have kept it: revoke it"
)

const (
	// ProblemsMax is the number of problems after which parsing stops. A URL can contain thousands of unknown names.
	ProblemsMax = 64
	// NameBytesMax is the maximum length of a result of TruncatedName.
	NameBytesMax = 64
)

// Problem is a problem of a request.
type Problem struct {
	Name    string // name of the parameter
	Index   int    // position among a parameter's values; 0 is the first
	Message string // shown after Name
}

// Options are the inputs of Table.Read besides the request.
type Options struct {
	Catalogue    *engine.Catalogue // contains strings for known codes and ids, so that Query needs no copies
	Today        engine.Date       // default end of a history range
	AllowUnknown bool              // ignore unknown names, except those of credentials
}

// queryReader is the state of Table.Read.
type queryReader struct {
	table    *Table
	op       Operation
	options  Options
	query    *Query
	seen     [rowsMax]int
	problems []Problem
}

// Read parses a request for an operation into q, and returns all problems. path and text are the path and the query
// string, still percent-encoded.
func (t *Table) Read(q *Query, op Operation, path, text []byte, options Options) []Problem {
	*q = Query{}
	q.Limit = engine.LimitDefault
	r := queryReader{table: t, op: op, options: options, query: q}
	if op == Institution {
		r.readID(path[len(InstitutionPath):])
	}
	for len(text) > 0 && len(r.problems) < ProblemsMax {
		pair := text
		if end := bytes.IndexByte(text, '&'); end >= 0 {
			pair, text = text[:end], text[end+1:]
		} else {
			text = nil
		}
		if len(pair) > 0 {
			r.readPair(pair)
		}
	}
	r.findMissing()
	if op == History {
		r.completeRange()
	}
	return r.problems
}

func (r *queryReader) report(name string, index int, message string) {
	r.problems = append(r.problems, Problem{name, index, message})
}

func (r *queryReader) readID(encoded []byte) {
	id, ok := PathID(encoded)
	if !ok {
		r.report("id", 0, ProblemID)
		return
	}
	if known, ok := r.options.Catalogue.Institution(string(id)); ok {
		r.query.ID = known.ID // without an allocation
		return
	}
	r.query.ID = string(id)
}

// readPair parses one name=value. A name without "=" has an empty value, which is invalid for all parameters.
func (r *queryReader) readPair(pair []byte) {
	name, value := pair, []byte(nil)
	if equals := bytes.IndexByte(pair, '='); equals >= 0 {
		name, value = pair[:equals], pair[equals+1:]
	}
	name, ok := percentDecoded(name)
	if !ok {
		r.report(TruncatedName(name), 0, problemEncoding)
		return
	}
	found := r.table.Find(r.op, name)
	if found < 0 {
		r.readUnknown(TruncatedName(name))
		return
	}
	row := &r.table[found]
	index := r.seen[found]
	r.seen[found]++
	if index > 0 {
		r.report(row.Name, index, ProblemRepeated)
		return
	}
	value, ok = percentDecoded(value)
	switch {
	case !ok:
		r.report(row.Name, 0, problemEncoding)
	case !row.set(r.query, value, r.options.Catalogue):
		r.report(row.Name, 0, row.Grammar+row.suggestion(value, r.options.Catalogue))
	}
}

// suggestion returns the end of the message for an invalid value, with the most similar known value, or "".
func (r *Row) suggestion(value []byte, catalogue *engine.Catalogue) string {
	if r.nearest != nil {
		if nearest := r.nearest(catalogue, TruncatedName(value)); nearest != "" {
			return "; the nearest known one is " + nearest
		}
	}
	return ""
}

// readUnknown reports an unknown name once. For the name of a credential, the message says where keys go.
func (r *queryReader) readUnknown(name string) {
	isKey := IsCredentialName(name)
	if r.options.AllowUnknown && !isKey {
		return
	}
	if slices.ContainsFunc(r.problems, func(d Problem) bool { return d.Name == name }) {
		return
	}
	switch nearest := r.table.nearest(r.op, name); {
	case isKey:
		r.report(name, 0, problemKey)
	case nearest == "":
		r.report(name, 0, problemNoParameters)
	default:
		r.report(name, 0, problemNearest+nearest)
	}
}

// findMissing reports missing required parameters.
func (r *queryReader) findMissing() {
	for i := range r.table {
		if row := &r.table[i]; row.RequiredBy&r.op != 0 && r.seen[i] == 0 {
			r.report(row.Name, 0, ProblemMissing+row.Grammar)
		}
	}
}

// completeRange fills in a missing From or To, and reports a reversed or too long range. If only From is given and is
// after today, the range is empty; this is not an error.
func (r *queryReader) completeRange() {
	if slices.ContainsFunc(r.problems, func(d Problem) bool {
		return d.Name == fromName || d.Name == toName
	}) {
		return
	}
	q := r.query
	bothGiven := !q.From.IsZero() && !q.To.IsZero()
	q.From, q.To = engine.ResolveHistoryRange(q.From, q.To, r.options.Today)
	switch {
	case bothGiven && q.From > q.To:
		r.report(fromName, 0, ProblemRangeReversed)
	case int(q.To)-int(q.From) > engine.HistoryRangeDaysMax:
		r.report(fromName, 0, ProblemRangeTooLong)
	}
}

// IsCredentialName reports whether clients often send an API key under this name by mistake. It ignores case.
func IsCredentialName(name string) bool {
	switch strings.ToLower(name) {
	case "api_key", "apikey", "access_key", "key", "token":
		return true
	}
	return false
}

// TruncatedName returns the first NameBytesMax bytes of an unknown name, for a Problem.
func TruncatedName(name []byte) string { return string(name[:min(len(name), NameBytesMax)]) }

// IDCharactersMax is the maximum length of an id in a path.
const IDCharactersMax = 80

// percentDecoded decodes each %XX in text. If a '%' lacks two hexadecimal digits, it returns text and false. A '+'
// is not decoded, because no parameter allows spaces. Danger: the result may share memory with text.
func percentDecoded(text []byte) ([]byte, bool) {
	if bytes.IndexByte(text, '%') < 0 {
		return text, true
	}
	decoded, err := url.PathUnescape(string(text))
	if err != nil {
		return text, false
	}
	return []byte(decoded), true
}

// PathID decodes the id at the end of a path. It returns false if the percent-encoding is invalid or the id has more
// than IDCharactersMax characters. Each byte of invalid UTF-8 counts as a character.
func PathID(encoded []byte) ([]byte, bool) {
	id, ok := percentDecoded(encoded)
	if !ok || utf8.RuneCount(id) > IDCharactersMax {
		return nil, false
	}
	return id, true
}

// Query contains the parameters of a request. It is comparable and shares no memory with the request. Missing
// parameters are zero, except that Limit has the default, and From and To are always set for the operation History.
type Query struct {
	engine.Filter
	engine.PageRequest
	ID        string // id of an institution, from the path
	Operation engine.Operation
	Amount    engine.Amount
	From, To  engine.Date
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
