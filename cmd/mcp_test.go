package cmd

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tasard/tasard/cmd/internal/exit"
)

// calledTool is what came of a call of a tool: its text, and whether it is an error.
func calledTool(t *testing.T, session *sdk.ClientSession, name string, arguments map[string]any) (string, bool) {
	t.Helper()
	got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if structured, err := json.Marshal(got.StructuredContent); err != nil || !got.IsError && !strings.Contains(string(structured), `"attribution"`) {
		t.Errorf("%s: %s, %v", name, structured, err)
	}
	return got.Content[0].(*sdk.TextContent).Text, got.IsError
}

// withMCP connects a client of the protocol over a transport.
func withMCP(t *testing.T, transport sdk.Transport) *sdk.ClientSession {
	t.Helper()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// overPipes starts the program as a client of the protocol does, with standard input and output as the line between them.
func overPipes(t *testing.T, args ...string) *sdk.ClientSession {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"mcp"}, args...)...)
	cmd.Env = append(os.Environ(), asProgram+"=now")
	cmd.Stderr = t.Output()
	return withMCP(t, &sdk.CommandTransport{Command: cmd, TerminateDuration: patience})
}

// TestMCP_Pipes: the program itself, started by a client of the protocol, asks a node in another process.
func TestMCP_Pipes(t *testing.T) {
	t.Parallel()
	node, buttons := startMock(t, "--limits", "on", "--keys-required", "on")
	key := strings.Split(press(t, buttons+"keys", ""), `"`)
	secret := key[slices.IndexFunc(key, func(word string) bool { return strings.HasPrefix(word, "tasard_test_") })]
	session := overPipes(t, "--url", node.url, "--key-file", writeFile(t, "key", secret+"\n"), "--public-url", "https://tasas.example")
	for tool, arguments := range map[string]map[string]any{
		"best_rate": {"currency": "USD", "operation": "buy"}, "convert": {"currency": "USD", "operation": "sell", "amount": "250.00"},
		"rate_history": {"currency": "USD", "institution": "ambar"}, "list_currencies": nil, "list_institutions": nil,
	} {
		if text, failed := calledTool(t, session, tool, arguments); failed || !strings.Contains(text, "Source: tasard, https://tasas.example") || strings.Contains(text, secret) {
			t.Errorf("%s: %s", tool, text)
		}
	}
	if err := session.Close(); err != nil { // an exit code is an error too
		t.Errorf("the program ends: %v", err)
	}
	stranger := overPipes(t, "--url", node.url)
	if text, failed := calledTool(t, stranger, "list_currencies", nil); !failed || !strings.Contains(text, "--key-file") {
		t.Errorf("without a key: %s", text)
	}
	if err := stranger.Close(); err != nil {
		t.Errorf("the program ends: %v", err)
	}
}

// TestMCP_HTTP: the same over HTTP, stopped by a signal.
func TestMCP_HTTP(t *testing.T) {
	t.Parallel()
	node, _ := startMock(t)
	server := start(t, "now", "mcp", "--url", node.url, "--http", "127.0.0.1:0").listening()
	session := withMCP(t, &sdk.StreamableClientTransport{Endpoint: server.url, DisableStandaloneSSE: true})
	if text, failed := calledTool(t, session, "convert", map[string]any{"currency": "USD", "operation": "buy", "amount": "2.05"}); failed || !strings.Contains(text, "120.75 DOP in all") {
		t.Errorf("convert: %s", text)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	if code := node.signal(os.Interrupt); code != exit.Done {
		t.Errorf("the node ends with %d", code)
	}
	away := withMCP(t, &sdk.StreamableClientTransport{Endpoint: server.url, DisableStandaloneSSE: true})
	if text, failed := calledTool(t, away, "list_currencies", nil); !failed || !strings.Contains(text, node.url+" gives no answer") {
		t.Errorf("without a node: %s", text)
	}
	if err := away.Close(); err != nil {
		t.Error(err)
	}
	server.stop(os.Interrupt)
}

// TestMCP_Refuses: what is not safe, or makes no sense, is told in the name of its flag.
func TestMCP_Refuses(t *testing.T) {
	key := writeFile(t, "key", "tasard_live_1\n")
	open := writeFile(t, "open", "tasard_live_1\n")
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want string
		code int
		args []string
	}{
		{"--url", exit.Usage, []string{"--url", "tasas.example"}},
		{"--http-name", exit.Usage, []string{"--http", ":8090"}},
		{"--http-name", exit.Usage, []string{"--http", "192.0.2.1:8090"}},
		{"--http-name", exit.Usage, []string{"--http-name", "mcp.example:80"}},
		{"everybody on the way", exit.Usage, []string{"--url", "http://tasas.example", "--key-file", key}},
		{"chmod 600", exit.BadData, []string{"--key-file", open}},
		{"no such file", exit.BadData, []string{"--key-file", key + ".no"}},
		{"user or a password", exit.Usage, []string{"--url", "https://ana:geheim@tasas.example"}},
	} {
		got := run(t, nil, nil, append([]string{"mcp"}, c.args...)...)
		if got.code != c.code || !strings.Contains(got.stderr, c.want) || strings.Contains(got.stderr, "tasard_live_1") {
			t.Errorf("%q: exit code %d: %s", c.args, got.code, got.stderr)
		}
	}
	if got := run(t, nil, nil, "mcp"); got.code != exit.Done || got.stdout != "" || got.stderr != "" {
		t.Errorf("a client that hangs up at once: %+v", got)
	}
}
