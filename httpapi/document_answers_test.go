package httpapi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// kept is a golden answer as a client read it.
type kept struct {
	file, method, path string
	answer
}

// keptAnswers are all golden answers: those of this package, and those of the harness's seeds.
func keptAnswers(t testing.TB) (all []kept) {
	t.Helper()
	for _, file := range goldenFiles(t, filepath.Join("testdata", "*", "*.http")) {
		asked, text, _ := strings.Cut(readGolden(t, file), "\n")
		begin := strings.Index(text, "HTTP/1.1 ") // behind what else was sent
		if begin < 0 {
			t.Fatalf("%s has no answer", file)
		}
		all = append(all, readKept(t, file, strings.TrimPrefix(asked, "# "), text[begin:]))
	}
	for _, file := range goldenFiles(t, filepath.Join("apitest", "testdata", "*.golden")) {
		for _, block := range strings.Split(readGolden(t, file), "\n\nGET ")[1:] {
			asked, text, _ := strings.Cut(block, "\n")
			all = append(all, readKept(t, file+" "+asked, "GET "+asked, text))
		}
	}
	return all
}

func goldenFiles(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
	return files
}

func readGolden(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(text), "\n") // what ends the file
}

// readKept reads a head and a body.
func readKept(t testing.TB, name, asked, text string) kept {
	t.Helper()
	method, target, named := strings.Cut(asked, " ")
	head, body, found := strings.Cut(text, "\n\n")
	if !found { // an answer without a body ends with its head
		head = strings.TrimSuffix(text, "\n")
	}
	wire := strings.ReplaceAll(head, "\n", "\r\n") + "\r\n\r\n"
	response, err := http.ReadResponse(bufio.NewReader(strings.NewReader(wire)), &http.Request{Method: http.MethodHead})
	if err != nil || !named {
		t.Fatalf("%s is no golden answer to %q: %v", name, asked, err)
	}
	_ = response.Body.Close() // of HEAD, empty
	path, _ := splitTarget([]byte(target))
	return kept{name, method, string(path), answer{response.StatusCode, response.Header, []byte(body), false}}
}

// outside says why an answer belongs to no operation of the document; "" when it should.
func outside(k *kept) string {
	switch {
	case k.method == http.MethodOptions && k.status == http.StatusNoContent:
		return "OPTIONS is told in words (C2)"
	case k.status == http.StatusMethodNotAllowed:
		return "other methods are told in words (C2)"
	case k.status == http.StatusNotFound && bytes.Contains(k.body, []byte(`"Nothing is at this path.`)):
		return "no operation has this path"
	case strings.HasPrefix(k.file, filepath.Join("testdata", "unread")) && k.status == http.StatusRequestEntityTooLarge:
		return "no body belongs to this operation (C4)"
	}
	return ""
}

// find is the operation that a request goes to.
func (d *openAPI) find(k *kept) (described, bool) {
	method := strings.Replace(k.method, http.MethodHead, http.MethodGet, 1)
	best, found := described{}, false
	for _, o := range d.operations() {
		prefix, _, template := strings.Cut(o.path, "{")
		if o.method != method || o.path != k.path && (!template || !strings.HasPrefix(k.path, prefix)) {
			continue
		}
		if !found || !template {
			best, found = o, true
		}
	}
	return best, found
}

// general are headers that HTTP or browsers want, on answers of all kinds: they are no part of the document.
func general(name string) bool {
	return strings.HasPrefix(name, "Access-Control-") || strings.HasPrefix(name, "Content-") ||
		slices.Contains([]string{"Cross-Origin-Resource-Policy", "Date", "Referrer-Policy", "Vary", "X-Content-Type-Options"}, name)
}

// survey is what the golden answers have shown.
type survey struct {
	statuses map[string]bool  // operation and status
	headers  map[string]bool  // names
	bodies   map[string][]any // response, by its pointer
	judged   int
	problems []string
}

func (s *survey) report(k *kept, format string, args ...any) {
	s.problems = append(s.problems, k.file+": "+fmt.Sprintf(format, args...))
}

