package node_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/actors/mail"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/apitest"
	"github.com/tasard/tasard/node"
)

// TestOpen_NamesTheField: an error of the configuration names its field, and Open closes the listener.
func TestOpen_NamesTheField(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, []byte("text"), 0o644))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	given, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	sender, err := account.ParseEmail("a@example.com")
	must(t, err)
	open := filepath.Join(dir, "open")
	must(t, errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777)))
	for name, tt := range map[string]struct {
		config node.Config
		kind   node.Kind
		field  string
	}{
		"open to all":      {node.Config{Dir: open}, node.BadFile, "Dir"},
		"no directory":     {node.Config{HTTP: node.HTTP{Listener: given}}, node.Invalid, "Dir"},
		"a file":           {node.Config{Dir: file}, node.Unwritable, "Dir"},
		"taken":            {node.Config{HTTP: node.HTTP{Listen: taken.Addr().String()}}, node.Busy, "HTTP.Listen"},
		"metrics taken":    {node.Config{Admin: node.Admin{Metrics: taken.Addr().String()}}, node.Busy, "Admin.Metrics"},
		"not here":         {node.Config{HTTP: node.HTTP{Listen: "203.0.113.1:80"}}, node.BadFile, "HTTP.Listen"},
		"half a pair":      {node.Config{HTTP: node.HTTP{TLS: node.TLS{Certificate: file}}}, node.Invalid, "HTTP.TLS"},
		"no key":           {node.Config{HTTP: node.HTTP{TLS: node.TLS{Certificate: file, Key: file + "x"}}}, node.BadFile, "HTTP.TLS.Key"},
		"no definitions":   {node.Config{Definitions: file}, node.BadFile, "Definitions"},
		"no catalogue":     {node.Config{Catalogue: file + "x"}, node.BadFile, "Catalogue"},
		"no sender":        {node.Config{Mail: node.Mail{Server: "mail.example.com:25"}}, node.Invalid, "Mail.From"},
		"no mail port":     {node.Config{Mail: node.Mail{Server: "mail.example.com", From: sender}}, node.Invalid, "Mail.Server"},
		"named mail port":  {node.Config{Mail: node.Mail{Server: "mail.example.com:smtp", From: sender}}, node.Invalid, "Mail.Server"},
		"password in open": {node.Config{Mail: node.Mail{Server: "mail.example.com:25", From: sender, TLS: mail.Off, User: "a", PasswordFile: file}}, node.Invalid, "Mail.TLS"},
		"nowhere to print": {node.Config{Mail: node.Mail{Method: "log"}}, node.Invalid, "Mail.Print"},
		"no cluster":       {node.Config{Cluster: node.Cluster{Node: 1}}, node.Invalid, "Cluster.Name"},
		"long socket":      {node.Config{Admin: node.Admin{Socket: "/" + strings.Repeat("x", 200)}}, node.BadFile, "Admin.Socket"},
		"socket elsewhere": {node.Config{Admin: node.Admin{Socket: file + "/x"}}, node.Unwritable, "Admin.Socket"},
	} {
		t.Run(name, func(t *testing.T) {
			c := tt.config
			if c.Dir == "" && tt.field != "Dir" {
				c.Dir = filepath.Join(t.TempDir(), "data")
			}
			n, err := node.Open(t.Context(), c)
			if err == nil {
				t.Fatal(n.Close(t.Context()))
			}
			var reported *node.Error
			if !errors.As(err, &reported) || reported.Kind != tt.kind || reported.Field != tt.field || !strings.HasPrefix(reported.Error(), tt.field+": ") {
				t.Errorf("%+v", err)
			}
		})
	}
	if _, err := given.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener of a failed Open: %v", err)
	}
}

// TestClose_Again says the same as the first time, and the address is free.
func TestClose_Again(t *testing.T) {
	n, err := node.Open(t.Context(), node.Config{Dir: t.TempDir()})
	must(t, err)
	<-n.Ready()
	for range 2 {
		if err := n.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if n.Err() != nil {
		t.Error(n.Err())
	}
	free, err := net.Listen("tcp", strings.TrimPrefix(n.URL(), "http://"))
	must(t, err)
	_ = free.Close()
}

// logLines is a slog.Handler that sends each record as "message condition state".
type logLines struct {
	slog.Handler
	lines chan string
}

func (h logLines) Enabled(context.Context, slog.Level) bool { return true }

func (h logLines) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != "detail" {
			line += " " + a.Value.String()
		}
		return true
	})
	if strings.HasPrefix(r.Message, "problem ") {
		h.lines <- line
	}
	return nil
}

// TestProblemsAreLogged: a problem is logged when it begins and when it ends.
func TestProblemsAreLogged(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 6, 30, 15, 0, 0, 0, time.UTC)
	log := logLines{slog.DiscardHandler, make(chan string, 16)}
	n, err := node.Open(t.Context(), node.Config{Dir: t.TempDir(), Clock: func() time.Time { return now }, Logger: slog.New(log)})
	must(t, err)
	defer func() {
		if err := n.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	if got := <-log.lines; got != "problem began data empty" {
		t.Errorf("logged %q", got)
	}
	_, err = n.System().Observe([]engine.Refresh{{SourceID: "manual", ObservedAt: now, Observations: []engine.Observation{
		{InstitutionID: "popular", Currency: "USD", Buy: "58.10", Sell: "59.30"},
	}}})
	must(t, err)
	if got := <-log.lines; got != "problem ended data empty" {
		t.Errorf("logged %q", got)
	}
}

