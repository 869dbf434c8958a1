package cmd

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"testing"
)

// operations are requests of all seven data operations, with every kind of answer that real observations lead to.
func operations() []string {
	return []string{
		"/v1/currencies",
		"/v1/institutions?limit=200",
		"/v1/institutions?currency=EUR",
		"/v1/institutions/popular",
		"/v1/institutions/bcrd",
		"/v1/rates?limit=200",
		"/v1/rates?currency=USD&institution=scotiabank&kind=commercial",
		"/v1/rates/best?currency=USD&operation=buy&limit=200",
		"/v1/rates/best?currency=EUR&operation=sell&limit=200",
		"/v1/rates/best?currency=USD&operation=buy&channel=digital",
		"/v1/convert?currency=USD&operation=sell&amount=1234.56&limit=200",
		"/v1/convert?currency=USD&operation=buy&amount=0.01&institution=popular",
		"/v1/rates/history?from=2026-06-01&to=2026-06-30&currency=USD&limit=200",
		"/v1/rates/history?from=2025-07-01&to=2026-06-30&institution=bhd&limit=200",
	}
}

// answers are the bodies of all operations, and of every page of a year of history, without the moment at which they
// were cut.
func answers(p *program) map[string]string {
	p.t.Helper()
	all := map[string]string{}
	for _, path := range operations() {
		all[path] = withoutMoment(p.mustGet(path))
	}
	for cursor := 0; ; {
		path := fmt.Sprintf("/v1/rates/history?from=2025-07-01&to=2026-06-30&limit=200&cursor=%d", cursor)
		body := p.mustGet(path)
		all[path] = withoutMoment(body)
		var page struct {
			Meta struct {
				NextCursor *int `json:"nextCursor"`
			} `json:"meta"`
		}
		if err := json.Unmarshal([]byte(body), &page); err != nil {
			p.t.Fatalf("GET %s: %v", path, err)
		}
		if page.Meta.NextCursor == nil {
			return all
		}
		cursor = *page.Meta.NextCursor
	}
}

func withoutMoment(body string) string {
	return regexp.MustCompile(`"generatedAt":"[^"]*"`).ReplaceAllString(body, `"generatedAt":""`)
}

// sameAnswers fails when a question is answered differently; it shows the first ones.
func sameAnswers(t *testing.T, got, want map[string]string) {
	t.Helper()
	paths := differences(got, want)
	for _, path := range paths[:min(3, len(paths))] {
		at := firstDifference(got[path], want[path])
		t.Errorf("GET %s\nhas %s\nhad %s", path, around(got[path], at), around(want[path], at))
	}
	if len(paths) > 3 {
		t.Errorf("and %d more are answered differently", len(paths)-3)
	}
}

func firstDifference(a, b string) int {
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	return at
}

func around(text string, at int) string {
	return text[max(0, at-400):min(len(text), at+100)]
}

// differences names the questions that are answered differently.
func differences(got, want map[string]string) []string {
	var paths []string
	for path, body := range want {
		if got[path] != body {
			paths = append(paths, path)
		}
	}
	for path := range got {
		if _, asked := want[path]; !asked {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}