// judge holds a golden answer against the response that the document describes.
func (d *openAPI) judge(k *kept, s *survey) {
	if why := outside(k); why != "" {
		if len(k.body) > 0 {
			d.judgeBody(k, "/components/schemas/Error", s)
		}
		return
	}
	o, found := d.find(k)
	number := strconv.Itoa(k.status)
	response, pointer := d.follow(at(o.fields, "responses", number), o.pointer+"/responses/"+number)
	if !found || response == nil {
		s.report(k, "the document has no %d at %s %s", k.status, k.method, k.path)
		return
	}
	s.judged++
	s.statuses[o.name()+" "+number] = true
	d.judgeHeaders(k, response, s)
	described := at(response, "content", "application/json") != nil
	switch {
	case !described && len(k.body) > 0:
		s.report(k, "the document knows no body, and there is one")
	case described && len(k.body) == 0 && k.method != http.MethodHead:
		s.report(k, "the document knows a body, and there is none")
	case len(k.body) > 0:
		if value := d.judgeBody(k, pointer+"/content/application~1json/schema", s); value != nil {
			s.bodies[pointer] = append(s.bodies[pointer], value)
		}
	}
}

// judgeBody gives the body, nil when it is not right.
func (d *openAPI) judgeBody(k *kept, pointer string, s *survey) any {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(k.body))
	if err != nil {
		s.report(k, "%v", err)
		return nil
	}
	if why := d.problem(pointer, value); why != "" {
		s.report(k, "%s", why)
		return nil
	}
	return value
}

// judgeHeaders holds the headers of an answer against those of the response: what is required is there, what is there is listed and of
// its form.
func (d *openAPI) judgeHeaders(k *kept, response object, s *survey) {
	fields, _ := response["headers"].(object)
	listed := map[string]bool{}
	for name, value := range fields {
		header, pointer := d.follow(value, "")
		listed[http.CanonicalHeaderKey(name)] = true
		values := k.header.Values(name)
		if required, _ := header["required"].(bool); required && len(values) == 0 {
			s.report(k, "%s is missing", name)
		}
		for _, value := range values {
			if !d.takes(pointer+"/schema", value) {
				s.report(k, "the document does not take %s: %s", name, value)
			}
			s.headers[name] = true
		}
	}
	for name := range k.header {
		if !listed[name] && !general(name) {
			s.report(k, "%s is not in the document", name)
		}
	}
}

// unseen are statuses that no golden answer of the operation itself shows, and why.
func unseen(status string) string {
	if status == "408" || status == "431" {
		return "it belongs to the connection, whatever is asked on it: unread/408.http, unread/431.http, server_test.go"
	}
	return ""
}

// goldenProblems holds the document against the golden answers, both ways: each answer is described, each response was seen, each example
// is an answer.
func (d *openAPI) goldenProblems(all []kept) []string {
	s := &survey{statuses: map[string]bool{}, headers: map[string]bool{}, bodies: map[string][]any{}}
	for i := range all {
		d.judge(&all[i], s)
	}
	for name, o := range d.operations() {
		responses, _ := o.fields["responses"].(object)
		for number, value := range responses {
			if !s.statuses[name+" "+number] && unseen(number) == "" {
				s.problems = append(s.problems, name+": no golden answer has the status "+number)
			}
			response, pointer := d.follow(value, o.pointer+"/responses/"+number)
			d.judgeExamples(name+" "+number, response, s.bodies[pointer], s)
		}
	}
	headers, _ := at(d.root, "components", "headers").(object)
	for name, value := range headers {
		if !s.headers[name] {
			s.problems = append(s.problems, "no golden answer has the header "+name)
		}
		if text, _ := at(value, "example").(string); !d.takes("/components/headers/"+name+"/schema", cmpText(text, at(value, "example"))) {
			s.problems = append(s.problems, "the example of "+name+" is not of its form")
		}
	}
	if s.judged < 200 {
		s.problems = append(s.problems, fmt.Sprintf("only %d golden answers were judged", s.judged))
	}
	slices.Sort(s.problems)
	return slices.Compact(s.problems)
}