// TestOneComposition holds the harness against a node as serve opens it: each route is answered by both, in the same
// way, with the same headers, before and after keys were announced.
func TestOneComposition(t *testing.T) {
	now := time.Date(2026, 6, 30, 15, 0, 0, 0, time.UTC)
	rate := []engine.Refresh{{SourceID: "manual", ObservedAt: now, Observations: []engine.Observation{{InstitutionID: "popular", Currency: "USD", Buy: "58.10", Sell: "59.30"}}}}
	harness := apitest.Start(t, apitest.At(now))
	real, err := node.Open(t.Context(), node.Config{Dir: t.TempDir(), Clock: func() time.Time { return now }, Accounts: node.Accounts{Unlimited: true}})
	must(t, err)
	defer func() {
		if err := real.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	<-real.Ready()
	harness.Observe(rate...)
	if _, err := real.System().Observe(rate); err != nil {
		t.Fatal(err)
	}
	for _, announced := range []bool{false, true} {
		if announced {
			at := now.Add(30 * 24 * time.Hour)
			harness.Announce(at)
			if _, err := real.System().Announce(at, "test"); err != nil {
				t.Fatal(err)
			}
		}
		for _, path := range []string{
			"/", "/docs", "/openapi.json", "/openapi.yaml", "/llms.txt", "/robots.txt", "/account", "/institutions", "/data/latest.json", "/data/latest.csv", "/feeds/usd.atom", "/nothing", "/livez", "/readyz",
			"/v1/currencies", "/v1/institutions", "/v1/institutions/popular", "/v1/rates", "/v1/rates/best?currency=USD&operation=buy", "/v1/usage",
			"/v1/rates/history?currency=USD&institution=popular", "/v1/convert?currency=USD&operation=buy&amount=5", "/v1/nothing", "/v1/account",
		} {
			in, out := look(t, harness.Client, harness.URL+path), look(t, &http.Client{}, real.URL()+path)
			if in != out {
				t.Errorf("%s, announced: %v:\nthe harness says %s\na node says %s", path, announced, in, out)
			}
		}
	}
}

// TestNotFound_Page: a browser gets a page for unknown paths, in the language of the path; programs get JSON, as
// below /v1.
func TestNotFound_Page(t *testing.T) {
	harness := apitest.Start(t)
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for _, c := range []struct{ method, path, accept, want string }{
		{http.MethodGet, "/nope", browser, "Página no encontrada"}, {http.MethodGet, "/docs/nope", browser, "Página no encontrada"},
		{http.MethodGet, "/en/nope", browser, "Page not found"}, {http.MethodGet, "/a//b?x=1", browser, "Página no encontrada"},
		{http.MethodGet, "/nope", "*/*", `"code":"not_found"`}, {http.MethodGet, "/docs/nope", "", `"code":"not_found"`},
		{http.MethodPost, "/nope", browser, `"code":"not_found"`},
		{http.MethodGet, "/v1/nope", browser, `"code":"not_found"`}, {http.MethodGet, "/v1", browser, `"code":"not_found"`},
	} {
		request, err := http.NewRequestWithContext(t.Context(), c.method, harness.URL+c.path, nil)
		must(t, err)
		request.Header.Set("Accept", c.accept)
		res, err := harness.Client.Do(request)
		must(t, err)
		body, err := io.ReadAll(res.Body)
		if err != nil || res.Body.Close() != nil {
			t.Fatal(err)
		}
		if res.StatusCode != http.StatusNotFound || !strings.Contains(string(body), c.want) {
			t.Errorf("%s %s for %q: %d, want 404 and %s in\n%.300s", c.method, c.path, c.accept, res.StatusCode, c.want, body)
		}
	}
}

// look is how a path is answered: status, kind, and the names of the headers.
func look(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	client = &http.Client{Transport: client.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Get(url)
	must(t, err)
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Error(err)
	}
	text := res.Status + " " + res.Header.Get("Content-Type")
	for _, name := range []string{"Link", "Deprecation", "Sunset", "Cache-Control", "Vary", "Etag", "X-Ratelimit-Limit", "Retry-After", "Content-Security-Policy"} {
		if values := res.Header.Values(name); len(values) > 0 {
			text += ", " + name
			if name == "Link" || name == "Sunset" || name == "Cache-Control" {
				text += " " + strings.Join(values, " | ")
			}
		}
	}
	return text
}

// TestDocs_Example wants docs/embedding.md to show the example that is run.
func TestDocs_Example(t *testing.T) {
	page, err := os.ReadFile("../docs/embedding.md")
	must(t, err)
	example, err := os.ReadFile("example_test.go")
	must(t, err)
	_, code, _ := strings.Cut(string(example), "func Example() {\n")
	code, _, _ = strings.Cut(code, "\t// Output:")
	code = strings.TrimPrefix(strings.ReplaceAll("\n"+code, "\n\t", "\n"), "\n")
	if !strings.Contains(string(page), "```go\n"+code+"```\n") {
		t.Errorf("docs/embedding.md does not show\n%s", code)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
