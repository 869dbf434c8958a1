package core

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tasard/tasard/httpapi"
)

// TestSite_Q8: paths match exactly, and nothing is sent on to another path.
func TestSite_Q8(t *testing.T) {
	mux := http.NewServeMux()
	s := &site{func() (*http.ServeMux, http.Handler) { return mux, http.NotFoundHandler() }}
	page := func(http.ResponseWriter, *http.Request) {}
	for _, pattern := range []string{"GET /{$}", "GET /institutions/{id}", "POST /account/codes", "GET /openapi.json"} {
		mux.HandleFunc(pattern, page)
	}
	for path, want := range map[string]bool{
		"/": true, "/institutions/bhd": true, "/account/codes": true, "/openapi.json": true, "/institutions/b%20d": true,
		"//": false, "/institutions": false, "/institutions/": false, "/institutions/bhd/": false, "/institutions/a/../b": false,
		"/OpenAPI.json": false, "/openapi.json/": false, "/%zz": false, "/openapi.jso%6E": false, "/account/%63odes": false, "*": false, "": false, "/nothing": false,
	} {
		if got := s.Has(path, "*/*"); got != want {
			t.Errorf("%q: %v, want %v", path, got, want)
		}
		if !s.Has(path, "text/html,application/xhtml+xml") {
			t.Errorf("%q: a browser gets no page", path)
		}
	}
}

// TestS14_AccessLog: whatever text an answer contains, its line is one line of JSON with that text.
func TestS14_AccessLog(t *testing.T) {
	for _, text := range []string{"", "\"", "\n{\"level\":\"ERROR\"}", "\r", "\x1b[2J", "\u2028", "\xff", "a=b c", "\x00"} {
		var out bytes.Buffer
		tell := accessLog(&out)
		tell(httpapi.AccessRecord{RequestID: "i" + text, At: time.Unix(0, 0), Route: "r" + text, Method: "m" + text, Status: 500, Network: "n" + text})
		line, last := strings.CutSuffix(out.String(), "\n")
		if !last || strings.ContainsFunc(line, func(r rune) bool { return r == '\u2028' || r == '\u2029' || r < ' ' }) {
			t.Errorf("more or less than one plain line: %q", out.String())
		}
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Errorf("%v: %q", err, line)
		}
		for name, want := range map[string]string{"requestId": "i", "route": "r", "method": "m", "network": "n"} {
			if got, _ := fields[name].(string); utf8.ValidString(text) && got != want+text || !strings.HasPrefix(got, want) {
				t.Errorf("%s is %q, want %q", name, got, want+text)
			}
		}
		if fields["level"] != "INFO" || fields["msg"] != "access" || len(fields) != 11 {
			t.Errorf("the line says something else: %q", line)
		}
	}
}
