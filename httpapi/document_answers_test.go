package httpapi

import (
	"bytes"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

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

func newDocumentCoverage() *documentCoverage {
	return &documentCoverage{statuses: map[string]bool{}, headers: map[string]bool{}, bodies: map[string][]any{}}
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
	s := newDocumentCoverage()
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
		if text, _ := at(value, "example").(string); !d.takes("/components/headers/"+name+"/schema", comparableText(text, at(value, "example"))) {
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
