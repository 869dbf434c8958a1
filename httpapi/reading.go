package httpapi

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tasard/tasard/engine"
)

// Sentences of problems that are not a value's grammar.
const (
	problemEncoding  = "has a '%' that is not followed by two hexadecimal digits"
	problemRepeated  = "must not be repeated"
	problemMissing   = "is required: it "
	problemBackwards = "must not be later than to"
	problemTooLong   = "must be at most 365 days before to; ask for a longer range in parts"
	problemNoneKnown = "is not known; this operation takes no parameters"
	problemNearest   = "is not known; the nearest known name is "
	problemID        = "must be correctly percent-encoded and at most 80 characters long"
	problemKey       = "is not a parameter: keys go in the Authorization header, as 'Bearer KEY', and never in a URL. " +
		"If this was a key, logs on its way may have kept it: revoke it"
)

const (
	// problemsMax bounds the problems of one answer: a request line can hold thousands of unknown names.
	problemsMax = 64
	// namePartBytes is how much of an unknown name is compared and repeated in the answer.
	namePartBytes = 64
)

// detail is one problem of a request: the parameter, which of its values when it is repeated (0 is the first), and a
// sentence that the name begins.
type detail struct {
	name    string
	index   int
	message string
}

// readOptions is what reading a request depends on besides the request.
type readOptions struct {
	catalogue    *engine.Catalogue
	today        engine.Date
	allowUnknown bool
}

// reading is one request on its way to a query.
type reading struct {
	table    *parameterTable
	op       operation
	options  readOptions
	query    query
	seen     [paramCount]int
	problems []detail
}

// read turns the path id and the raw query string of a request into a query, or tells every problem at once (Q1–Q4, Q9,
// T6–T8). Nothing of the query points into the request.
func (t *parameterTable) read(op operation, path, text []byte, options readOptions) (query, []detail) {
	r := reading{table: t, op: op, options: options, query: query{limit: engine.LimitDefault}}
	if op == opInstitution {
		r.readID(path[len(institutionPrefix):])
	}
	for len(text) > 0 && len(r.problems) < problemsMax {
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
	if op == opHistory {
		r.completeRange()
	}
	return r.query, r.problems
}

func (r *reading) refuse(name string, index int, message string) {
	r.problems = append(r.problems, detail{name, index, message})
}

// readID decodes the id of the path once (Q9).
func (r *reading) readID(encoded []byte) {
	id, ok := pathID(encoded)
	if !ok {
		r.refuse("id", 0, problemID)
		return
	}
	if known, interned := r.options.catalogue.InternInstitution(id); interned {
		r.query.id = known
		return
	}
	r.query.id = string(id)
}

// readPair reads one name=value. A name without "=" has the empty value, which no grammar takes.
func (r *reading) readPair(pair []byte) {
	name, value := pair, []byte(nil)
	if equals := bytes.IndexByte(pair, '='); equals >= 0 {
		name, value = pair[:equals], pair[equals+1:]
	}
	name, ok := percentDecoded(name)
	if !ok {
		r.refuse(namePart(name), 0, problemEncoding)
		return
	}
	p := r.table.find(r.op, name)
	if p == paramCount {
		r.readUnknown(namePart(name))
		return
	}
	row := &r.table[p]
	index := r.seen[p]
	r.seen[p]++
	if index > 0 {
		r.refuse(row.name, index, problemRepeated)
		return
	}
	value, ok = percentDecoded(value)
	switch {
	case !ok:
		r.refuse(row.name, 0, problemEncoding)
	case !r.query.set(p, value, r.options.catalogue):
		r.refuse(row.name, 0, row.grammar)
	}
}

// readUnknown refuses a name once (Q1), and says where keys go when it looks like one (Q4).
func (r *reading) readUnknown(name string) {
	isKey := keyName(name)
	if r.options.allowUnknown && !isKey {
		return
	}
	if slices.ContainsFunc(r.problems, func(d detail) bool { return d.name == name }) {
		return
	}
	switch nearest := r.table.nearest(r.op, name); {
	case isKey:
		r.refuse(name, 0, problemKey)
	case nearest == "":
		r.refuse(name, 0, problemNoneKnown)
	default:
		r.refuse(name, 0, problemNearest+nearest)
	}
}

// findMissing refuses what the operation needs and the request lacks.
func (r *reading) findMissing() {
	for p := range paramCount {
		if r.table[p].neededBy&r.op != 0 && r.seen[p] == 0 {
			r.refuse(r.table[p].name, 0, problemMissing+r.table[p].grammar)
		}
	}
}

// completeRange fills in the ends of a history range that are not given (T6) and refuses what no answer fits (T7, T8). A
// range that only begins, after today, is one of days to come: it has no rows, and is no error (T9).
func (r *reading) completeRange() {
	if slices.ContainsFunc(r.problems, func(d detail) bool {
		return d.name == r.table[paramFrom].name || d.name == r.table[paramTo].name
	}) {
		return
	}
	q := &r.query
	bothGiven := !q.from.IsZero() && !q.to.IsZero()
	q.from, q.to = engine.ResolveRange(q.from, q.to, r.options.today)
	switch {
	case bothGiven && q.from > q.to:
		r.refuse(r.table[paramFrom].name, 0, problemBackwards)
	case int(q.to)-int(q.from) > engine.HistoryRangeDaysMax:
		r.refuse(r.table[paramFrom].name, 0, problemTooLong)
	}
}

// keyName tells names under which callers put keys into URLs (Q4), in any spelling of small and capital letters.
func keyName(name string) bool {
	switch strings.ToLower(name) {
	case "api_key", "apikey", "access_key", "key", "token":
		return true
	}
	return false
}

func namePart(name []byte) string { return string(name[:min(len(name), namePartBytes)]) }
