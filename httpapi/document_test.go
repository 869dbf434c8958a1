package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/encode"
	"github.com/tasard/tasard/httpapi/internal/params"
)

// documentURL names the document to the validator; a name without a scheme would be a file below the working directory.
const documentURL = "https://node.example/openapi.json"

type object = map[string]any

// openAPI is the document as a client gets it, with the validator of a library that is independent of this program.
type openAPI struct {
	root     object
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema
	known    map[string]documentedOperation // filled by operations
	options  params.Options
}

func readDocument(t testing.TB) *openAPI {
	t.Helper()
	value := must(jsonschema.UnmarshalJSON(bytes.NewReader(must(os.ReadFile("contract/openapi.json")))))
	d := &openAPI{root: value.(object), compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	d.options = params.Options{Catalogue: fakeCatalogue(), Today: engine.DateOf(fakeNow())}
	d.compiler.AssertFormat()
	ok(t, d.compiler.AddResource(documentURL, d.root))
	return d
}

// at is the value at a path of names, or nil.
func at(value any, names ...string) any {
	for _, name := range names {
		fields, _ := value.(object)
		value = fields[name]
	}
	return value
}

// follow is what a reference leads to, and where that is; of anything else itself.
func (d *openAPI) follow(value any, pointer string) (object, string) {
	fields, _ := value.(object)
	if ref, ok := fields["$ref"].(string); ok {
		pointer = strings.TrimPrefix(ref, "#")
		fields, _ = at(d.root, strings.Split(strings.TrimPrefix(pointer, "/"), "/")...).(object)
	}
	return fields, pointer
}

// problem judges a JSON value by the schema at a pointer; "" is right.
func (d *openAPI) problem(pointer string, value any) string {
	schema := d.schemas[pointer]
	if schema == nil {
		var err error
		if schema, err = d.compiler.Compile(documentURL + "#" + pointer); err != nil {
			return "the schema can't be read: " + err.Error()
		}
		d.schemas[pointer] = schema
	}
	if err := schema.Validate(value); err != nil {
		return err.Error()
	}
	return ""
}

// takes tells whether the schema takes a text as it stands in a URL.
func (d *openAPI) takes(pointer, text string) bool {
	schema, _ := d.follow(at(d.root, strings.Split(strings.TrimPrefix(pointer, "/"), "/")...), pointer)
	if schema["type"] != "integer" {
		return d.problem(pointer, text) == ""
	}
	if number, err := strconv.ParseUint(text, 10, 63); err != nil || strconv.FormatUint(number, 10) != text {
		return false
	}
	return d.problem(pointer, json.Number(text)) == ""
}

type documentedOperation struct {
	method, path, pointer string
	fields                object
}

func (o documentedOperation) name() string { return o.method + " " + o.path }

// operations are all operations of the document, as it is at the first call.
func (d *openAPI) operations() map[string]documentedOperation {
	if d.known != nil {
		return d.known
	}
	all := map[string]documentedOperation{}
	paths, _ := at(d.root, "paths").(object)
	for path, methods := range paths {
		fields, _ := methods.(object)
		for method, value := range fields {
			pointer := "/paths/" + strings.ReplaceAll(path, "/", "~1") + "/" + method
			o := documentedOperation{strings.ToUpper(method), path, pointer, value.(object)}
			all[o.name()] = o
		}
	}
	d.known = all
	return all
}

type routedOperation struct {
	data    params.Operation // opNone: none of the data operations
	account *accountOperation
}

// routedOperations are all operations that have a path. HEAD and OPTIONS go with them (decision C2 of package
// contract).
func routedOperations() map[string]routedOperation {
	all := map[string]routedOperation{"GET " + livezPath: {}, "GET " + healthzPath: {}, "GET " + readyzPath: {}}
	for _, r := range routes() {
		all["GET "+r.pattern] = routedOperation{data: r.operation}
	}
	for _, op := range accountOperations() {
		all[op.method+" "+op.pattern] = routedOperation{account: &op}
	}
	return all
}

// routeProblems holds the operations of the document against those of the server, both ways, and their security
// (interface §5.2).
func (d *openAPI) routeProblems() (problems []string) {
	tables, operations := routedOperations(), d.operations()
	for name := range tables {
		if _, found := operations[name]; !found {
			problems = append(problems, name+" is not in the document")
		}
	}
	for name, o := range operations {
		row, found := tables[name]
		if !found {
			problems = append(problems, name+" is only in the document")
			continue
		}
		security, own := o.fields["security"]
		if !own {
			security = d.root["security"]
		}
		text, _ := json.Marshal(security)
		want := `[]`
		switch {
		case row.data != params.None:
			want = `[{},{"bearerKey":[]}]`
		case row.account != nil && row.account.credential == sessionToken:
			want = `[{"session":[]}]`
		case row.account != nil && row.account.credential == sessionTokenOrKey:
			want = `[{"session":[]},{"bearerKey":[]}]`
		}
		if string(text) != want {
			problems = append(problems, fmt.Sprintf("%s has the security %s, want %s", name, text, want))
		}
	}
	return problems
}

// parameterProblems holds the query parameters against the table: names, what is required, defaults, and the values
// that each takes.
func (d *openAPI) parameterProblems() (problems []string) {
	table, tables := params.NewTable(), routedOperations()
	for name, o := range d.operations() {
		op := tables[name].data
		found := map[string]bool{}
		list, _ := o.fields["parameters"].([]any)
		for i, value := range list {
			p, pointer := d.follow(value, fmt.Sprintf("%s/parameters/%d", o.pointer, i))
			if p["in"] != "query" {
				continue
			}
			query, _ := p["name"].(string)
			found[query] = true
			row := table.Find(op, []byte(query))
			if row < 0 {
				problems = append(problems, name+": "+query+" is only in the document")
				continue
			}
			if required, _ := p["required"].(bool); required != (table[row].RequiredBy&op != 0) {
				problems = append(problems, fmt.Sprintf("%s: %s is required: %t", name, query, required))
			}
			problems = append(problems, d.grammarProblems(name, op, row, p, pointer)...)
		}
		for _, row := range table {
			if row.AllowedBy&op != 0 && !found[row.Name] {
				problems = append(problems, name+": "+row.Name+" is missing")
			}
		}
	}
	return problems
}

// probes are values near the edges of every grammar.
func probes() []string {
	return []string{
		"", "0", "1", "2", "10", "100", "199", "200", "201", "010", "+5", "-1", "5.0", "1e2", " 5", "99999", "100000", "100001", "1000000",
		"0.5", "0.50", "0.505", ".5", "5.", "1,5", "007", "999999999999.99", "123456789012", "1234567890123", "12345678901234.5",
		"USD", "usd", "US", "USDX", "U5D", "XXX", "ÉUR", "bhd", "BHD", "a", "-", "banco-1", "banco_1", "banco 1", strings.Repeat("a", 200),
		"buy", "sell", "Buy", "buys", "unspecified", "branch", "digital", "cash", "transfer", "Cash", "other", "commercial", "reference", "official",
		"2025-11-21", "2025-02-28", "2025-02-29", "2024-02-29", "2025-1-1", "2025-13-01", "2025-11-31", "20251121", "2025-11-21T00:00:00Z", "null", "true",
		"25-11-21", "+025-11-21", "2025-00-10", "-0", "00", "+0", "0x1", "99999999999999999999", "1.234", "+1", "1e3", "a+b", "b.d", "atm", "compra",
	}
}

// grammarProblems asks schema and program which values they take, and what they do without one.
func (d *openAPI) grammarProblems(name string, op params.Operation, index int, p object, pointer string) (problems []string) {
	table := params.NewTable()
	row, q := &table[index], new(params.Query)
	refused := func(value string) bool {
		details := table.Read(q, op, []byte(params.InstitutionPath+"x"), []byte(row.Name+"="+strings.NewReplacer(" ", "%20", "+", "%2B").Replace(value)), d.options)
		return slices.ContainsFunc(details, func(d params.Problem) bool {
			return d.Name == row.Name && strings.HasPrefix(d.Message, row.Grammar)
		})
	}
	for _, value := range probes() {
		if taken := d.takes(pointer+"/schema", value); taken == refused(value) {
			problems = append(problems, fmt.Sprintf("%s: %s=%s: the document takes it: %t, the program the other way", name, row.Name, value, taken))
		}
	}
	if p["example"] == nil || refused(fmt.Sprint(p["example"])) {
		problems = append(problems, fmt.Sprintf("%s: %s: the example %v is none, or not taken", name, row.Name, p["example"]))
	}
	schema, _ := d.follow(p["schema"], "")
	table.Read(q, op, []byte(params.InstitutionPath+"x"), nil, d.options)
	want := map[string]string{"limit": strconv.Itoa(q.Limit), "cursor": strconv.Itoa(q.Cursor)}[row.Name]
	if got := fmt.Sprint(schema["default"]); schema["default"] != nil && got != want || schema["default"] == nil && want != "" {
		problems = append(problems, fmt.Sprintf("%s: %s has the default %s, want %q", name, row.Name, got, want))
	}
	return problems
}

// bodyProblems holds the bodies of requests against the fields of the account operations.
func (d *openAPI) bodyProblems() (problems []string) {
	for name, row := range routedOperations() {
		o := d.operations()[name]
		schema, pointer := d.follow(at(o.fields, "requestBody", "content", "application/json", "schema"), "")
		if row.account == nil || row.account.fields == nil {
			if o.fields["requestBody"] != nil {
				problems = append(problems, name+" has a body only in the document")
			}
			continue
		}
		var known, needed []string
		for _, field := range row.account.fields {
			known = append(known, field.name)
			if field.required {
				needed = append(needed, field.name)
			}
		}
		properties, _ := schema["properties"].(object)
		if got := slices.Sorted(maps.Keys(properties)); !slices.Equal(got, slices.Sorted(slices.Values(known))) || !slices.Equal(texts(schema["required"]), needed) {
			problems = append(problems, fmt.Sprintf("%s: the document has the fields %v and requires %v, want %v and %v", name, got, schema["required"], known, needed))
		}
		for _, field := range row.account.fields {
			for _, value := range []string{
				"", "1", "00712345", "0071234", "007123456", "0071234x", "ana@example.do", strings.Repeat("n", 80), strings.Repeat("n", 81), strings.Repeat("ñ", 80),
				strings.Repeat("a", 60) + "@" + strings.Repeat("b", 60) + ".do",
			} {
				// Only the program knows rules that a schema can't express, such as the syntax of an address.
				if field.set(&accountRequest{}, value) && d.problem(pointer+"/properties/"+field.name, value) != "" {
					problems = append(problems, fmt.Sprintf("%s: %s: the program takes %q, the document doesn't", name, field.name, value))
				}
				if field.name != "email" && !field.set(&accountRequest{}, value) && d.problem(pointer+"/properties/"+field.name, value) == "" {
					problems = append(problems, fmt.Sprintf("%s: %s: the document takes %q, the program doesn't", name, field.name, value))
				}
			}
		}
		examples, _ := at(o.fields, "requestBody", "content", "application/json", "examples").(object)
		for example, value := range examples {
			text, _ := json.Marshal(at(value, "value"))
			details, ok := readBody(text, row.account.fields, &accountRequest{})
			if why := d.problem(pointer, at(value, "value")); why != "" || !ok || len(details) > 0 {
				problems = append(problems, fmt.Sprintf("%s: the example %s is not taken: %s %v", name, example, why, details))
			}
		}
		if len(examples) == 0 {
			problems = append(problems, name+" has no example of a body")
		}
	}
	return problems
}

func texts(value any) (all []string) {
	list, _ := value.([]any)
	for _, item := range list {
		all = append(all, fmt.Sprint(item))
	}
	return all
}

// engineCodes are the codes that the rules have: the constants of the engine (decision E1).
func engineCodes(t testing.TB) (codes []string) {
	t.Helper()
	source := must(os.ReadFile(filepath.Join("..", "engine", "service.go")))
	for _, found := range regexp.MustCompile(`(?m)^\tCode\w+ +Code += "(\w+)"`).FindAllSubmatch(source, -1) {
		codes = append(codes, string(found[1]))
	}
	if len(codes) < 20 {
		t.Fatalf("found only the codes %q", codes)
	}
	return codes
}

// wordProblems holds the closed lists against the engine's: error codes, each explained at an answer of its status,
// and the words of rates.
func (d *openAPI) wordProblems(codes []string) (problems []string) {
	schema := func(name string) []string { return texts(at(d.root, "components", "schemas", name, "enum")) }
	same := func(name string, want []string) {
		if got := schema(name); len(want) == 0 || !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
			problems = append(problems, fmt.Sprintf("%s is %q, want %q", name, got, want))
		}
	}
	same("ErrorCode", codes)
	same("Channel", words(engine.Channels()))
	same("RateKind", words(engine.Kinds()))
	same("Operation", words(engine.Operations()))
	same("InstitutionType", words(engine.InstitutionTypes()))
	same("DatePrecision", words([]engine.DatePrecision{engine.PrecisionDatetime, engine.PrecisionDay, engine.PrecisionUnknown}))
	same("ReadinessStatus", words([]engine.Readiness{engine.Ready, engine.Degraded, engine.Unavailable}))
	same("QuoteCurrency", []string{engine.QuoteCurrency})
	explained := map[string]bool{}
	for _, o := range d.operations() {
		responses, _ := o.fields["responses"].(object)
		for answered, value := range responses {
			response, _ := d.follow(value, "")
			for _, code := range codes {
				if number, _ := encode.Status(engine.Code(code)); strings.Contains(fmt.Sprint(response["description"]), "`"+code+"`") {
					if strconv.Itoa(number) != answered {
						problems = append(problems, fmt.Sprintf("%s: %s is explained at %s", o.name(), code, answered))
					}
					explained[code] = true
				}
			}
		}
	}
	for _, code := range codes {
		if !explained[code] && code != string(engine.CodeMethodNotAllowed) { // no operation answers it, the text of the document explains it (decision C2)
			problems = append(problems, code+" is explained at no answer")
		}
	}
	return problems
}

