package docs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/contract"
	"github.com/tasard/tasard/httpapi/pages"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func now() time.Time { return time.Date(2026, 11, 21, 18, 5, 0, 0, time.UTC) }

// newDocs returns a mux with the pages, with the quotas of the contract.
func newDocs(change func(*Config)) *http.ServeMux {
	return newDocsAt("https://tasas.example.do/", false, change)
}

// newDocsAt is newDocs for a site with a public URL, or over https.
func newDocsAt(publicURL string, secure bool, change func(*Config)) *http.ServeMux {
	public := pages.New(pages.Config{Clock: now, Catalogue: engine.DefaultCatalogue(), PublicURL: publicURL, Secure: secure})
	config := Config{
		Frame:  public.Frame(),
		Limits: Limits{On: true, Day: account.DayLimitDefault, Minute: account.MinuteLimitDefault},
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

var mainPattern = regexp.MustCompile(`(?s)<main[^>]*>(.*)</main>`)

func compareGolden(t *testing.T, name string, part *regexp.Regexp, answer *httptest.ResponseRecorder) {
	t.Helper()
	found := part.FindStringSubmatch(answer.Body.String())
	if answer.Code != http.StatusOK || found == nil {
		t.Fatalf("%s: %d %.200s", name, answer.Code, answer.Body)
	}
	text, file := strings.ReplaceAll(found[1], "><", ">\n<")+"\n", filepath.Join("testdata", name+".html")
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || text != string(want) {
		t.Errorf("%s differs (%v); with -update it is rewritten. It is\n%s", file, err, text)
	}
}

// TestGolden shows both pages in both languages, and the sections that depend on the node.
func TestGolden(t *testing.T) {
	mux, days := newDocs(nil), 24*time.Hour
	transition, limits := regexp.MustCompile(`(?s)(<h2 id="trans.*?<h2)`), regexp.MustCompile(`(?s)(<h2 id="limit.*?<h2)`)
	for _, language := range pages.Languages() {
		compareGolden(t, "guide."+string(language), mainPattern, get(t, mux, language.Path("/docs")))
		compareGolden(t, "reference."+string(language), mainPattern, get(t, mux, language.Path("/docs/reference")))
		for name, state := range map[string]struct {
			part   *regexp.Regexp
			change func(c *Config)
		}{
			"announced":  {transition, func(c *Config) { c.KeysRequired = func() time.Time { return now().Add(20 * days) } }},
			"required":   {transition, func(c *Config) { c.KeysRequired = now }},
			"limits-own": {limits, func(c *Config) { c.Limits = Limits{true, 20000, 7} }},
			"limits-off": {limits, func(c *Config) { c.Limits.On = false }},
		} {
			compareGolden(t, name+"."+string(language), state.part, get(t, newDocs(state.change), language.Path("/docs")))
		}
	}
}

// TestAddress checks the URL in examples, and that a bad host is not shown.
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
		mux := newDocsAt(c.public, c.secure, nil)
		page := get(t, mux, "/docs", "Host", c.host).Body.String()
		if got := regexp.MustCompile(`Request\(&#34;(.*?)/v1/`).FindStringSubmatch(page); len(got) != 2 || got[1] != c.want {
			t.Errorf("%q, %q: %q, want %q", c.public, c.host, got, c.want)
		}
	}
	mux := newDocsAt("", false, nil)
	first, second := get(t, mux, "/docs", "Host", "a.example").Body.String(), get(t, mux, "/docs", "Host", "b.example").Body.String()
	if !strings.Contains(first, "http://a.example/") || strings.Contains(second, "a.example") {
		t.Error("a page for one host is kept for another")
	}
}

// TestE1_Errors checks that the guide has every error code once, in both languages.
func TestE1_Errors(t *testing.T) {
	text, err := os.ReadFile("../../../engine/service.go")
	if err != nil {
		t.Fatal(err)
	}
	want := found(regexp.MustCompile(`(?m)^\tCode\w+ +Code += "(\w+)"`), string(text))
	slices.Sort(want)
	for _, language := range pages.Languages() {
		page := get(t, newDocs(nil), language.Path("/docs")).Body.String()
		_, table, _ := strings.Cut(page, `<code>error.code</code></th>`)
		got := found(regexp.MustCompile(`<code>(\w+)</code>`), strings.Split(table, "</table>")[0])
		if slices.Sort(got); len(want) < 20 || !slices.Equal(want, got) {
			t.Errorf("%s: the guide has %q,\nthe engine    %q", language, got, want)
		}
	}
}

// found returns what the group of a pattern matches.
func found(pattern *regexp.Regexp, text string) (all []string) {
	for _, match := range pattern.FindAllStringSubmatch(text, -1) {
		all = append(all, match[1])
	}
	return all
}

