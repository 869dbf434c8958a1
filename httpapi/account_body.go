package httpapi

import (
	"bytes"
	"encoding/json"
	"mime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/internal/params"
)

// Messages for a body that cannot be parsed.
const (
	bodyNotJSON  = "The body must be one JSON object in UTF-8 and nothing else. The connection is closed."
	bodyNotTaken = "This operation takes no body. The connection is closed."
	bodyMedia    = "The body must be JSON, sent as Content-Type: application/json in UTF-8, not compressed."
	bodyLong     = "The body must be at most 4096 bytes long."
)

// bodyField is a field of a JSON body. All fields are strings.
type bodyField struct {
	name     string
	required bool
	grammar  string                                     // the message for an invalid value
	set      func(r *accountRequest, value string) bool // stores the value; false if it is invalid
}

func emailField() bodyField {
	return bodyField{"email", true, "must be an e-mail address, as name@example.com", func(r *accountRequest, value string) bool {
		email, err := account.ParseEmail(value)
		r.email = email
		return err == nil
	}}
}

func codeField() bodyField {
	return bodyField{"code", true, "must be the eight digits of the e-mail, as a text", func(r *accountRequest, value string) bool {
		r.code = value
		return account.ValidCode(value)
	}}
}

// nameField is the name of a new API key.
func nameField() bodyField {
	return bodyField{"name", false, "must be a text of at most 80 characters, without control characters, and not a key", func(r *accountRequest, value string) bool {
		r.name = value
		return account.ValidKeyName(value)
	}}
}

// isJSON reports whether the headers describe an uncompressed JSON body in UTF-8.
func isJSON(header *fasthttp.RequestHeader) bool {
	media, parameters, err := mime.ParseMediaType(string(header.ContentType()))
	if err != nil || media != "application/json" || len(header.Peek(fasthttp.HeaderContentEncoding)) > 0 {
		return false
	}
	charset, named := parameters["charset"]
	return !named || strings.EqualFold(charset, "utf-8")
}

// readBody parses a body into r. It returns false if the body is not exactly one JSON object. Field names are
// case-sensitive; unknown and repeated fields are problems. The problems contain no values of the body.
func readBody(body []byte, fields []bodyField, r *accountRequest) (problems []params.Problem, ok bool) {
	if !utf8.Valid(body) || !json.Valid(body) {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	if opening, err := decoder.Token(); err != nil || opening != json.Delim('{') {
		return nil, false
	}
	seen := map[string]int{}
	for decoder.More() {
		token, err := decoder.Token()
		name, isText := token.(string)
		var value json.RawMessage
		if err != nil || !isText || decoder.Decode(&value) != nil {
			return nil, false
		}
		if d := readField(fields, name, value, seen, r); d != nil && len(problems) < params.ProblemsMax {
			problems = append(problems, *d)
		}
	}
	for _, field := range fields {
		if field.required && seen[field.name] == 0 {
			problems = append(problems, params.Problem{Name: field.name, Message: params.ProblemMissing + field.grammar})
		}
	}
	return problems, true
}

// readField parses one field into r. It returns nil for a valid field, and for a repeated unknown name.
func readField(fields []bodyField, name string, value json.RawMessage, seen map[string]int, r *accountRequest) *params.Problem {
	index := seen[name]
	seen[name]++
	field := slices.IndexFunc(fields, func(f bodyField) bool { return f.name == name })
	switch {
	case field < 0 && index > 0:
		return nil
	case field < 0 && params.IsCredentialName(name):
		return &params.Problem{Name: params.TruncatedName([]byte(name)), Message: problemBodyKey}
	case field < 0:
		return &params.Problem{Name: params.TruncatedName([]byte(name)), Message: "is not known; this operation knows " + fieldNames(fields)}
	case index > 0:
		return &params.Problem{Name: name, Index: index, Message: params.ProblemRepeated}
	}
	var text *string
	if json.Unmarshal(value, &text) != nil || text == nil || !fields[field].set(r, *text) {
		return &params.Problem{Name: name, Message: fields[field].grammar}
	}
	return nil
}

// problemBodyKey is the message for a field whose name looks like that of a credential.
const problemBodyKey = "is not known: keys and session tokens go in the Authorization header, as 'Bearer KEY', and never in a body"

func fieldNames(fields []bodyField) string {
	names := make([]string, 0, len(fields))
	for _, field := range fields {
		names = append(names, field.name)
	}
	return strings.Join(names, ", ")
}
