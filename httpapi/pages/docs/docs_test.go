package docs

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/contract"
	"github.com/tasard/tasard/httpapi/pages"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func now() time.Time { return time.Date(2026, 11, 21, 18, 5, 0, 0, time.UTC) }

// newDocs are the pages behind a mux, with the contract's limits.
func newDocs(change func(*Config)) *http.ServeMux {
	public := pages.New(pages.Config{Clock: now, Catalogue: engine.DefaultCatalogue()})
	config := Config{
		Frame: public.Frame(), PublicURL: "https://tasas.example.do/",
		Limits: Limits{On: true, Day: engine.DayLimitDefault, Minute: engine.MinuteLimitDefault},
	}
	if change != nil {
		change(&config)
	}
	mux := http.NewServeMux()
	public.Register(mux)
	New(config).Register(mux)
	return mux
}

func get(t *testing.T, mux http.Handler, path string, lines ...string) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.Host, request.RemoteAddr = "127.0.0.1:8080", "192.0.2.7:0"
	for i := 0; i < len(lines); i += 2 {
		if request.Header.Set(lines[i], lines[i+1]); lines[i] == "Host" {
			request.Host = lines[i+1]
		}
	}
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, request)
	return answer
}

var mainPattern = regexp.MustCompile(`(?s)<main[^>]*>\n(.*)\n</main>`)

// hold holds a page, without its frame, against a golden file.
func hold(t *testing.T, name string, answer *httptest.ResponseRecorder) {
	t.Helper()
	found := mainPattern.FindStringSubmatch(answer.Body.String())
	if answer.Code != http.StatusOK || found == nil {
		t.Fatalf("%s: %d\n%s", name, answer.Code, answer.Body)
	}
	text, file := found[1]+"\n", filepath.Join("testdata", name+".html")
	if *update {
		if err := os.MkdirAll("testdata", 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s differs; with -update it is rewritten. It is\n%s", file, text)
	}
}

// TestGolden: both pages in both languages.
func TestGolden(t *testing.T) {
	mux := newDocs(nil)
	for _, language := range pages.Languages() {
		hold(t, "guide."+string(language), get(t, mux, language.Path("/docs")))
		hold(t, "reference."+string(language), get(t, mux, language.Path("/docs/reference")))
	}
}

// TestGolden_Transition: the guide says what is announced, and what is in force (K6, K7).
func TestGolden_Transition(t *testing.T) {
	section := regexp.MustCompile(`(?s)<h2 id="trans.*?<h2`)
	for name, at := range map[string]time.Time{"announced": now().Add(20 * 24 * time.Hour), "required": now()} {
		for _, language := range pages.Languages() {
			answer := get(t, newDocs(func(c *Config) { c.KeysRequired = func() time.Time { return at } }), language.Path("/docs"))
			part := section.FindString(answer.Body.String())
			answer.Body.Reset()
			fmt.Fprintf(answer.Body, "<main>\n%s\n</main>", part)
			hold(t, name+"."+string(language), answer)
		}
	}
}

// TestLimits: the guide tells the node's own, and when there are none.
func TestLimits(t *testing.T) {
	own := get(t, newDocs(func(c *Config) { c.Limits = Limits{true, 20000, 7} }), "/en/docs").Body.String()
	if !strings.Contains(own, "20,000 requests a day of Santo Domingo, and 7 in any 60 seconds") {
		t.Error("the node's limits are not told")
	}
	off := get(t, newDocs(func(c *Config) { c.Limits.On = false }), "/docs").Body.String()
	if strings.Contains(off, "1,000 solicitudes") || !strings.Contains(off, "no aplica límites") {
		t.Error("limits are told that are off")
	}
}

// TestAddress: examples name the public address, else what the browser asked for, and never what a shell would read as more.
func TestAddress(t *testing.T) {
	for _, c := range []struct {
		public, host, want string
		secure             bool
	}{
		{"https://tasas.example.do/", "127.0.0.1:8080", "https://tasas.example.do", false},
		{"", "127.0.0.1:8080", "http://127.0.0.1:8080", false},
		{"", "Tasas.example.do", "https://tasas.example.do", true},
		{"", "[::1]:8080", "http://[::1]:8080", false},
		{"", "a';id;'", "http://localhost", false},
		{"", "$(id)", "http://localhost", false},
		{"", "a b", "http://localhost", false},
		{"", "", "http://localhost", false},
	} {
		mux := newDocs(func(config *Config) { config.PublicURL, config.Secure = c.public, c.secure })
		page := get(t, mux, "/docs", "Host", c.host).Body.String()
		if got := regexp.MustCompile(`Request\(&#34;(.*?)/v1/`).FindStringSubmatch(page); len(got) != 2 || got[1] != c.want {
			t.Errorf("%q, %q: %q, want %q", c.public, c.host, got, c.want)
		}
	}
	mux := newDocs(func(c *Config) { c.PublicURL = "" })
	first, second := get(t, mux, "/docs", "Host", "a.example").Body.String(), get(t, mux, "/docs", "Host", "b.example").Body.String()
	if !strings.Contains(first, "http://a.example/") || strings.Contains(second, "a.example") {
		t.Error("a page for one host is kept for another")
	}
}

// TestE1_Errors: the guide has every code of the closed list, each once.
func TestE1_Errors(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../../engine/service.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	ast.Inspect(file, func(node ast.Node) bool {
		if value, ok := node.(*ast.ValueSpec); ok {
			if name, ok := value.Type.(*ast.Ident); ok && name.Name == "Code" {
				code, err := strconv.Unquote(value.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, code)
			}
		}
		return true
	})
	for _, row := range refusals() {
		got = append(got, row.Codes...)
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) < 20 || !slices.Equal(want, got) {
		t.Errorf("the guide has %q,\nthe engine    %q", got, want)
	}
}

// TestOperations: the guide's table is the contract's.
func TestOperations(t *testing.T) {
	mux := http.NewServeMux()
	contract.New(contract.Config{}).Register(mux)
	var document struct {
		Paths      map[string]map[string]json.RawMessage
		Components struct{ Parameters map[string]parameter }
	}
	if err := json.Unmarshal(get(t, mux, "/openapi.json").Body.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for path, methods := range document.Paths {
		var operation struct{ Parameters []parameter }
		if methods["get"] == nil || !strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/v1/account/") {
			continue
		}
		if err := json.Unmarshal(methods["get"], &operation); err != nil {
			t.Fatal(err)
		}
		var needs, takes []string
		for _, p := range operation.Parameters {
			if p.Ref != "" {
				p = document.Components.Parameters[p.Ref[strings.LastIndexByte(p.Ref, '/')+1:]]
			}
			switch {
			case p.In != "query":
			case p.Required:
				needs = append(needs, p.Name)
			default:
				takes = append(takes, p.Name)
			}
		}
		want[path] = row(needs, takes)
	}
	got := map[string]string{}
	for _, op := range operations() {
		got[op.Path] = row(op.Needs, op.Takes)
	}
	if len(want) == 0 || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the guide has %v,\nthe contract  %v", got, want)
	}
}

