package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/tasard/tasard/httpapi/apitest"
	"github.com/tasard/tasard/httpapi/client"
	"github.com/tasard/tasard/httpapi/mcp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newServer returns a server for a node; retries do not wait.
func newServer(t *testing.T, srv *apitest.Server) *mcp.Server {
	t.Helper()
	c, err := client.New(client.Config{
		BaseURL: srv.URL, HTTPClient: srv.Client, WaitMax: time.Second, Wait: func(context.Context, time.Duration) error { return nil },
	})
	must(t, err)
	return mcp.New(c, "test")
}

// session returns a client of the protocol that is connected with a server by pipes, as over standard input and
// output.
func session(t *testing.T, s *mcp.Server) *sdk.ClientSession {
	t.Helper()
	in, toServer := io.Pipe()
	toClient, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(context.Background(), in, out) }()
	connected, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &sdk.IOTransport{Reader: toClient, Writer: toServer}, nil)
	must(t, err)
	t.Cleanup(func() {
		if err := connected.Close(); err != nil {
			t.Errorf("close the session: %v", err)
		}
		if err := <-ended; err != nil {
			t.Errorf("the stream has ended, and Serve says %v", err)
		}
	})
	return connected
}

// open returns a session with a node of its own.
func open(t *testing.T, options ...apitest.Option) *sdk.ClientSession {
	t.Helper()
	return session(t, newServer(t, apitest.Start(t, append(options, apitest.Seed("standard"))...)))
}

// result is the result of a call.
type result struct {
	text    string
	failed  bool
	content json.RawMessage
}

// call calls a tool.
func call(t *testing.T, s *sdk.ClientSession, tool string, arguments map[string]any) result {
	t.Helper()
	got, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s %v: %v", tool, arguments, err)
	}
	content, err := json.Marshal(got.StructuredContent)
	if err != nil || len(got.Content) != 1 {
		t.Fatalf("%s %v: %d texts, %v", tool, arguments, len(got.Content), err)
	}
	return result{got.Content[0].(*sdk.TextContent).Text, got.IsError, content}
}