// judgeExamples wants each example to be a body that was seen with this very response.
func (d *openAPI) judgeExamples(where string, response object, seen []any, s *survey) {
	content := at(response, "content", "application/json")
	if content == nil {
		return
	}
	examples, _ := at(content, "examples").(object)
	if len(examples) == 0 {
		s.problems = append(s.problems, where+" has no example")
	}
	for name, example := range examples {
		value := at(example, "value")
		if !slices.ContainsFunc(seen, func(body any) bool { return reflect.DeepEqual(body, value) }) {
			s.problems = append(s.problems, fmt.Sprintf("%s: the example %s is no golden answer of this response", where, name))
		}
	}
}

// everyProblem is all that the document can be wrong in.
func (d *openAPI) everyProblem(all []kept, codes []string) []string {
	return slices.Concat(d.routeProblems(), d.parameterProblems(), d.bodyProblems(), d.wordProblems(codes), d.openObjects(), d.goldenProblems(all))
}

// TestDocument holds the OpenAPI document against the program, both ways.
func TestDocument(t *testing.T) {
	for _, problem := range readDocument(t, published(t)).everyProblem(keptAnswers(t), engineCodes(t)) {
		t.Error(problem)
	}
}

// TestDocument_Control: each of these breaches is told.
func TestDocument_Control(t *testing.T) {
	text, codes, answers := published(t), engineCodes(t), keptAnswers(t)
	place := func(d *openAPI, path string) object {
		return at(d.root, strings.Split(path, " ")...).(object)
	}
	for name, c := range map[string]struct {
		want   string
		breach func(d *openAPI)
	}{
		"an operation is gone":        {"GET /v1/convert is not in the document", func(d *openAPI) { delete(place(d, "paths"), "/v1/convert") }},
		"an operation is invented":    {"GET /v1/new is in the document alone", func(d *openAPI) { place(d, "paths")["/v1/new"] = place(d, "paths /v1/rates") }},
		"a key is required":           {"GET /v1/rates has the security", func(d *openAPI) { d.root["security"] = []any{object{"bearerKey": []any{}}} }},
		"a parameter is gone":         {"GET /v1/currencies: ", func(d *openAPI) { place(d, "components parameters IfNoneMatch")["in"] = "query" }},
		"a parameter is not required": {"GET /v1/convert: amount is required: false", func(d *openAPI) { delete(place(d, "components parameters AmountWanted"), "required") }},
		"another bound":               {"limit=201", func(d *openAPI) { place(d, "components parameters PageLimit schema")["maximum"] = json.Number("201") }},
		"another default":             {"limit has the default 50", func(d *openAPI) { place(d, "components parameters PageLimit schema")["default"] = json.Number("50") }},
		"no default":                  {"cursor has the default", func(d *openAPI) { delete(place(d, "components parameters PageCursor schema"), "default") }},
		"a looser grammar":            {"amount=0.505", func(d *openAPI) { place(d, "components parameters AmountWanted schema")["pattern"] = "^[0-9.]+$" }},
		"no format":                   {"from=2025-02-29", func(d *openAPI) { delete(place(d, "components parameters FromDate schema"), "format") }},
		"a word more":                 {"Channel is", func(d *openAPI) { place(d, "components schemas Channel")["enum"] = []any{"branch"} }},
		"a code less":                 {"ErrorCode is", func(d *openAPI) { place(d, "components schemas ErrorCode")["enum"] = []any{"not_found"} }},
		"a code is not explained":     {"read_only is explained at no answer", func(d *openAPI) { place(d, "components responses Unavailable")["description"] = "Later." }},
		"a code at the wrong status":  {"not_found is explained at 500", func(d *openAPI) { place(d, "components responses InternalError")["description"] = "`not_found`" }},
		"a body field is gone":        {"POST /v1/account/sessions: the document has the fields", func(d *openAPI) { delete(place(d, "components schemas SessionRequest properties"), "code") }},
		"a shorter name": {"the program takes", func(d *openAPI) {
			place(d, "components schemas KeyRequest properties name")["maxLength"] = json.Number("79")
		}},
		"numbers for decimals":        {"best-200.http", func(d *openAPI) { place(d, "components schemas Rate properties buy")["type"] = "number" }},
		"no null":                     {"rates-200.http", func(d *openAPI) { place(d, "components schemas Rate properties effectiveDate")["type"] = "string" }},
		"a field is gone":             {"history-200.http", func(d *openAPI) { delete(place(d, "components schemas HistoryEntry properties"), "sourceId") }},
		"an open object":              {"Meta takes fields", func(d *openAPI) { delete(place(d, "components schemas Meta"), "additionalProperties") }},
		"a field that may be missing": {"Window requires", func(d *openAPI) { place(d, "components schemas Window")["required"] = []any{"limit"} }},
		"a status is gone":            {"the document has no 429 at GET /v1/rates", func(d *openAPI) { delete(place(d, "paths /v1/rates get responses"), "429") }},
		"a status is invented":        {"GET /v1/rates: no golden answer has the status 418", func(d *openAPI) { r := place(d, "paths /v1/rates get responses"); r["418"] = r["500"] }},
		"a header is gone":            {"X-Ratelimit-Reset is not in the document", func(d *openAPI) { delete(place(d, "paths /v1/rates get responses 200 headers"), "X-RateLimit-Reset") }},
		"a header is invented": {"X-New is missing", func(d *openAPI) {
			place(d, "components responses KeyNeeded headers")["X-New"] = object{"required": true, "schema": object{}}
		}},
		"a header that is never there": {"no golden answer has the header X-Odd", func(d *openAPI) { place(d, "components headers")["X-Odd"] = object{"schema": object{}, "example": "x"} }},
		"a header of another form":     {"does not take Deprecation", func(d *openAPI) { place(d, "components headers Deprecation schema")["pattern"] = "^[0-9]+$" }},
		"a body where none is": {"knows a body, and there is none", func(d *openAPI) {
			place(d, "components responses NotModified")["content"] = object{"application/json": object{}}
		}},
		"an example of nobody": {"the example best is no golden answer", func(d *openAPI) {
			place(d, "paths /v1/rates/best get responses 200 content application/json examples best value")["operation"] = "sell"
		}},
		"no example": {"has no example", func(d *openAPI) {
			delete(place(d, "components responses KeyNotFound content application/json"), "examples")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d := readDocument(t, text)
			c.breach(d)
			problems := d.everyProblem(answers, codes)
			if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, c.want) }) {
				t.Errorf("want %q among %q", c.want, problems)
			}
		})
	}
}