type parameter struct {
	Ref      string `json:"$ref"`
	Name, In string
	Required bool
}

func row(needs, takes []string) string {
	needs, takes = slices.Sorted(slices.Values(needs)), slices.Sorted(slices.Values(takes))
	return strings.Join(needs, " ") + " / " + strings.Join(takes, " ")
}

// TestPolicy: both pages are under the policy of all pages; the reference may show the pictures that its style has in it.
func TestPolicy(t *testing.T) {
	mux := newDocs(nil)
	if got := get(t, mux, "/docs").Header().Get("Content-Security-Policy"); got != pages.Policy {
		t.Errorf("the guide: %s", got)
	}
	got := get(t, mux, "/docs/reference").Header().Get("Content-Security-Policy")
	if strings.Replace(got, " data:", "", 1) != pages.Policy || !strings.Contains(got, "img-src 'self' data:;") {
		t.Errorf("the reference: %s", got)
	}
}

// TestVendored: what is embedded of Swagger UI is what its makers published, and it is served with and without gzip.
func TestVendored(t *testing.T) {
	sums := string(read("vendored/SHA256SUMS"))
	page := get(t, newDocs(nil), "/docs/reference").Body.String()
	for _, name := range []string{swaggerScript, swaggerStyle} {
		reader, err := gzip.NewReader(bytes.NewReader(read("vendored/" + name + ".gz")))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		if digest := sha256.Sum256(plain); !strings.Contains(sums, hex.EncodeToString(digest[:])+"  "+name+"\n") {
			t.Errorf("%s is not what SHA256SUMS says", name)
		}
		stem, extension, _ := strings.Cut(name, ".")
		path := regexp.MustCompile(`/assets/` + stem + `\.[0-9a-f]+\.` + extension).FindString(page)
		packed := get(t, newDocs(nil), path, "Accept-Encoding", "gzip")
		if packed.Header().Get("Content-Encoding") != "gzip" || !bytes.Equal(packed.Body.Bytes(), read("vendored/"+name+".gz")) || !strings.Contains(packed.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s with gzip: %d %v", path, packed.Code, packed.Header())
		}
		if whole := get(t, newDocs(nil), path); whole.Header().Get("Content-Encoding") != "" || !bytes.Equal(whole.Body.Bytes(), plain) {
			t.Errorf("%s without gzip: %d %v", path, whole.Code, whole.Header())
		}
	}
	for _, licence := range []string{"LICENSE", "NOTICE", "swagger-ui-bundle.js.LICENSE.txt"} {
		if len(read("vendored/"+licence)) == 0 {
			t.Errorf("%s is empty", licence)
		}
	}
}

// TestReference_KeepsNoKey: nothing that is typed outlives the page, and requests go to this server.
func TestReference_KeepsNoKey(t *testing.T) {
	script := string(read("files/" + referenceScript))
	for _, want := range []string{"persistAuthorization: false", "contract.servers = [{ url: location.origin }]", "validatorUrl: null"} {
		if !strings.Contains(script, want) {
			t.Errorf("the script lacks %s", want)
		}
	}
	for _, name := range []string{"localStorage", "sessionStorage", "document.cookie", "https://"} {
		if strings.Contains(script, name) {
			t.Errorf("the script has %s", name)
		}
	}
}