// mustContain fails unless the text has every part, in this order.
func mustContain(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, part := range parts {
		_, behind, found := strings.Cut(rest, part)
		if !found {
			t.Errorf("%q is not, or not at its place, in\n%s", part, text)
			return
		}
		rest = behind
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestGolden_Calls checks the results for the standard seed, as text and as data.
func TestGolden_Calls(t *testing.T) {
	s := open(t)
	for _, c := range []struct {
		name, tool string
		arguments  map[string]any
	}{
		{"buy", "best_rate", map[string]any{"currency": "USD", "operation": "buy", "limit": 2}},
		{"sell", "best_rate", map[string]any{"currency": "USD", "operation": "sell"}},
		{"amount", "best_rate", map[string]any{"currency": "USD", "operation": "buy", "amount": "2.05", "limit": 1}},
		{"no-rates", "best_rate", map[string]any{"currency": "XAU", "operation": "buy"}},
		{"pesos", "convert", map[string]any{"currency": "DOP", "operation": "buy", "amount": "100"}},
		{"unknown-institution", "best_rate", map[string]any{"currency": "USD", "operation": "buy", "institution": "ambr"}},
		{"convert", "convert", map[string]any{"currency": "JPY", "operation": "buy", "amount": "999999999999.99", "limit": 1}},
		{"reference", "convert", map[string]any{"currency": "USD", "operation": "sell", "amount": "100.00", "kind": "reference"}},
		{"few-days", "rate_history", map[string]any{"currency": "USD", "institution": "ambar", "from": "2026-02-27", "to": "2026-03-01"}},
		{"many-days", "rate_history", map[string]any{"currency": "USD"}},
		{"newest-days", "rate_history", map[string]any{"currency": "USD", "limit": 3}},
		{"no-days", "rate_history", map[string]any{"currency": "USD", "from": "2024-01-01", "to": "2024-01-02"}},
		{"currencies", "list_currencies", nil},
		{"institutions", "list_institutions", map[string]any{"currency": "EUR"}},
	} {
		got := call(t, s, c.tool, c.arguments)
		if got.failed {
			t.Errorf("%s is an error", c.name)
		}
		compareGolden(t, c.name, got.text, got.content)
	}
}

// TestGolden_Tools checks that there are five read-only tools, with schemas for their parameters.
func TestGolden_Tools(t *testing.T) {
	s := open(t)
	tools, err := s.ListTools(t.Context(), nil)
	must(t, err)
	content, err := json.Marshal(tools.Tools)
	must(t, err)
	compareGolden(t, "tools", s.InitializeResult().Instructions, content)
}

var update = flag.Bool("update", false, "rewrite the golden files")

// compareGolden compares a text and JSON with a golden file.
func compareGolden(t *testing.T, name, text string, content []byte) {
	t.Helper()
	got := bytes.NewBufferString(text + "\n\n")
	must(t, json.Indent(got, content, "", " "))
	file := filepath.Join("testdata", name+".txt")
	if *update {
		must(t, os.WriteFile(file, got.Bytes(), 0o600))
	}
	if want, err := os.ReadFile(file); err != nil || !bytes.Equal(want, got.Bytes()) {
		t.Errorf("%s differs (%v); make golden rewrites it. It is\n%s", file, err, got)
	}
}

// TestErrors checks that a failure is an error of the tool with advice, and that the session goes on.
func TestErrors(t *testing.T) {
	srv := apitest.Start(t, apitest.Seed("standard"), apitest.Quota(4, 0))
	s := session(t, newServer(t, srv))
	usd := map[string]any{"currency": "USD", "operation": "buy"}
	for _, c := range []struct {
		tool      string
		arguments map[string]any
		want      []string
	}{
		{"best_rate", map[string]any{"currency": "usd", "operation": "buy"}, []string{"currency: three capital letters, such as USD"}},
		{"best_rate", map[string]any{"currency": "USD"}, []string{"operation is missing"}},
		{"best_rate", map[string]any{"currency": "U", "operation": "hold"}, []string{"currency: ", "operation: ", "buy or sell"}},
		{"convert", map[string]any{"currency": "USD", "operation": "buy", "amount": 250.5}, []string{"amount", "in quotes"}},
		{"convert", map[string]any{"currency": "USD", "operation": "buy", "amount": "1,000"}, []string{"amount", "250.00"}},
		{"best_rate", map[string]any{"currency": "USD", "operation": "buy", "limit": 201}, []string{"limit", "1 to 200"}},
		{"best_rate", map[string]any{"currency": "USD", "operation": "buy", "limit": "5"}, []string{"limit", "a number"}},
		{"best_rate", map[string]any{"currency": "USD", "operation": "buy", "colour": "red"}, []string{"colour", "no such parameter; it has currency"}},
		{"list_currencies", map[string]any{"currency": "USD"}, []string{"currency", "no such parameter"}},
		{"rate_history", map[string]any{"currency": "USD", "from": "2026-02-30"}, []string{"Correct them", "from"}},
		{"rate_history", map[string]any{"currency": "USD", "from": "2024-01-01", "to": "2026-01-01"}, []string{"Correct them", "365"}},
	} {
		if got := call(t, s, c.tool, c.arguments); !got.failed {
			t.Errorf("%s %v: no error: %s", c.tool, c.arguments, got.text)
		} else {
			mustContain(t, got.text, c.want...)
		}
	}
	srv.Fail("/v1/rates/best", http.StatusInternalServerError, 1+client.RetriesDefault)
	trouble := call(t, s, "best_rate", usd)
	mustContain(t, trouble.text, "can't answer now", "500 internal_error", "request ")
	first, second, limit := call(t, s, "best_rate", usd), call(t, s, "best_rate", usd), call(t, s, "best_rate", usd)
	mustContain(t, limit.text, "Wait", "quota_exceeded")
	if !trouble.failed || first.failed || second.failed || !limit.failed {
		t.Errorf("%v %v %v %v", trouble, first, second, limit)
	}
}

// TestErrors_Away checks the errors when keys are required, and when the node cannot be reached.
func TestErrors_Away(t *testing.T) {
	mustContain(t, call(t, open(t, apitest.KeysRequired()), "list_currencies", nil).text, "--key-file", "/account", "missing_key")
	srv := apitest.Start(t)
	srv.Drop("", 0)
	mustContain(t, call(t, session(t, newServer(t, srv)), "list_currencies", nil).text, srv.URL+" does not answer", "--url")
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// requestLines is the input of a shell that closes the stream after it.
const requestLines = initialize + `
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"best_rate","arguments":{"currency":"USD","operation":"buy"}}}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"best_rate","arguments":{"currency":"EUR","operation":"buy"}}}
`

// TestServe_End checks that requests before the end of the stream are answered, even by a slow node.
func TestServe_End(t *testing.T) {
	srv := apitest.Start(t, apitest.Seed("standard"))
	srv.Delay("/v1/rates/best", 100*time.Millisecond, 2)
	var out strings.Builder
	must(t, newServer(t, srv).Serve(t.Context(), strings.NewReader(requestLines), &out))
	for _, want := range []string{`"id":1,`, `"id":2,`, `"id":3,`, "To buy USD", "To buy EUR"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in the answers:\n%s", want, out.String())
		}
	}
	if lines := strings.Count(out.String(), "\n"); lines != 3 {
		t.Errorf("%d answers to 3 questions:\n%s", lines, out.String())
	}
}

// TestServe_BadLines checks that a line that is not a message is answered with an error, and that the stream goes on.
func TestServe_BadLines(t *testing.T) {
	for name, c := range map[string]struct{ line, want string }{
		"no JSON":       {"{not json", `"code":-32700`},
		"cut off":       {`{"jsonrpc":"2.0","id":5,"method":"ping"`, `"code":-32700`},
		"HTTP":          {"GET / HTTP/1.1", `"code":-32700`},
		"a fraction":    {`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, `"code":-32600`},
		"a batch":       {`[{"jsonrpc":"2.0","id":5,"method":"ping"}]`, `"code":-32600`},
		"no message":    {`{"id":5}`, `"code":-32600`},
		"an id in list": {`{"jsonrpc":"2.0","id":[1],"method":"ping"}`, `"code":-32600`},
		"a long line":   {`{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 70<<10) + `"}`, `"code":-32600`},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			in := initialize + "\n\n" + c.line + "\n" + `{"jsonrpc":"2.0","id":2,"method":"ping"}`
			if err := newServer(t, apitest.Start(t)).Serve(t.Context(), strings.NewReader(in), &out); err != nil {
				t.Errorf("the stream has ended, and Serve says %v", err)
			}
			if got := out.String(); !strings.Contains(got, `"id":null`) || !strings.Contains(got, c.want) || !strings.Contains(got, `"id":2`) || strings.Count(got, "\n") != 3 {
				t.Errorf("it answers\n%s", got)
			}
		})
	}
}

// TestServe_Canceled checks that Serve ends with its context.
func TestServe_Canceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in, toServer := io.Pipe()
	defer toServer.Close()
	if err := newServer(t, apitest.Start(t)).Serve(ctx, in, io.Discard); err == nil {
		t.Error("Serve goes on without its context")
	}
}