func words[T ~string](list []T) (all []string) {
	for _, word := range list {
		all = append(all, string(word))
	}
	return all
}

// openObjects finds objects that take fields which are not listed, or have one that may be missing though it is
// always sent (decision K8).
func (d *openAPI) openObjects() (problems []string) {
	optional := map[string][]string{"ErrorBody": {"requestId", "details"}, "KeyRequest": {"name"}} // interface §7; K1
	schemas, _ := at(d.root, "components", "schemas").(object)
	for name, value := range schemas {
		if at(value, "type") != "object" {
			continue
		}
		properties, _ := at(value, "properties").(object)
		want := slices.DeleteFunc(slices.Sorted(maps.Keys(properties)), func(field string) bool { return slices.Contains(optional[name], field) })
		if got := slices.Sorted(slices.Values(texts(at(value, "required")))); !slices.Equal(got, want) {
			problems = append(problems, fmt.Sprintf("%s requires %v, want %v", name, got, want))
		}
		if at(value, "additionalProperties") != false {
			problems = append(problems, name+" takes fields that it does not list")
		}
	}
	return problems
}

// goldenAnswer is the answer to a request of a golden file, which holds it byte for byte (TestGolden).
type goldenAnswer struct {
	name, method, path string
	answer
}

func goldenAnswers(t testing.TB) (all []goldenAnswer) {
	t.Helper()
	for _, c := range slices.Concat(goldenCases(), limitCases(), accountCases(), documentCases()) {
		_, a := c.run(t)
		path, _ := splitTarget([]byte(c.target))
		all = append(all, goldenAnswer{c.name, c.method, string(path), a})
	}
	for name, a := range unreadableAnswers(t) {
		all = append(all, goldenAnswer{"unread " + name, "GET", "/v1/rates", a})
	}
	return all
}

