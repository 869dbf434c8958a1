package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/httpapi/apitest"
	"github.com/tasard/tasard/httpapi/client"
)

// checkContract checks rules of the contract at a server with rates, by comparing its answers with each other. Tests
// of packages engine and httpapi, and their golden files, hold the other rules. A limited server has quotas.
func checkContract(t *testing.T, c caller, limited bool) {
	t.Helper()
	rules := map[string]func(t *testing.T, c caller){
		"P1 P2 the pages make up the list whatever the limit, and total counts it":  checkPages,
		"P9 T8 T9 what nothing matches is an empty list":                            checkNothingMatches,
		"P10 T1 T4 ids, stale and times of rates":                                   checkRates,
		"Q5 Q6 HEAD is GET without its body, OPTIONS is 204, other methods are 405": checkMethods,
		"K9 there are no events":                                                    checkNoEvents,
	}
	if limited {
		rules["L3 L6 what counts as one request, and what as none"] = checkCosts
	}
	for name, check := range rules {
		t.Run(name, func(t *testing.T) {
			c.t = t
			check(t, c)
		})
	}
}

// list is a page of a list.
type list struct {
	Data []json.RawMessage
	Meta struct {
		Total       int
		NextCursor  *int
		GeneratedAt time.Time
	}
}

// list requests a page; pairs alternates names and values of parameters.
func (c caller) list(target string, pairs ...any) list {
	c.t.Helper()
	for i := 0; i+1 < len(pairs); i += 2 {
		separator := "?"
		if strings.Contains(target, "?") {
			separator = "&"
		}
		target += fmt.Sprintf("%s%v=%v", separator, pairs[i], pairs[i+1])
	}
	return asJSON[list](c.t, c.must("GET", target, "", http.StatusOK, "").body)
}

// listPaths are the lists that have pages.
func listPaths() []string {
	return []string{
		"/v1/institutions", "/v1/rates", "/v1/rates?currency=USD", "/v1/rates/best?operation=buy&currency=USD",
		"/v1/convert?operation=sell&amount=1&currency=USD", "/v1/rates/history",
	}
}

// walk returns the items of all pages.
func (c caller) walk(target string, limit int) (items []string) {
	c.t.Helper()
	for cursor := 0; ; {
		page := c.list(target, "limit", limit, "cursor", cursor)
		for _, item := range page.Data {
			items = append(items, string(item))
		}
		if page.Meta.NextCursor == nil {
			return items
		}
		if *page.Meta.NextCursor != len(items) || len(page.Data) == 0 {
			c.t.Fatalf("%s: after %d items nextCursor is %d", target, len(items), *page.Meta.NextCursor)
		}
		cursor = len(items)
	}
}

func checkPages(t *testing.T, c caller) {
	for _, target := range listPaths() {
		want := c.walk(target, 200)
		if len(want) < 4 {
			t.Errorf("GET %s: %d items are too few for pages", target, len(want))
		}
		for _, limit := range []int{3, max(1, len(want)/2)} {
			if got := c.walk(target, limit); !slices.Equal(got, want) {
				t.Errorf("GET %s: %d items with limit %d, %d with limit 200, or they differ", target, len(got), limit, len(want))
			}
		}
		for _, cursor := range []int{1, len(want), len(want) + 1, 100_000} {
			page := c.list(target, "cursor", cursor, "limit", 1)
			if cursor >= len(want) && (len(page.Data) != 0 || page.Meta.NextCursor != nil) || page.Meta.Total != len(want) {
				t.Errorf("GET %s from %d: %d items, total %d of %d, nextCursor %v", target, cursor, len(page.Data), page.Meta.Total, len(want), page.Meta.NextCursor)
			}
		}
	}
}