// TestDocument_ControlAnswers: each of these answers, which the program does not give, is told.
func TestDocument_ControlAnswers(t *testing.T) {
	all := keptAnswers(t)
	place := slices.IndexFunc(all, func(k kept) bool { return k.file == filepath.Join("testdata", "limits", "best-200.http") })
	if place < 0 {
		t.Fatal("limits/best-200.http is gone")
	}
	swap := func(old, new string) func(*kept) {
		return func(k *kept) { k.body = bytes.Replace(k.body, []byte(old), []byte(new), 1) }
	}
	for name, breach := range map[string]func(*kept){
		"a number":              swap(`"buy":"58.80"`, `"buy":58.80`),
		"a field more":          swap(`"manual":false`, `"manual":false,"evidence":"x"`),
		"a field less":          swap(`"stale":false,`, ``),
		"another word":          swap(`"channel":"digital"`, `"channel":"web"`),
		"another form":          swap(`"sell":"59.25"`, `"sell":"59.250000001"`),
		"another currency":      swap(`"quoteCurrency":"DOP"`, `"quoteCurrency":"USD"`),
		"a day that is none":    swap(`"effectiveDate":null`, `"effectiveDate":"2025-02-29"`),
		"no JSON":               swap(`{"data"`, `"data"`),
		"no request id":         func(k *kept) { k.header.Del("X-Request-Id") },
		"a header that is new":  func(k *kept) { k.header.Set("X-Node", "a") },
		"a header of no number": func(k *kept) { k.header.Set("X-RateLimit-Limit", "many") },
		"another status":        func(k *kept) { k.status = http.StatusTeapot },
		"another path":          func(k *kept) { k.path = "/v1/rates/worst" },
	} {
		t.Run(name, func(t *testing.T) {
			bad := all[place]
			bad.header = bad.header.Clone()
			breach(&bad)
			s := &survey{statuses: map[string]bool{}, headers: map[string]bool{}, bodies: map[string][]any{}}
			if readDocument(t, published(t)).judge(&bad, s); len(s.problems) == 0 {
				t.Error("it passes")
			}
		})
	}
}
