package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "make openapi.json of openapi.yaml")

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// asJSON converts a YAML node to JSON, and keeps the order of fields.
func asJSON(t *testing.T, out *bytes.Buffer, node *yaml.Node) {
	t.Helper()
	switch node.Kind {
	case yaml.DocumentNode:
		asJSON(t, out, node.Content[0])
	case yaml.MappingNode:
		out.WriteByte('{')
		for i := 0; i < len(node.Content); i += 2 {
			out.WriteString(strings.Repeat(",", min(i, 1)))
			out.Write(encode(node.Content[i].Value))
			out.WriteByte(':')
			asJSON(t, out, node.Content[i+1])
		}
		out.WriteByte('}')
	case yaml.SequenceNode:
		out.WriteByte('[')
		for i, item := range node.Content {
			out.WriteString(strings.Repeat(",", min(i, 1)))
			asJSON(t, out, item)
		}
		out.WriteByte(']')
	case yaml.ScalarNode:
		var value any
		if err := node.Decode(&value); err != nil {
			t.Fatalf("line %d: %v", node.Line, err)
		}
		switch value.(type) {
		case nil, string, bool, int, int64:
		default:
			t.Fatalf("line %d: %q is a %T in YAML; put it in quotes", node.Line, node.Value, value)
		}
		out.Write(encode(value))
	default:
		t.Fatalf("line %d: anchors and aliases don't reach every tool; write it out", node.Line)
	}
}

func yamlAsJSON(t *testing.T, text []byte) string {
	t.Helper()
	var node yaml.Node
	var value any // refuses duplicate fields
	var compact, indent bytes.Buffer
	must(t, errors.Join(yaml.Unmarshal(text, &node), yaml.Unmarshal(text, &value)))
	asJSON(t, &compact, &node)
	must(t, json.Indent(&indent, compact.Bytes(), "", "  "))
	return indent.String() + "\n"
}

// TestJSON_IsTheYAML checks that both forms are the same document: OpenAPI 3.1.0, contract version 1.0.0.
func TestJSON_IsTheYAML(t *testing.T) {
	want := yamlAsJSON(t, []byte(yamlText))
	if *update {
		must(t, os.WriteFile("openapi.json", []byte(want), 0o644))
		return
	}
	if want != jsonText || !strings.Contains(want, `"openapi": "3.1.0"`) || !strings.Contains(want, `"version": "1.0.0"`) {
		t.Fatal("openapi.json is not what openapi.yaml says, or not of this version; generate it: go test ./httpapi/contract -update")
	}
}

// TestPublicURL checks that the URL is in every document, and that every file has its placeholder once.
func TestPublicURL(t *testing.T) {
	if strings.Count(yamlText, yamlServer) != 1 || strings.Count(jsonText, jsonServer) != 1 {
		t.Fatal("openapi.yaml or openapi.json has not just one server")
	}
	atAddress, atNone := testConfig("https://tasas.example/"), testConfig("")
	with, without := atAddress.documents(), atNone.documents()
	for i, document := range with {
		if !bytes.Contains(document.content().body.Plain(), []byte("https://tasas.example")) || bytes.Contains(document.content().body.Plain(), []byte("tasas.example//")) {
			t.Errorf("%s does not name the address, or with two slashes", document.path)
		}
		if bytes.Contains(document.content().body.Plain(), []byte(baseServer)) || bytes.Contains(without[i].content().body.Plain(), []byte(baseServer)) {
			t.Errorf("%s has %s left", document.path, baseServer)
		}
		if string(document.content().body.ETag()) == string(without[i].content().body.ETag()) {
			t.Errorf("%s: another body has the same tag", document.path)
		}
	}
	if yamlAsJSON(t, with[1].content().body.Plain()) != string(with[0].content().body.Plain()) {
		t.Error("with an address JSON and YAML differ")
	}
}

func testNow() time.Time { return time.Date(2026, time.January, 15, 12, 0, 0, 0, time.UTC) }

// testConfig is that of a node with the default quotas, which has announced nothing.
func testConfig(publicURL string) Config {
	return Config{
		PublicURL: publicURL, Limits: Limits{On: true, Day: 1000, Minute: 60}, KeysRequired: func() time.Time { return time.Time{} },
		Clock: testNow, Admit: func(*http.Request) (time.Duration, bool) { return 0, true },
	}
}