func checkNothingMatches(t *testing.T, c caller) {
	for _, target := range []string{
		"/v1/rates?currency=XXX", "/v1/rates?institution=no-such-bank", "/v1/institutions?currency=XXX", "/v1/rates/best?currency=XXX&operation=buy",
		"/v1/rates/history?institution=no-such-bank", "/v1/rates/history?from=2024-01-02&to=2025-01-01", // 365 days before the first row
		"/v1/rates/history?from=2099-01-01&to=2099-01-02", "/v1/convert?currency=XXX&operation=sell&amount=1",
	} {
		if page := c.list(target); len(page.Data) != 0 || page.Meta.Total != 0 || page.Meta.NextCursor != nil {
			t.Errorf("GET %s: %d items, total %d", target, len(page.Data), page.Meta.Total)
		}
	}
}

func checkRates(t *testing.T, c caller) {
	page := c.list("/v1/rates", "limit", 200)
	for _, item := range page.Data {
		r := asJSON[client.Rate](t, string(item))
		if want := strings.Join([]string{r.InstitutionID, r.Currency, string(r.Channel), string(r.Kind)}, ":"); r.ID != want {
			t.Errorf("a rate has the id %q, want %q", r.ID, want)
		}
		now := page.Meta.GeneratedAt // rounded down to whole seconds
		if r.Stale && !now.Add(time.Second).After(r.ExpiresAt) || !r.Stale && !now.Before(r.ExpiresAt) {
			t.Errorf("%s: stale is %v at %s, it expires %s", r.ID, r.Stale, now, r.ExpiresAt)
		}
		if r.CollectedAt.IsZero() || r.LastCheckedAt.Before(r.CollectedAt) {
			t.Errorf("%s: collected %s, last checked %s", r.ID, r.CollectedAt, r.LastCheckedAt)
		}
	}
}

func checkMethods(t *testing.T, c caller) {
	for _, target := range append(listPaths(), "/v1/currencies", "/v1/institutions/popular") {
		get, head := c.must("GET", target, "", http.StatusOK, ""), c.must("HEAD", target, "", http.StatusOK, "")
		if head.body != "" || head.header.Get("ETag") != get.header.Get("ETag") || head.number(t, "Content-Length") != len(get.body) {
			t.Errorf("HEAD %s with %v", target, head.header)
		}
		options := c.must("OPTIONS", target, "", http.StatusNoContent, "").header
		if options.Get("Allow") != "GET, HEAD, OPTIONS" || options.Get("Access-Control-Allow-Methods") == "" {
			t.Errorf("OPTIONS %s with %v", target, options)
		}
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
			got := c.must(method, target, "", http.StatusMethodNotAllowed, "method_not_allowed")
			if !strings.HasPrefix(got.header.Get("Allow"), "GET, HEAD") {
				t.Errorf("%s %s: Allow is %q", method, target, got.header.Get("Allow"))
			}
		}
	}
}