// outsideDocument says why an answer belongs to no operation of the document; "" when it should.
func outsideDocument(k *goldenAnswer) string {
	switch {
	case k.method == http.MethodOptions && k.status == http.StatusNoContent:
		return "OPTIONS is described in words (C2)"
	case k.status == http.StatusMethodNotAllowed:
		return "other methods are described in words (C2)"
	case k.status == http.StatusNotFound && bytes.Contains(k.body, []byte(`"Nothing is at this path.`)):
		return "no operation has this path"
	case strings.HasPrefix(k.name, "unread") && k.status == http.StatusRequestEntityTooLarge:
		return "no body belongs to this operation (C4)"
	}
	return ""
}

func (d *openAPI) find(k *goldenAnswer) (documentedOperation, bool) {
	method := strings.Replace(k.method, http.MethodHead, http.MethodGet, 1)
	best, found := documentedOperation{}, false
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

// isGeneralHeader reports whether HTTP or browsers need a header on all answers. The document leaves such headers out.
func isGeneralHeader(name string) bool {
	return strings.HasPrefix(name, "Access-Control-") || strings.HasPrefix(name, "Content-") ||
		slices.Contains([]string{"Cross-Origin-Resource-Policy", "Date", "Referrer-Policy", "Vary", "X-Content-Type-Options"}, name)
}

// documentCoverage is what the golden answers have shown.
type documentCoverage struct {
	statuses map[string]bool  // operation and status
	headers  map[string]bool  // names
	bodies   map[string][]any // response, by its pointer
	judged   int
	problems []string
}

func (s *documentCoverage) report(k *goldenAnswer, format string, args ...any) {
	s.problems = append(s.problems, k.name+": "+fmt.Sprintf(format, args...))
}

// judge holds a golden answer against the response that the document describes.
func (d *openAPI) judge(k *goldenAnswer, s *documentCoverage) {
	if why := outsideDocument(k); why != "" {
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
func (d *openAPI) judgeBody(k *goldenAnswer, pointer string, s *documentCoverage) any {
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

// judgeHeaders wants the required headers, and of each that is there that it is listed and of its form.
func (d *openAPI) judgeHeaders(k *goldenAnswer, response object, s *documentCoverage) {
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
		if !listed[name] && !isGeneralHeader(name) {
			s.report(k, "%s is not in the document", name)
		}
	}
}

// notInGoldenFiles are statuses that no golden answer of the operation itself shows, and why.
func notInGoldenFiles(status string) string {
	if status == "408" || status == "431" || status == "501" {
		return "it belongs to the connection, whatever is asked on it: unread/408.http, unread/431.http, unread/501.http, server_test.go"
	}
	return ""
}

// goldenProblems: each answer is described, each response was seen, each example is an answer.
func (d *openAPI) goldenProblems(all []goldenAnswer) []string {
	s := &documentCoverage{statuses: map[string]bool{}, headers: map[string]bool{}, bodies: map[string][]any{}}
	for i := range all {
		d.judge(&all[i], s)
	}
	for name, o := range d.operations() {
		responses, _ := o.fields["responses"].(object)
		for number, value := range responses {
			if !s.statuses[name+" "+number] && notInGoldenFiles(number) == "" {
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
		if !d.takes("/components/headers/"+name+"/schema", fmt.Sprint(at(value, "example"))) {
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
func (d *openAPI) judgeExamples(where string, response object, seen []any, s *documentCoverage) {
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

// TestK8_Shapes: the bodies of the golden answers have the fields of the OpenAPI document, and no others.
func TestK8_Shapes(t *testing.T) {
	d := readDocument(t)
	for _, problem := range slices.Concat(d.openObjects(), d.goldenProblems(goldenAnswers(t))) {
		t.Error(problem)
	}
}

// TestDocument holds the rest of the OpenAPI document against the program, both ways.
func TestDocument(t *testing.T) {
	d := readDocument(t)
	for _, problem := range slices.Concat(d.routeProblems(), d.parameterProblems(), d.bodyProblems(), d.wordProblems(engineCodes(t))) {
		t.Error(problem)
	}
}
