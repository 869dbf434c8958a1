package mcp_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
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

const site = "https://tasas.example"

// newServer is a server whose tools ask a node; retries do not wait.
func newServer(t *testing.T, srv *apitest.Server, hosts ...string) *mcp.Server {
	t.Helper()
	c, err := client.New(client.Config{
		BaseURL: srv.URL, HTTPClient: srv.Client, WaitMax: time.Second, Wait: func(context.Context, time.Duration) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := mcp.New(mcp.Config{Client: c, Site: site, Version: "test", Hosts: hosts})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// session is a client of the protocol that speaks with a server over a pair of pipes, as over standard input and output.
func session(t *testing.T, s *mcp.Server) *sdk.ClientSession {
	t.Helper()
	in, toServer := io.Pipe()
	toClient, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(context.Background(), in, out) }()
	connected, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &sdk.IOTransport{Reader: toClient, Writer: toServer}, nil)
	if err != nil {
		t.Fatal(err)
	}
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

// result is what came of a call.
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

// contains fails unless the text has every part, in this order.
func contains(t *testing.T, text string, parts ...string) {
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

type offers struct {
	Currency, Operation, Amount, QuoteCurrency, AsOf, Attribution, Notice, FeeNotice string
	Total                                                                            int
	Offers                                                                           []struct {
		Institution, InstitutionID, Kind, Rate, AmountDOP, CheckedAt string
		Compra, Venta                                                *string
	}
}

func read[T any](t *testing.T, r result) (into T) {
	t.Helper()
	if r.failed {
		t.Fatalf("an error: %s", r.text)
	}
	if err := json.Unmarshal(r.content, &into); err != nil {
		t.Fatalf("%v: %s", err, r.content)
	}
	return into
}

// TestTools: there are five, all only read, with schemas that say what each parameter is.
func TestTools(t *testing.T) {
	s := session(t, newServer(t, apitest.Start(t, apitest.Seed("standard"))))
	var names []string
	for tool, err := range s.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
		if a := tool.Annotations; a == nil || !a.ReadOnlyHint || a.DestructiveHint == nil || *a.DestructiveHint || a.OpenWorldHint == nil || *a.OpenWorldHint {
			t.Errorf("%s: annotations %+v", tool.Name, tool.Annotations)
		}
		input, _ := tool.InputSchema.(map[string]any)
		if tool.Description == "" || tool.OutputSchema == nil || input["additionalProperties"] == nil {
			t.Errorf("%s: %+v", tool.Name, tool)
		}
		properties, _ := input["properties"].(map[string]any)
		for name, property := range properties {
			rules, _ := property.(map[string]any)
			if rules["description"] == "" || name != "limit" && rules["pattern"] == nil && rules["enum"] == nil {
				t.Errorf("%s: %s is %v", tool.Name, name, property)
			}
		}
	}
	slices.Sort(names)
	if want := []string{"best_rate", "convert", "list_currencies", "list_institutions", "rate_history"}; !slices.Equal(names, want) {
		t.Errorf("tools %q, want %q", names, want)
	}
	if instructions := s.InitializeResult().Instructions; !strings.Contains(instructions, "DOP") {
		t.Errorf("instructions: %q", instructions)
	}
}

// TestBestRate: S1, S2, the sides are those of the caller, the best first; date and attribution are with it (§1).
func TestBestRate(t *testing.T) {
	s := session(t, newServer(t, apitest.Start(t, apitest.Seed("standard"))))
	buy := call(t, s, "best_rate", map[string]any{"currency": "USD", "operation": "buy", "limit": 2})
	got := read[offers](t, buy)
	if len(got.Offers) != 2 || got.Offers[0].Rate != "58.90" || *got.Offers[0].Venta != "58.90" || got.Offers[0].AmountDOP != "" || got.Total <= 2 || got.AsOf != "2026-03-02 12:00" {
		t.Errorf("%+v", got)
	}
	contains(t, buy.text, "To buy USD", "2026-03-02 12:00", "1. Cooperativa del Sur: 58.90 DOP for 1 USD", "(seen 2026-03-02 11:00)", "2. ", "may change", "Source: tasard, "+site)
	sell := read[offers](t, call(t, s, "best_rate", map[string]any{"currency": "USD", "operation": "sell"}))
	if first := sell.Offers[0]; len(sell.Offers) != 5 || first.Compra == nil || first.Rate != *first.Compra {
		t.Errorf("%+v", sell)
	}
	amount := call(t, s, "best_rate", map[string]any{"currency": "USD", "operation": "buy", "amount": "2.05", "limit": 1})
	if with := read[offers](t, amount); len(with.Offers) != 1 || with.Offers[0].AmountDOP != "120.75" || with.FeeNotice == "" {
		t.Errorf("%+v", with)
	}
	contains(t, amount.text, "To buy 2.05 USD", "58.90 DOP for 1 USD, 120.75 DOP in all", "comisiones")
	nobody := call(t, s, "best_rate", map[string]any{"currency": "XAU", "operation": "buy"})
	if none := read[offers](t, nobody); none.Total != 0 || none.Offers == nil {
		t.Errorf("%+v", none)
	}
	contains(t, nobody.text, "No current rate to buy XAU", "list_currencies", site)
}

// TestConvert: S6, S8, S9, amounts are the node's, to the last digit; reference rates are asked for.
func TestConvert(t *testing.T) {
	s := session(t, newServer(t, apitest.Start(t, apitest.Seed("standard"))))
	large := read[offers](t, call(t, s, "convert", map[string]any{"currency": "JPY", "operation": "buy", "amount": "999999999999.99", "limit": 1}))
	if first := large.Offers[0]; first.Rate != "0.40223456" || first.AmountDOP != "402234560000.00" || large.Amount != "999999999999.99" {
		t.Errorf("%+v", large)
	}
	reference := call(t, s, "convert", map[string]any{"currency": "USD", "operation": "sell", "amount": "100.00", "kind": "reference"})
	if got := read[offers](t, reference); len(got.Offers) != 1 || got.Offers[0].Kind != "reference" || got.Offers[0].InstitutionID != "central" {
		t.Errorf("%+v", got)
	}
	contains(t, reference.text, "official reference")
}

type days struct {
	Total int
	Rows  []struct {
		Date, InstitutionID, Kind string
		Compra, Venta             *string
	}
}

// TestRateHistory: T6, the range; few rows are told one by one, of many what stands out, and the newest when there are too many.
func TestRateHistory(t *testing.T) {
	s := session(t, newServer(t, apitest.Start(t, apitest.Seed("standard"))))
	few := call(t, s, "rate_history", map[string]any{"currency": "USD", "institution": "ambar", "from": "2026-02-27", "to": "2026-03-01"})
	got := read[days](t, few)
	if len(got.Rows) == 0 || len(got.Rows) != got.Total {
		t.Errorf("%+v", got)
	}
	contains(t, few.text, "daily rates", got.Rows[0].Date+" ambar: compra "+*got.Rows[0].Compra+", venta "+*got.Rows[0].Venta, site)
	many := call(t, s, "rate_history", map[string]any{"currency": "USD"})
	contains(t, many.text, "USD in DOP", "commercial compra: lowest ", ", highest ", "commercial venta", "reference compra", site)
	all := read[days](t, many)
	cut := call(t, s, "rate_history", map[string]any{"currency": "USD", "limit": 3})
	newest := read[days](t, cut)
	if len(newest.Rows) != 3 || newest.Total != all.Total || newest.Rows[2].Date != all.Rows[len(all.Rows)-1].Date || newest.Rows[2].InstitutionID != all.Rows[len(all.Rows)-1].InstitutionID {
		t.Errorf("of %+v the newest are %+v", all, newest)
	}
	contains(t, cut.text, "3 of ", "oldest are left out")
	contains(t, call(t, s, "rate_history", map[string]any{"currency": "USD", "from": "2024-01-01", "to": "2024-01-02"}).text, "No rates of USD")
}

// TestLists: what the other tools can be asked for.
func TestLists(t *testing.T) {
	s := session(t, newServer(t, apitest.Start(t, apitest.Seed("standard"))))
	contains(t, call(t, s, "list_currencies", nil).text, "USD Dólar estadounidense (", "Without: ", site)
	euro := call(t, s, "list_institutions", map[string]any{"currency": "EUR"})
	list := read[struct{ Institutions []struct{ ID, Name string } }](t, euro)
	if len(list.Institutions) < 2 || list.Institutions[0].ID != "ambar" {
		t.Errorf("%+v", list)
	}
	contains(t, euro.text, "ambar = Banco Ámbar", site)
}

// TestErrors: what goes wrong is an error of the tool that says what to do, and the protocol goes on.
func TestErrors(t *testing.T) {
	srv := apitest.Start(t, apitest.Seed("standard"), apitest.Quota(3, 0))
	s := session(t, newServer(t, srv))
	usd := map[string]any{"currency": "USD", "operation": "buy"}
	for _, c := range []struct {
		tool      string
		arguments map[string]any
		want      []string
	}{
		{"best_rate", map[string]any{"currency": "usd", "operation": "buy"}, []string{"currency"}},
		{"best_rate", map[string]any{"currency": "USD"}, []string{"operation"}},
		{"best_rate", map[string]any{"currency": "USD", "operation": "hold"}, []string{"operation"}},
		{"convert", map[string]any{"currency": "USD", "operation": "buy", "amount": 250.5}, []string{"amount"}},
		{"convert", map[string]any{"currency": "USD", "operation": "buy", "amount": "1,000"}, []string{"amount"}},
		{"best_rate", map[string]any{"currency": "USD", "operation": "buy", "limit": 51}, []string{"1 to 50"}},
		{"best_rate", map[string]any{"currency": "USD", "operation": "buy", "colour": "red"}, []string{"colour"}},
		{"rate_history", map[string]any{"currency": "USD", "from": "2026-02-30"}, []string{"such as 2026-02-28"}},
		{"rate_history", map[string]any{"currency": "USD", "from": "2024-01-01", "to": "2026-01-01"}, []string{"Correct what is named", "365"}},
	} {
		if got := call(t, s, c.tool, c.arguments); !got.failed {
			t.Errorf("%s %v: no error: %s", c.tool, c.arguments, got.text)
		} else {
			contains(t, got.text, c.want...)
		}
	}
	srv.Fail("/v1/rates/best", http.StatusInternalServerError, 1+client.RetriesDefault)
	trouble := call(t, s, "best_rate", usd)
	contains(t, trouble.text, "can't answer now", "500 internal_error", "request ")
	read[offers](t, call(t, s, "best_rate", usd))
	read[offers](t, call(t, s, "best_rate", usd))
	limit := call(t, s, "best_rate", usd)
	contains(t, limit.text, "Don't ask again before", "quota_exceeded")
	if !trouble.failed || !limit.failed {
		t.Error("they are no errors")
	}
}

// TestErrors_Key: L7, E1, once keys are required the model tells whom it concerns.
func TestErrors_Key(t *testing.T) {
	s := session(t, newServer(t, apitest.Start(t, apitest.Seed("standard"), apitest.KeysRequired())))
	contains(t, call(t, s, "list_currencies", nil).text, "--key-file", "/account", "missing_key")
}

// TestErrors_Away: a node that is not there is told with its address.
func TestErrors_Away(t *testing.T) {
	srv := apitest.Start(t)
	srv.Drop("", 0)
	got := call(t, session(t, newServer(t, srv)), "list_currencies", nil)
	contains(t, got.text, srv.URL+" gives no answer", "--url")
}

// silent is a node that never answers.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestErrors_Silence: a call ends, whatever the node does.
func TestErrors_Silence(t *testing.T) {
	c, err := client.New(client.Config{BaseURL: "https://node.test", HTTPClient: &http.Client{Transport: silent{}}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := mcp.New(mcp.Config{Client: c, CallMax: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	got := call(t, session(t, s), "list_currencies", nil)
	contains(t, got.text, "https://node.test gives no answer", "deadline exceeded")
}

// post sends a message as a program, or a page, would.
func post(t *testing.T, handler http.Handler, host string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", strings.NewReader(initialize))
	r.Host = host
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// TestHandler_Guard: a name that somebody else gave this machine, and a page of another origin, get nothing.
func TestHandler_Guard(t *testing.T) {
	handler := newServer(t, apitest.Start(t), "mcp.example").Handler()
	for _, c := range []struct {
		host, origin, site string
		status             int
	}{
		{"127.0.0.1:9000", "", "", 200}, {"localhost:9000", "", "", 200}, {"[::1]:9000", "", "", 200}, {"mcp.example", "", "", 200}, {"MCP.example:443", "", "", 200},
		{"127.0.0.1:9000", "http://127.0.0.1:9000", "same-origin", 200}, {"mcp.example", "https://mcp.example", "", 200},
		{"evil.example:9000", "", "", 403}, {"evil.example:9000", "http://evil.example:9000", "same-origin", 403}, {"127.0.0.1.evil.example", "", "", 403}, {"", "", "", 403}, {"10.0.0.1", "", "", 403},
		{"127.0.0.1:9000", "https://evil.example", "cross-site", 403}, {"127.0.0.1:9000", "null", "", 403}, {"127.0.0.1:9000", "http://localhost:3000", "", 403}, {"127.0.0.1:9000", "http://127.0.0.1:9000", "cross-site", 403},
	} {
		var header []string
		if c.origin != "" {
			header = append(header, "Origin", c.origin)
		}
		if c.site != "" {
			header = append(header, "Sec-Fetch-Site", c.site)
		}
		if got := post(t, handler, c.host, header...); got.Code != c.status {
			t.Errorf("%q from %q (%s): %d, want %d: %s", c.host, c.origin, c.site, got.Code, c.status, got.Body)
		} else if got.Header().Get("Mcp-Session-Id") != "" {
			t.Errorf("%q: a session is kept", c.host)
		}
	}
}

// TestHandler_Limits: a long message is not read to its end, and there is nothing but POST.
func TestHandler_Limits(t *testing.T) {
	handler := newServer(t, apitest.Start(t)).Handler()
	for _, c := range []struct {
		method, body string
		status       int
	}{{http.MethodPost, strings.Repeat(" ", 65<<10) + "{}", 413}, {http.MethodGet, "", 405}, {http.MethodDelete, "", 405}} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, "http://localhost/mcp", strings.NewReader(c.body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("%s with %d bytes: %d, want %d: %s", c.method, len(c.body), w.Code, c.status, w.Body)
		}
	}
}

// TestHandler_Call: over HTTP the tools are the same.
func TestHandler_Call(t *testing.T) {
	web := httptest.NewServer(newServer(t, apitest.Start(t, apitest.Seed("standard"))).Handler())
	defer web.Close()
	s, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: web.URL, HTTPClient: web.Client(), DisableStandaloneSSE: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, call(t, s, "best_rate", map[string]any{"currency": "USD", "operation": "buy"}).text, "Cooperativa del Sur: 58.90")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestServe_Cancel: Serve ends with its context.
func TestServe_Cancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, toServer := io.Pipe()
	cancel()
	if err := newServer(t, apitest.Start(t)).Serve(ctx, in, io.Discard); err == nil || ctx.Err() == nil {
		t.Errorf("Serve says %v", err)
	}
	if err := toServer.Close(); err != nil {
		t.Error(err)
	}
}

// questions are what a shell writes into the program, and hangs up.
const questions = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"best_rate","arguments":{"currency":"USD","operation":"buy"}}}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"best_rate","arguments":{"currency":"EUR","operation":"buy"}}}
`

// TestServe_End: what was asked before the stream ended is answered, though the node takes its time.
func TestServe_End(t *testing.T) {
	srv := apitest.Start(t, apitest.Seed("standard"))
	srv.Delay("/v1/rates/best", 100*time.Millisecond, 2)
	var out strings.Builder
	if err := newServer(t, srv).Serve(t.Context(), strings.NewReader(questions), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"id":1,`, `"id":2,`, `"id":3,`, "To buy USD", "To buy EUR"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in the answers:\n%s", want, out.String())
		}
	}
	if lines := strings.Count(out.String(), "\n"); lines != 3 {
		t.Errorf("%d answers to 3 questions:\n%s", lines, out.String())
	}
}

// TestServe_Garbage: what is no message ends the stream with an error, and so does one without an end.
func TestServe_Garbage(t *testing.T) {
	for _, bad := range []string{"GET / HTTP/1.1\n", `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 70<<10)} {
		var out strings.Builder
		if err := newServer(t, apitest.Start(t)).Serve(t.Context(), strings.NewReader(bad), &out); err == nil {
			t.Errorf("%.40q: no error; answered %q", bad, out.String())
		}
	}
}