func checkCosts(t *testing.T, c caller) {
	left := func() int {
		return c.must("GET", countedPath, "", http.StatusOK, "").number(t, "X-RateLimit-Remaining")
	}
	for request, want := range map[string][2]int{ // status, requests
		"GET /v1/rates": {200, 1}, "HEAD /v1/rates": {200, 1}, "GET /v1/rates?limit=0": {400, 1}, "GET /v1/institutions/no-such-bank": {404, 1},
		"GET /v1/nothing": {404, 0}, "POST /v1/rates": {405, 0}, "OPTIONS /v1/rates": {204, 0},
	} {
		method, target, _ := strings.Cut(request, " ")
		before := left()
		c.must(method, target, "", want[0], "")
		if spent := before - left(); spent != want[1]+1 {
			t.Errorf("%s (%d) costs %d requests, want %d", request, want[0], spent-1, want[1])
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.node.URL+"/v1/rates", nil)
	noError(t, err)
	request.Header.Set("If-None-Match", "*")
	before := left()
	answer, err := http.DefaultClient.Do(request) //nolint:forbidigo // loopback; the test has a deadline
	noError(t, err)
	if _ = answer.Body.Close(); answer.StatusCode != http.StatusNotModified || before-left() != 2 {
		t.Errorf("a 304: status %d, or it does not cost one request", answer.StatusCode)
	}
}

func checkNoEvents(_ *testing.T, c caller) {
	for _, target := range []string{"/v1/events", "/v1/webhooks", "/v1/notifications", "/v1/rates/stream"} {
		c.must("GET", target, "", http.StatusNotFound, "not_found")
	}
}

// TestContract_Node checks a node with limits.
func TestContract_Node(t *testing.T) {
	t.Parallel()
	lines := []string{observation(1, "57.50", "60.85")}
	for i, institution := range []string{"bhd", "scotiabank", "banreservas", "caribe", "vimenca"} {
		lines = append(lines, fmt.Sprintf("2026-06-30T14:%02d:00Z,%s,USD,,,58.%d0,59.%d0,%s-site,,\n", i, institution, i, i/2, institution))
	}
	args := serveArgs(t.TempDir(), "--limits", "on", "--quota-minute", "60000", "--quota-day", "100000")
	checkContract(t, caller{t: t, node: startImported(t, args, lines...)}, true)
}

// TestContract_Client leads an e-mail address to a key, with the Go client (decision K1).
func TestContract_Client(t *testing.T) {
	t.Parallel()
	const email = "ana@example.com"
	srv := apitest.Start(t, apitest.Seed("standard"))
	c, err := client.New(client.Config{BaseURL: srv.URL, HTTPClient: srv.Client, Retries: client.NoRetries})
	noError(t, err)
	_, err = c.RequestCode(t.Context(), email)
	noError(t, err)
	session, err := c.SignIn(t.Context(), email, srv.Code(email))
	noError(t, err)
	key, err := c.CreateKey(t.Context(), session.Token, "kit")
	noError(t, err)
	keys, err := c.Keys(t.Context(), session.Token)
	if err != nil || len(keys) != 1 || keys[0].ID != key.ID || keys[0].Status != "active" || !strings.HasSuffix(key.Secret, keys[0].Hint) {
		t.Errorf("the keys are %+v, %v", keys, err)
	}
	_, err = c.Usage(t.Context(), key.Secret)
	noError(t, errors.Join(err, c.RevokeKey(t.Context(), session.Token, key.ID), c.SignOut(t.Context(), session.Token)))
	for secret, code := range map[string]string{key.Secret: client.CodeRevokedKey, session.Token: client.CodeInvalidSession} {
		_, err = c.Usage(t.Context(), secret)
		if refused := (*client.Error)(nil); !errors.As(err, &refused) || refused.Status != http.StatusUnauthorized || refused.Code != code {
			t.Errorf("got %v, want %s", err, code)
		}
	}
}

// TestSite_QuickStarts takes each program out of the guide and runs it against the node, as it is and with a mistake
// in it: the Go one, and with QUICKSTARTS=all, as make contract asks, those in other languages.
func TestSite_QuickStarts(t *testing.T) {
	t.Parallel()
	node := startImported(t, serveArgs(t.TempDir()), observation(5, "57.50", "60.85"))
	programs := map[string]string{}
	for _, found := range regexp.MustCompile(`(?s)<code id="snippet-(\w+)">(.*?)</code>`).FindAllStringSubmatch(node.mustGet("/docs"), -1) {
		programs[found[1]] = html.UnescapeString(found[2])
	}
	runs := map[string]struct {
		file string
		args []string
	}{
		"curl":       {"best.sh", []string{"sh"}},
		"go":         {"rates.go", []string{"go", "run"}},
		"javascript": {"rates.mjs", []string{"node"}},
		"python":     {"rates.py", []string{"python3"}},
		"php":        {"rates.php", []string{"php"}},
	}
	if len(programs) != len(runs) {
		t.Errorf("the guide has %d programs, run are %d", len(programs), len(runs))
	}
	for name, run := range runs {
		t.Run(name, func(t *testing.T) {
			text := programs[name]
			if os.Getenv("QUICKSTARTS") != "all" && name != "go" {
				if !strings.Contains(text, "currency=USD") {
					t.Errorf("the program asks something else:\n%s", text)
				}
				return
			}
			if _, err := exec.LookPath(run.args[0]); err != nil {
				t.Skipf("%s is not installed", run.args[0])
			}
			if got, err := runExample(t, run.file, run.args, text); err != nil || !strings.Contains(got, "60.85") || !strings.Contains(got, "Popular") {
				t.Errorf("%v\n%s", err, got)
			}
			if os.Getenv("QUICKSTARTS") != "all" {
				return // it would be compiled again
			}
			mistaken := strings.Replace(text, "currency=USD", "currency=usd", 1)
			if name == "curl" {
				mistaken, _, _ = strings.Cut(mistaken, "\n\n") // a script goes on
			}
			if got, err := runExample(t, run.file, run.args, mistaken); err == nil || !strings.Contains(got, "invalid_parameters") {
				t.Errorf("a mistake: %v\n%s", err, got)
			}
		})
	}
}

// runExample runs a program in a directory of its own; the output is that of both streams.
func runExample(t *testing.T, file string, args []string, text string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	noError(t, os.WriteFile(filepath.Join(dir, file), []byte(text+"\n"), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience) // it may be compiled, library and all
	defer cancel()
	command := exec.CommandContext(ctx, args[0], append(args[1:], file)...)
	command.Dir, command.Env = dir, append(os.Environ(), "TASARD_KEY=")
	output, err := command.CombinedOutput()
	return string(output), err
}

// TestSite_Documents: a node answers the documents of the contract, pages and documents lead to them, each link once,
// and every address that a document names is answered.
func TestSite_Documents(t *testing.T) {
	t.Parallel()
	const public = "https://tasas.example"
	p := startImported(t, serveArgs(t.TempDir(), "--public-url", public), observation(1, "59", "60"))
	named := regexp.MustCompile(`https://tasas\.example(/[^\s"'<>)]*)`)
	for _, path := range []string{"/openapi.json", "/openapi.yaml", "/.well-known/api-catalog", "/llms.txt", "/", "/docs"} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			status, headers := p.ask(method, path)
			links := strings.Join(headers.Values("Link"), "\n")
			for _, relation := range []string{`</openapi.json>; rel="service-desc"`, `</docs>; rel="service-doc"`} {
				if status != http.StatusOK || strings.Count(links, relation) != 1 {
					t.Errorf("%s %s: %d, and %s is not once in %q", method, path, status, relation, links)
				}
			}
		}
		body := html.UnescapeString(p.mustGet(path))
		if !strings.Contains(body, public) {
			t.Errorf("%s does not name the public address", path)
		}
		for _, found := range named.FindAllStringSubmatch(body, -1) {
			if found[1] == "/v1" { // the name of the API in the catalog, no operation
				continue
			}
			if status, _ := p.ask(http.MethodGet, found[1]); status != http.StatusOK {
				t.Errorf("%s names %s, which answers %d", path, found[1], status)
			}
		}
	}
	if status, headers := p.ask(http.MethodPost, "/openapi.json"); status != http.StatusMethodNotAllowed || headers.Get("Allow") != "GET, HEAD, OPTIONS" {
		t.Errorf("POST /openapi.json: %d, Allow %q", status, headers.Get("Allow"))
	}
}

// TestPages_L6 wants pages to cost no quota of the API.
func TestPages_L6(t *testing.T) {
	t.Parallel()
	p := startImported(t, serveArgs(t.TempDir(), "--limits", "on", "--public-url", "https://tasas.example.do"), observation(1, "57", "60"))
	if _, headers := p.ask(http.MethodGet, "/terms"); headers.Get("X-RateLimit-Remaining") != "" {
		t.Error("a page tells of the API's quota")
	}
	if status, headers := p.ask(http.MethodGet, "/v1/rates"); status != http.StatusOK || headers.Get("X-RateLimit-Remaining") != "59" {
		t.Errorf("the API after that: %d, remaining %q", status, headers.Get("X-RateLimit-Remaining"))
	}
}