// TestDocuments_ThisNode: the documents say what holds on this node now: limits, and from when keys are required.
func TestDocuments_ThisNode(t *testing.T) {
	now, required := testNow(), testNow().Add(24*time.Hour)
	config := testConfig("")
	config.Limits, config.KeysRequired, config.Clock = Limits{On: true, Day: 25_000, Minute: 500}, func() time.Time { return required }, func() time.Time { return now }
	mux := http.NewServeMux()
	Register(mux, config)
	has := func(parts ...string) {
		t.Helper()
		for _, path := range []string{"/openapi.json", "/openapi.yaml"} {
			for _, part := range parts {
				if text := ask(mux, "GET", path).Body.String(); !strings.Contains(text, part) {
					t.Errorf("%s does not say %q", path, part)
				}
			}
		}
	}
	has("No key is needed until 2026-01-16T12:00:00Z", "25,000 requests a day", "and 500 in any 60 seconds")
	before := ask(mux, "GET", "/llms.txt")
	if text := before.Body.String(); !strings.Contains(text, "no key needed until 2026-01-16") || !strings.Contains(text, "25,000 requests a day and 500 in") {
		t.Error(text)
	}
	now = required
	has("Every request needs a key")
	if after := ask(mux, "GET", "/llms.txt"); !strings.Contains(after.Body.String(), "every request needs a key") || after.Header().Get("ETag") == before.Header().Get("ETag") {
		t.Error("the page for language models did not change")
	}
	config.Limits.On, mux = false, http.NewServeMux()
	Register(mux, config)
	has("This node has no limits")
}

func served(publicURL string) *http.ServeMux {
	mux := http.NewServeMux()
	Register(mux, testConfig(publicURL))
	return mux
}

func ask(mux *http.ServeMux, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return w
}

func paths() map[string]string {
	return map[string]string{
		"/openapi.json": "application/json", "/openapi.yaml": "application/yaml",
		"/llms.txt":                "text/plain; charset=utf-8",
		"/.well-known/api-catalog": `application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"`,
	}
}

// TestDocuments checks path, type, caching, CORS and links of each document. Golden files of package data hold what all
// files share: other methods, 304, 429.
func TestDocuments(t *testing.T) {
	mux := served("")
	links := []string{
		`</openapi.json>; rel="service-desc"; type="application/json"`, `</docs>; rel="service-doc"; type="text/html"`,
		`</.well-known/api-catalog>; rel="api-catalog"`,
	}
	for path, mediaType := range paths() {
		get, head := ask(mux, "GET", path), ask(mux, "HEAD", path+"?x=1")
		for _, w := range []*httptest.ResponseRecorder{get, head} {
			h := w.Header()
			if w.Code != 200 || h.Get("Content-Type") != mediaType || h.Get("Cache-Control") != "public, max-age=3600" ||
				h.Get("Access-Control-Allow-Origin") != "*" || !strings.HasPrefix(h.Get("ETag"), `W/"`) || h.Get("Content-Security-Policy") == "" {
				t.Errorf("%s: %d %v", path, w.Code, h)
			}
			if !slices.Equal(h.Values("Link"), links) {
				t.Errorf("%s: %q", path, h.Values("Link"))
			}
		}
		if get.Body.Len() < 400 {
			t.Errorf("%s has %d bytes", path, get.Body.Len())
		}
	}
}

func TestAddLinks(t *testing.T) {
	header := http.Header{"Link": {`</x>; rel="preload"`}}
	AddLinks(header)
	AddLinks(header)
	if got := header.Values("Link"); len(got) != 3 || got[0] != `</x>; rel="preload"` {
		t.Errorf("%q", got)
	}
}

// TestCatalog_RFC9727 checks the link set, with and without a public URL.
func TestCatalog_RFC9727(t *testing.T) {
	for _, base := range []string{"", "https://tasas.example"} {
		var catalog struct {
			Linkset []struct {
				Anchor      string
				Item        []struct{ Href string }
				ServiceDesc []struct{ Href, Type string } `json:"service-desc"`
				ServiceDoc  []struct{ Href, Type string } `json:"service-doc"`
				Status      []struct{ Href string }
			}
		}
		decoder := json.NewDecoder(ask(served(base), "GET", "/.well-known/api-catalog").Body)
		must(t, decoder.Decode(&catalog))
		got := strings.ReplaceAll(fmt.Sprint(catalog.Linkset), "{"+base+"/", "{/")
		want := "[{/.well-known/api-catalog [{/v1}] [] [] []} {/v1 [] [{/openapi.json application/json} {/openapi.yaml application/yaml}] " +
			"[{/docs text/html} {/llms.txt text/plain}] [{/readyz}]}]"
		if got != want {
			t.Errorf("%q: %s, want %s", base, got, want)
		}
	}
}

// TestModels checks the form of llmstxt.org (a title, a quotation, lists of links), and that all operations and
// documents are in it.
func TestModels(t *testing.T) {
	text := ask(served("https://tasas.example"), "GET", "/llms.txt").Body.String()
	lines := strings.Split(text, "\n")
	if !strings.HasPrefix(lines[0], "# ") || lines[1] != "" || !strings.HasPrefix(lines[2], "> ") || strings.Count(text, "\n# ") > 0 {
		t.Errorf("it begins with %q", lines[:3])
	}
	var document struct{ Paths map[string]any }
	must(t, json.Unmarshal([]byte(jsonText), &document))
	for path := range document.Paths {
		if strings.HasPrefix(path, "/v1/") && !strings.HasPrefix(path, "/v1/account/") && !strings.Contains(text, "GET "+path) {
			t.Errorf("%s is missing", path)
		}
	}
	for path := range paths() {
		if path != "/llms.txt" && !strings.Contains(text, "](https://tasas.example"+path+")") {
			t.Errorf("there is no link to %s", path)
		}
	}
}
