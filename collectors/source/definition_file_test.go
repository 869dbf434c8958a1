package source_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/collectors/values"
	"github.com/tasard/tasard/engine"
)

// The definitions that the tables break, one for each method. sharedFile has its labels once for both of its pages,
// which speak for two banks.
var (
	fieldsFile, rowsFile, jsonFile = testFile("fields"), testFile("rows"), testFile("json")
	textFile, labelFile, sheetFile = testFile("text"), testFile("label"), testFile("sheet")
	sharedFile                     = testFile("shared")
)

func testFile(name string) string {
	text, err := os.ReadFile(filepath.Join("testdata", "definitions", name+".json"))
	if err != nil {
		panic(err)
	}
	return string(text)
}

func wholeFiles() []string {
	return []string{fieldsFile, rowsFile, jsonFile, textFile, labelFile, sheetFile}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustRead(t *testing.T, text string) *source.Definition {
	t.Helper()
	d, err := read("f.json", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return d
}

func TestWholeDefinitionsAreRead(t *testing.T) {
	for _, text := range wholeFiles() {
		mustRead(t, text)
	}
	d := mustRead(t, fieldsFile)
	expiry := source.Expiry{AfterCheck: 20 * time.Hour, AfterDate: 120 * time.Hour}
	if d.Priority != 90 || d.Channel != engine.Digital || d.Expiry != expiry || d.Decimal != values.Comma || d.DecimalsMax != 3 {
		t.Errorf("read %+v", d)
	}
	second := d.Pages[0].Requests[1]
	if second.Method != "POST" || second.Headers["accept"] != "text/html" || second.Form["json"] != "{}" || second.AddressFrom == nil {
		t.Errorf("second request %+v", second)
	}
	// An empty form is a body, a missing form is not.
	d = mustRead(t, strings.Replace(jsonFile, `"json": {"query": "{ a }"}`, `"form": {}`, 1))
	if form := d.Pages[0].Requests[0].Form; form == nil || len(form) != 0 {
		t.Errorf("form is %#v", form)
	}
}

func TestDefaultsOfADefinition(t *testing.T) {
	d := mustRead(t, textFile)
	if d.Priority != engine.PriorityDefault || d.Kind != engine.Commercial || d.Channel != engine.Unspecified ||
		d.Expiry.AfterCheck != engine.LifetimeDefault || d.Expiry.AfterDate != 0 || d.DecimalsMax != 8 || d.Decimal != values.AnyMark {
		t.Errorf("defaults are %+v", d)
	}
	if request := d.Pages[0].Requests[0]; request.Method != "GET" || request.Form != nil || request.JSON != "" || request.Headers != nil {
		t.Errorf("request %+v", request)
	}
}

// Without afterDate, a rate of an operator's own definition with a date is valid for five days after it, like those of
// the built-in definitions: a page that its institution has stopped updating does not stay current.
func TestT3_DatedRatesExpireByDefault(t *testing.T) {
	const pageDate = `"extract": {"date": {"at": ".fecha", "form": "iso"}, `
	for name, text := range map[string]string{
		"date in each row": jsonFile, "date of a page": strings.Replace(rowsFile, `"extract": {`, pageDate, 1),
		"date of a sheet": strings.Replace(sheetFile, `{"afterDate": "120h"}`, "{}", 1),
	} {
		if strings.Contains(text, "afterDate") || mustRead(t, text).Expiry.AfterDate != 120*time.Hour {
			t.Errorf("%s: %+v\n%s", name, mustRead(t, text).Expiry, text)
		}
	}
}

type broken struct{ file, old, fresh, want string }

// A definition may send a secret in clear to this machine.
func TestSecretsOfThisMachine(t *testing.T) {
	local := strings.NewReplacer(`"name": "Indexa"`, `"name": "Indexa", "secret": {"name": "indexa", "header": "x-api-key"}`,
		"https://api.indexa.example/", "http://127.0.0.1:8081/").Replace(jsonFile)
	if d := mustRead(t, local); d.Secret.Header != "X-Api-Key" || strings.Join(d.SecretNames(), " ") != "indexa" {
		t.Errorf("%+v", d.Secret)
	}
}

// brokenDefinitions are definitions with mistakes: in their heads, requests and secrets (which would go where they must
// not), and in how documents are read.
func brokenDefinitions() map[string]broken {
	const name, oauth = `"name": "Indexa"`, `"name": "Indexa", "oauth2": {"url": "https://api.indexa.example/token", "clientId": "a", "clientSecret": "b"}`
	key := func(more string) string {
		return name + `, "secret": {"name": "indexa", "header": "X-Api-Key"` + more + `}`
	}
	return map[string]broken{
		"unknown key":          {textFile, `"name": "Qik"`, `"name": "Qik", "Priority": 1`, `unknown key "Priority"`},
		"doubled key":          {textFile, `"name": "Qik"`, `"name": "Qik", "name": "B"`, `has the key "name" twice`},
		"control character":    {textFile, `"name": "Qik"`, `"name": "Q\u0007"`, "control character"},
		"broken character":     {textFile, `"name": "Qik"`, `"name": "Q\ud800"`, "control character or a broken one"},
		"url without a scheme": {fieldsFile, `"https://popular.example/tasas"`, `"popular.example"`, "not a web address"},
		"no speaker":           {textFile, `"institution": "qik",`, ``, "neither institution nor upstreamSource"},
		"proxy no address":     {textFile, `"name": "Qik"`, `"name": "Qik", "proxy": "10.0.0.1:3128"`, "not the address of a proxy"},
		"proxy password":       {textFile, `"name": "Qik"`, `"name": "Qik", "proxy": "http://u:p@10.0.0.1:3128"`, "has a password"},
		"file outside":         {fieldsFile, `"ca/popular.pem"`, `"../popular.pem"`, "not a file below"},
		"expiry in days":       {fieldsFile, `"20h"`, `"2d"`, "not a duration"},
		"instead of nothing":   {textFile, `"currency": "USD", "requests"`, `"name": "b", "insteadOf": "a", "currency": "USD", "requests"`, "is read instead of \"a\""},
		"bound with a comma":   {fieldsFile, `"60.5"`, `"60,5"`, "highest"},
		"small currency":       {textFile, `"currency": "USD"`, `"currency": "usd"`, "^[A-Z]{3}$"},

		"plain http":           {textFile, `https://qik`, `http://qik`, "not protected"},
		"fragment of a url":    {textFile, `qik.example/"`, `qik.example/#a"`, "# part"},
		"two sites":            {fieldsFile, `{"method": "POST", "addressFrom": {"selector": "#a[data-url]", "attribute": "data-url"}`, `{"method": "POST", "url": "https://other.example/"`, "stay on one site"},
		"no address":           {textFile, `"url": "https://qik.example/"`, `"method": "GET"`, "either url or addressFrom"},
		"first from an answer": {textFile, `"url": "https://qik.example/"`, `"addressFrom": {"selector": "a", "attribute": "href"}`, "no response before it"},
		"GET with a body":      {fieldsFile, `"method": "POST"`, `"method": "GET"`, "a GET has none"},
		"POST without one":     {fieldsFile, `, "form": {"json": "{}"}`, ``, "a POST has one body"},
		"two bodies":           {fieldsFile, `"form": {"json": "{}"}`, `"form": {}, "json": {}`, "has one body"},
		"key in a header":      {fieldsFile, `"accept"`, `"x-access-token"`, "put it into a file"},
		"own user agent":       {fieldsFile, `"accept"`, `"user-agent"`, "not for a definition"},
		"header with a blank":  {fieldsFile, `"accept"`, `"a b"`, `the name of a header, "a b"`},
		"header with a line":   {fieldsFile, `"text/html"`, `"a\r\nb: c"`, "control character"},

		"secret as a cookie":     {jsonFile, name, name + `, "secret": {"name": "indexa", "header": "cookie"}`, "can't be set"},
		"secret in a definition": {jsonFile, name, key(`, "value": "1234"`), `unknown key "value"`},
		"two secrets":            {jsonFile, name, oauth + `, "secret": {"name": "indexa", "header": "X-Api-Key"}`, "keep one"},
		"secret without TLS": {jsonFile, `"name": "Indexa", "upstreamSource": "Indexa",
  "pages": [{"requests": [{"method": "POST", "url": "https:`, key("") + `, "upstreamSource": "Indexa",
  "pages": [{"requests": [{"method": "POST", "url": "http:`, `pages[0].requests[0].url: begins with http://, which is not protected; use https://, or the IP address of a ma`},
		"token without TLS":       {jsonFile, name, strings.Replace(oauth, "https:", "http:", 1) + ``, `oauth2.url: begins with http://, which is not protected; use https://, or the IP address of a machine of your `},
		"secret by a page's word": {fieldsFile, `"name": "Sitio web"`, `"name": "Sitio web", "secret": {"name": "a", "header": "X-Api-Key"}`, "takes its address from a page"},

		"heading of marks": {sheetFile, `"*Compra"`, `"**"`, "no letters"},
		"field of no currency": {fieldsFile, `"currency": "USD",
    "requests"`, `"requests"`, "has no currency"},
		"field without one":     {fieldsFile, `"institution": "popular",`, `"upstreamSource": "X",`, "no institution"},
		"selector cut off":      {fieldsFile, `"#compra"`, `"#compra["`, "not a CSS selector"},
		"pattern cut off":       {fieldsFile, `"al (.+)"`, `"al (.+"`, "not a pattern"},
		"pattern of two groups": {fieldsFile, `"al (.+)"`, `"(al) (.+)"`, "2 groups"},
		"path with a hole":      {jsonFile, `"rate.list[0]"`, `"rate..list"`, "not a path"},
		"value and side":        {jsonFile, `"value": {`, `"buy": {"at": "b"}, "value": {`, "either one value"},
		"no value at all":       {jsonFile, `"value": {"at": "rate.list[0]"}, `, ``, "neither buy nor sell nor value"},
		"label without a side":  {jsonFile, `, "side": "buy"`, ``, "names no side"},
		"label without one":     {rowsFile, `{"institution": "popular"}`, `{}`, "names no institution"},
		"label of no currency":  {jsonFile, `"currency": "USD", `, ``, "names no currency"},
		"label twice":           {rowsFile, `"López de Haro*"`, `"BANCO\u00a0POPULAR :"`, "same label"},
		"no labels":             {labelFile, `{"USD": {"currency": "USD"}}`, `{}`, "labels is missing"},
		"no group of a side":    {labelFile, `(?P<buy>`, `(`, "neither the group buy"},
		"text of no currency":   {textFile, `"currency": "USD", `, ``, "group label"},

		"no institution of it": {sharedFile, `"institution": "bhd", `, ``, `the label "dolar", here or of the file, names no institution`},
		"twice":                {sharedFile, `"EURO": {`, `"dolar": {`, "is the same label"},
		"ignored all":          {sharedFile, `"ignore": ["Euro"]`, `"ignore": ["Euro", "dólar"]`, "here and for the whole file"},
		"unless no pattern":    {rowsFile, `"at": "table tr",`, `"at": "table tr", "unless": "remesa",`, `pages[0].extract.rows.unless: value must be 'other-rates'`},
	}
}

func TestBrokenDefinitionsAreRefused(t *testing.T) {
	for name, b := range brokenDefinitions() {
		text := strings.Replace(b.file, b.old, b.fresh, 1)
		if text == b.file {
			t.Errorf("%s: the definition has no %s to break", name, b.old)
		}
		_, err := read("broken.json", []byte(text))
		if err == nil || !strings.Contains(err.Error(), b.want) || !strings.HasPrefix(err.Error(), "broken.json: ") {
			t.Errorf("%s: got  %v\nwant broken.json and %q\n%s", name, err, b.want, text)
		}
	}
}

func TestEveryProblemIsReportedWithItsPlace(t *testing.T) {
	text := strings.NewReplacer(`"id": "indexa"`, `"id": "I"`, `"rate.list[0]"`, `"["`, `"form": "iso"`, `"form": "day"`).Replace(jsonFile)
	_, err := read("f.json", []byte(text))
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 3 {
		t.Fatalf("want three problems, got %v", err)
	}
	for _, place := range []string{"f.json: id: ", "f.json: pages[0].extract.rows.value.at: ", "f.json: pages[0].extract.rows.date.form: "} {
		if !strings.Contains(err.Error(), place) {
			t.Errorf("no problem at %q in\n%v", place, err)
		}
	}
}

func TestFilesWithInvalidJSONAreRefused(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"empty":            {"", "not one JSON object"},
		"cut off":          {"{\n\"id\": ", "line 2"},
		"two objects":      {"{} {}", "not one JSON object"},
		"a list":           {"[]", "got array, want object"},
		"byte order mark":  {"\xef\xbb\xbf{}", "byte order mark"},
		"not UTF-8":        {"{\"id\": \"\xe9\"}", "not UTF-8"},
		"too long":         {strings.Repeat(" ", 256<<10) + "{}", "longer than"},
		"nothing in it":    {"{}", "id is missing"},
		"only a change":    {`{"id": "a", "disabled": "x"}`, "there is no source a to change"},
		"changes nothing":  {`{"id": "a"}`, "changes nothing"},
		"changes too much": {`{"id": "a", "name": "b", "disabled": "x"}`, `unknown key "name"`},
	} {
		_, err := read("f.json", []byte(test.text))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

// Labels of a file are known to all its pages; what a page says or ignores itself wins.
func TestLabelsOfAFile(t *testing.T) {
	d := mustRead(t, sharedFile)
	one, two := d.Pages[0].Extract.Rows.Labels, d.Pages[1].Extract.Rows.Labels
	if len(one) != 2 || one["dolar"].Currency != "USD" || one["euro"].Channel != "cash" {
		t.Errorf("labels of the first page are %v", one)
	}
	if len(two) != 1 || two["dolar"].Currency != "USD" {
		t.Errorf("labels of the second page are %v", two)
	}
	body := []byte(`{"data": [{"name": "DOLAR", "buy": 58.00, "sell": 60.10}, {"name": "euro", "buy": 66, "sell": 70}]}`)
	for page, want := range []string{"popular USD 58.00 , popular EUR 66 ", "bhd USD  60.10"} {
		answer, err := d.Parse(page, &source.Document{Body: body})
		must(t, err)
		var got []string
		for _, o := range answer.Observations {
			got = append(got, strings.Join([]string{o.InstitutionID, o.Currency, o.Buy, o.Sell}, " "))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("page %d says %q, want %q", page, got, want)
		}
	}
}

// TestSchema_AcceptsDefinitions wants every example of docs/definitions.md and every file of the tests valid.
func TestSchema_AcceptsDefinitions(t *testing.T) {
	examples := documentedDefinitions(t)
	for _, method := range []source.Method{source.HTMLFields, source.HTMLRows, source.JSONFields, source.JSONRows, source.TextRegex, source.XLSXRows} {
		if !strings.Contains(strings.Join(examples, ""), fmt.Sprintf(`"method": %q`, method)) {
			t.Errorf("docs/definitions.md has no example of %s", method)
		}
	}
	for _, text := range append(wholeFiles(), examples...) {
		if strings.Contains(text, `"pages"`) {
			mustRead(t, text)
		} else {
			mustExtend(t, map[string]string{"a.json": text, "popular.pem": ""})
		}
	}
}

// documentedDefinitions returns the definitions in docs/definitions.md, and its extracts as definitions.
func documentedDefinitions(t *testing.T) (texts []string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "definitions.md"))
	must(t, err)
	for rest := string(page); ; {
		start := strings.Index(rest, "\n    {")
		if start < 0 {
			return texts
		}
		decoder := json.NewDecoder(strings.NewReader(rest[start:]))
		var raw json.RawMessage
		must(t, decoder.Decode(&raw))
		text := string(raw)
		if strings.HasPrefix(text, `{"method"`) {
			text = `{"id": "a", "name": "A", "institution": "bhd", "pages": [{"currency": "USD", "requests": [{"url": "https://a.do/"}], "extract": ` + text + `}]}`
		}
		texts = append(texts, text)
		rest = rest[start+int(decoder.InputOffset()):]
	}
}

// TestSchema_HasTheWords wants the lists of words that package engine owns in the schema.
func TestSchema_HasTheWords(t *testing.T) {
	var schema map[string]any
	must(t, json.Unmarshal(source.Schema(), &schema))
	for path, want := range map[string]string{
		"$defs.channel": fmt.Sprint(engine.Channels()), "properties.kind": fmt.Sprint(engine.Kinds()),
	} {
		outer, inner, _ := strings.Cut(path, ".")
		if got := fmt.Sprint(schema[outer].(map[string]any)[inner].(map[string]any)["enum"]); got != want {
			t.Errorf("%s has %s, want %s", path, got, want)
		}
	}
}
