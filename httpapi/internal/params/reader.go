package params

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tasard/tasard/engine"
)

// InstitutionPath is what the path of an institution's detail begins with; the rest is its id, still encoded.
const InstitutionPath = "/v1/institutions/"

// Messages of problems other than a value's grammar.
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
	// ProblemsMax bounds the problems of one answer: a request line can hold thousands of unknown names.
	ProblemsMax = 64
	// NameBytesMax is how much of an unknown name is compared and repeated in the answer.
	NameBytesMax = 64
)

// Problem is a problem of a request: the name of a parameter, the index of the value (0 is the first), and a message
// that follows the name.
type Problem struct {
	Name    string
	Index   int
	Message string
}

// Options are the settings and state that reading a request depends on.
type Options struct {
	Catalogue    *engine.Catalogue
	Today        engine.Date
	AllowUnknown bool
}

// queryReader reads a request into a query.
type queryReader struct {
	table    *Table
	op       Operation
	options  Options
	query    Query
	seen     [ParamCount]int
	problems []Problem
}

// Read reads the path id and the raw query string of a request. It reports all problems at once (decisions Q1–Q4, Q9
// and T6–T8). The query has no pointer into the request.
func (t *Table) Read(op Operation, path, text []byte, options Options) (Query, []Problem) {
	r := queryReader{table: t, op: op, options: options, query: Query{Limit: engine.LimitDefault}}
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
	return r.query, r.problems
}

func (r *queryReader) refuse(name string, index int, message string) {
	r.problems = append(r.problems, Problem{name, index, message})
}

// readID decodes the id of the path once.
func (r *queryReader) readID(encoded []byte) {
	id, ok := PathID(encoded)
	if !ok {
		r.refuse("id", 0, ProblemID)
		return
	}
	if known, interned := r.options.Catalogue.InternInstitution(id); interned {
		r.query.ID = known
		return
	}
	r.query.ID = string(id)
}

// readPair reads one name=value. A name without "=" has the empty value, which no grammar takes.
func (r *queryReader) readPair(pair []byte) {
	name, value := pair, []byte(nil)
	if equals := bytes.IndexByte(pair, '='); equals >= 0 {
		name, value = pair[:equals], pair[equals+1:]
	}
	name, ok := percentDecoded(name)
	if !ok {
		r.refuse(TruncatedName(name), 0, problemEncoding)
		return
	}
	p := r.table.Find(r.op, name)
	if p == ParamCount {
		r.readUnknown(TruncatedName(name))
		return
	}
	row := &r.table[p]
	index := r.seen[p]
	r.seen[p]++
	if index > 0 {
		r.refuse(row.Name, index, ProblemRepeated)
		return
	}
	value, ok = percentDecoded(value)
	switch {
	case !ok:
		r.refuse(row.Name, 0, problemEncoding)
	case !r.query.set(p, value, r.options.Catalogue):
		r.refuse(row.Name, 0, row.Grammar)
	}
}

// readUnknown refuses an unknown name once. For the name of a credential it explains where keys go.
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
		r.refuse(name, 0, problemKey)
	case nearest == "":
		r.refuse(name, 0, problemNoParameters)
	default:
		r.refuse(name, 0, problemNearest+nearest)
	}
}

// findMissing reports the required parameters that the request lacks.
func (r *queryReader) findMissing() {
	for p := range ParamCount {
		if r.table[p].RequiredBy&r.op != 0 && r.seen[p] == 0 {
			r.refuse(r.table[p].Name, 0, ProblemMissing+r.table[p].Grammar)
		}
	}
}

// completeRange fills in the missing ends of a history range. It refuses a reversed range (decision T7) and a range
// that is too long (decision T8). A range that begins after today and has no end is empty, not an error.
func (r *queryReader) completeRange() {
	if slices.ContainsFunc(r.problems, func(d Problem) bool {
		return d.Name == r.table[ParamFrom].Name || d.Name == r.table[ParamTo].Name
	}) {
		return
	}
	q := &r.query
	bothGiven := !q.From.IsZero() && !q.To.IsZero()
	q.From, q.To = engine.ResolveHistoryRange(q.From, q.To, r.options.Today)
	switch {
	case bothGiven && q.From > q.To:
		r.refuse(r.table[ParamFrom].Name, 0, ProblemRangeReversed)
	case int(q.To)-int(q.From) > engine.HistoryRangeDaysMax:
		r.refuse(r.table[ParamFrom].Name, 0, ProblemRangeTooLong)
	}
}

// IsCredentialName reports whether clients put keys into URLs under a name. It ignores case.
func IsCredentialName(name string) bool {
	switch strings.ToLower(name) {
	case "api_key", "apikey", "access_key", "key", "token":
		return true
	}
	return false
}

// TruncatedName is the part of an unknown name that a problem repeats.
func TruncatedName(name []byte) string { return string(name[:min(len(name), NameBytesMax)]) }