// TestAnswer checks that the example is a golden answer, and that every field of it is explained, in its order.
func TestAnswer(t *testing.T) {
	whole, want, part := string(read("files/answer.json")), []string(nil), ""
	for _, line := range regexp.MustCompile(`(?m)^( *)"(\w+)":`).FindAllStringSubmatch(whole, -1) {
		if name := line[2]; len(line[1]) > 2 {
			want = append(want, part+"."+name)
		} else if part = name; name != "meta" {
			want = append(want, name)
		}
	}
	for _, language := range pages.Languages() {
		page := get(t, newDocs(nil), language.Path("/docs")).Body.String()
		if got := found(regexp.MustCompile(`<th scope="row"><code>([\w.]+)</code>`), page); !slices.Equal(got, want) {
			t.Errorf("%s: the guide explains %q,\nthe example has     %q", language, got, want)
		}
	}
	golden, err := os.ReadFile("../../testdata/document/best-200.http")
	if err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(whole)); err != nil || !strings.HasSuffix(strings.TrimSpace(string(golden)), "\n"+compact.String()) {
		t.Errorf("the example is not the golden answer (%v)", err)
	}
}

// TestOperations compares the table of operations with the contract.
func TestOperations(t *testing.T) {
	mux := http.NewServeMux()
	contract.Register(mux, contract.Config{
		KeysRequired: func() time.Time { return time.Time{} }, Admit: func(*http.Request) (time.Duration, bool) { return 0, true },
	})
	type parameter struct {
		Ref      string `json:"$ref"`
		Name, In string
		Required bool
	}
	var document struct {
		Paths map[string]struct {
			Get *struct{ Parameters []parameter }
		}
		Components struct{ Parameters map[string]parameter }
	}
	if err := json.Unmarshal(get(t, mux, "/openapi.json").Body.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	var want []string
	for path, methods := range document.Paths {
		if methods.Get == nil || !strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/v1/account/") {
			continue
		}
		want = append(want, path)
		for _, p := range methods.Get.Parameters {
			if p.Ref != "" {
				p = document.Components.Parameters[p.Ref[strings.LastIndexByte(p.Ref, '/')+1:]]
			}
			if p.In == "query" {
				want = append(want, fmt.Sprint(path, " ", p.Name, " ", p.Required))
			}
		}
	}
	slices.Sort(want)
	row := regexp.MustCompile(`<tr><th scope="row"><a href="[^"]*"><code>(\S+)</code></a></th><td>[^<]*</td><td>(.*)</td></tr>`)
	for _, language := range pages.Languages() {
		var got []string
		for _, operation := range row.FindAllStringSubmatch(get(t, newDocs(nil), language.Path("/docs")).Body.String(), -1) {
			got = append(got, operation[1])
			for _, name := range regexp.MustCompile(`(<strong>)?<code>(\w+)</code>`).FindAllStringSubmatch(operation[2], -1) {
				got = append(got, fmt.Sprint(operation[1], " ", name[2], " ", name[1] != ""))
			}
		}
		if slices.Sort(got); len(want) < 20 || !slices.Equal(got, want) {
			t.Errorf("%s: the guide has %q,\nthe contract  %q", language, got, want)
		}
	}
}

// TestVendored checks that Swagger UI is served as published.
func TestVendored(t *testing.T) {
	sums, mux := string(read("vendored/SHA256SUMS")), newDocs(nil)
	page := get(t, mux, "/docs/reference").Body.String()
	for _, name := range []string{swaggerScript, swaggerStyle} {
		stem, extension, _ := strings.Cut(name, ".")
		path := regexp.MustCompile(`/assets/` + stem + `\.[0-9a-f]+\.` + extension).FindString(page)
		plain := get(t, mux, path)
		if digest := sha256.Sum256(plain.Body.Bytes()); !strings.Contains(sums, hex.EncodeToString(digest[:])+"  "+name+"\n") || plain.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s is not what SHA256SUMS says: %d %v", path, plain.Code, plain.Header())
		}
	}
	for _, licence := range []string{"LICENSE", "NOTICE", "swagger-ui-bundle.js.LICENSE.txt"} {
		if len(read("vendored/"+licence)) == 0 {
			t.Errorf("%s is empty", licence)
		}
	}
}

// TestReference_KeepsNoKey checks that the script stores nothing and sends requests only to this server.
func TestReference_KeepsNoKey(t *testing.T) {
	script := string(read("files/" + referenceScript))
	for text, want := range map[string]bool{
		"persistAuthorization: false": true, "contract.servers = [{ url: location.origin }]": true, "validatorUrl: null": true,
		"localStorage": false, "sessionStorage": false, "document.cookie": false, "https://": false,
	} {
		if strings.Contains(script, text) != want {
			t.Errorf("the script has %q: %v", text, !want)
		}
	}
}
