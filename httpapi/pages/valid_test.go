package pages_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/tasard/tasard/httpapi/data"
	"github.com/tasard/tasard/httpapi/pages"
)

func nodes(t testing.TB, text string) []*html.Node {
	t.Helper()
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var all []*html.Node
	for node := range root.Descendants() {
		if node.Type == html.ElementNode {
			all = append(all, node)
		}
	}
	return all
}

func attribute(node *html.Node, key string) (string, bool) {
	for _, a := range node.Attr {
		if a.Key == key {
			return a.Val, true
		}
	}
	return "", false
}

// problemsOf checks the HTML of a page. That nothing is loaded from other sites is ensured by its policy; labels, names
// and roles are checked in a browser (make pages-test).
func problemsOf(all []*html.Node, language string) []string {
	var problems []string
	report := func(what ...string) { problems = append(problems, strings.Join(what, " ")) }
	count, ids := map[string]int{}, map[string]bool{}
	for _, node := range all {
		count[node.Data]++
		if id, ok := attribute(node, "id"); ok {
			if ids[id] {
				report("the id", id, "stands twice")
			}
			ids[id] = true
		}
		if source, _ := attribute(node, "src"); node.Data == "script" && (source == "" || node.FirstChild != nil) {
			report("an inline script")
		}
		for _, a := range node.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
				report(node.Data, "has the inline attribute", a.Key)
			}
			if strings.Contains(a.Val, "ZgotmplZ") || strings.HasPrefix(strings.ToLower(strings.TrimSpace(a.Val)), "javascript:") {
				report(node.Data, "has a dangerous", a.Key, a.Val)
			}
		}
	}
	for element, want := range map[string]int{"h1": 1, "main": 1, "title": 1, "style": 0, "iframe": 0, "header": 1, "footer": 1} {
		if count[element] != want && !(want == 1 && count["base"] == 1 && (element == "header" || element == "footer")) { // a card has no frame
			report("there are not as many as there should be of", element)
		}
	}
	if got, _ := attribute(all[0], "lang"); got != language {
		report("the language is", got)
	}
	return problems
}

// mustBeValid checks an answer if it is a page.
func mustBeValid(t *testing.T, path string, answer *httptest.ResponseRecorder) {
	t.Helper()
	if !strings.HasPrefix(answer.Header().Get("Content-Type"), "text/html") {
		return
	}
	language := "es"
	if strings.HasPrefix(path, "/en") {
		language = "en"
	}
	for _, problem := range problemsOf(nodes(t, answer.Body.String()), language) {
		t.Errorf("%s: %s", path, problem)
	}
}

// TestPages_ControlValid checks that broken pages are found.
func TestPages_ControlValid(t *testing.T) {
	bad := nodes(t, `<html lang="xx"><body onload="x"><h1>a</h1><h1>b</h1><p id="i"></p><p id="i" style="x"></p><script>1</script><a href="javascript:x"></a>`)
	got := strings.Join(problemsOf(bad, "es"), "\n")
	mustContain(t, got, "inline attribute onload", "inline attribute style", "id i stands twice", "of h1", "language is xx", "an inline script", "dangerous href")
}

// TestPages_LinksLead checks that internal links and their fragments exist, in the same language.
func TestPages_LinksLead(t *testing.T) {
	w := newFakeService(t)
	mux := http.NewServeMux()
	pages.New(w.config()).Register(mux)
	data.Register(mux, data.Config{
		Service: w, Catalogue: w.catalogue, Clock: func() time.Time { return w.now }, Admit: func(*http.Request) (time.Duration, bool) { return 0, true },
	})
	h := http.Handler(mux)
	ids := map[string]map[string]bool{}
	queue, seen := []string{"/", "/en"}, map[string]bool{}
	for len(queue) > 0 && len(seen) < 500 {
		at := queue[0]
		queue = queue[1:]
		if seen[at] {
			continue
		}
		seen[at], w.now = true, w.now.Add(time.Second) // because of the limits
		answer := get(t, h, at)
		if answer.Code != http.StatusOK {
			t.Errorf("%s: %d", at, answer.Code)
			continue
		}
		if !strings.HasPrefix(answer.Header().Get("Content-Type"), "text/html") {
			continue
		}
		mustBeValid(t, at, answer)
		ids[at] = map[string]bool{}
		all := nodes(t, answer.Body.String())
		for _, node := range all {
			id, _ := attribute(node, "id")
			ids[at][id] = true
		}
		for _, node := range all {
			target, _ := attribute(node, "href")
			to, err := url.Parse(target)
			if err != nil {
				t.Errorf("%s: %q: %v", at, target, err)
				continue
			}
			if node.Data != "a" || to.Host != "" || strings.Contains(to.Path, "/docs") || strings.Contains(to.Path, "/account") {
				continue
			}
			_, other := attribute(node, "hreflang")
			if english := strings.HasPrefix(to.Path, "/en"); to.Path != "" && !strings.HasPrefix(to.Path, "/data/") && !strings.HasPrefix(to.Path, "/feeds/") && english != strings.HasPrefix(at, "/en") && !other {
				t.Errorf("%s: %s leads to the other language", at, target)
			}
			fragment := to.Fragment
			if to.Fragment = ""; to.String() == "" {
				if !ids[at][fragment] {
					t.Errorf("%s: nothing is called %s", at, fragment)
				}
				continue
			}
			queue = append(queue, to.String())
		}
	}
	if len(seen) < 60 {
		t.Errorf("only %d pages were found: %v", len(seen), seen)
	}
}
