package cmd

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/httpapi/apitest"
)

// startMock is a mock with free ports, and the address of its controls.
func startMock(t *testing.T, args ...string) (mock *program, controls string) {
	t.Helper()
	return startMockIn(t, t.TempDir(), args...)
}

// startMockIn is startMock with temporary files in a place of its own.
func startMockIn(t *testing.T, temp string, args ...string) (mock *program, controls string) {
	t.Helper()
	args = append([]string{"mock", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0"}, args...)
	p := startWith(t, "now", []string{"TMPDIR=" + temp}, args...).listening()
	p.Await("controls on ")
	found := regexp.MustCompile(`controls on (http://\S+)`).FindStringSubmatch(p.Output())
	if found == nil {
		t.Fatalf("no controls in\n%s", p.Output())
	}
	return p, found[1]
}

// postControl calls a control, which must succeed.
func postControl(t *testing.T, url, body string) string {
	t.Helper()
	c := newHTTPClient("")
	defer c.close()
	got, err := c.do(http.MethodPost, url, "", json.RawMessage(cmp.Or(body, "{}")))
	if err != nil || got.status != http.StatusOK {
		t.Fatalf("%s %s: %d %s %v", url, body, got.status, got.body, err)
	}
	return got.body
}

// TestMock: the same answers as in a Go test, time as a button, and nothing left behind.
func TestMock(t *testing.T) {
	t.Parallel()
	srv := apitest.Start(t, apitest.Seed("standard"))
	temp := t.TempDir()
	p, controls := startMockIn(t, temp)
	const best = "/v1/rates/best?currency=USD&operation=buy"
	inProcess, err := srv.Client.Get(srv.URL + best)
	noError(t, err)
	defer inProcess.Body.Close()
	want, err := io.ReadAll(inProcess.Body)
	noError(t, err)
	if got := p.mustGet(best); got != string(want) {
		t.Errorf("the mock answers\n%s\nthe harness\n%s", got, want)
	}
	postControl(t, controls+"clock", `{"advance":"26h"}`)
	if got := p.mustGet(best); !strings.Contains(got, `"data":[]`) {
		t.Errorf("a day later: %s", got)
	}
	postControl(t, controls+"reset", "")
	if got := p.mustGet(best); got != string(want) {
		t.Errorf("reset: %s", got)
	}
	p.stop(os.Interrupt)
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestMock_Flags: clock, faults, limits and keys are as they were asked for.
func TestMock_Flags(t *testing.T) {
	p, controls := startMock(t, "--clock", "2026-03-02T17:00:00Z", "--limits", "on", "--keys-required", "on", "--fail", "503@/v1/currencies")
	anyone := caller{t: t, node: p}
	if got := anyone.must("GET", "/v1/rates", "", http.StatusUnauthorized, "missing_key"); got.header.Get("Date") != "Mon, 02 Mar 2026 17:00:00 GMT" {
		t.Errorf("Date is %s", got.header.Get("Date"))
	}
	key := regexp.MustCompile(`"(tasard_test_\w+)"`).FindStringSubmatch(postControl(t, controls+"keys", ""))
	if key == nil {
		t.Fatal("no key")
	}
	user := anyone.with(key[1])
	if got := user.must("GET", "/v1/rates", "", http.StatusOK, ""); got.left(t, "minute") != 59 {
		t.Errorf("%v", got.header)
	}
	user.must("GET", "/v1/currencies", "", http.StatusServiceUnavailable, "data_unavailable")
}

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
	noError(t, err)
	return session
}

// overPipes starts the program as a client of the protocol does, with standard input and output as the line between
// them.
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
	node, controls := startMock(t, "--limits", "on", "--keys-required", "on")
	key := strings.Split(postControl(t, controls+"keys", ""), `"`)
	secret := key[slices.IndexFunc(key, func(word string) bool { return strings.HasPrefix(word, "tasard_test_") })]
	session := overPipes(t, "--url", node.URL, "--key-file", writeFile(t, "key", secret+"\n"))
	for tool, arguments := range map[string]map[string]any{
		"best_rate": {"currency": "USD", "operation": "buy"}, "convert": {"currency": "USD", "operation": "sell", "amount": "250.00"},
		"rate_history": {"currency": "USD", "institution": "ambar"}, "list_currencies": nil, "list_institutions": nil,
	} {
		if text, failed := calledTool(t, session, tool, arguments); failed || !strings.Contains(text, "Source: tasard, "+node.URL) || strings.Contains(text, secret) {
			t.Errorf("%s: %s", tool, text)
		}
	}
	if err := session.Close(); err != nil { // an exit code is an error too
		t.Errorf("the program ends: %v", err)
	}
	anonymous := overPipes(t, "--url", node.URL)
	if text, failed := calledTool(t, anonymous, "list_currencies", nil); !failed || !strings.Contains(text, "--key-file") {
		t.Errorf("without a key: %s", text)
	}
	if err := anonymous.Close(); err != nil {
		t.Errorf("the program ends: %v", err)
	}
	if got := run(t, nil, nil, "mcp"); got.code != exit.OK || got.stdout+got.stderr != "" {
		t.Errorf("a client that hangs up at once: %+v", got)
	}
}

// TestMock_Lenient checks that a jump is refused with what a tester can do, taken with --lenient, and that --catalogue
// adds an institution.
func TestMock_Lenient(t *testing.T) {
	catalogue := writeFile(t, "more.json", `{"institutions":[{"id":"acme","name":"Acme","type":"bank"}]}`)
	_, controls := startMock(t, "--lenient", "--catalogue", catalogue)
	for _, rate := range []string{`[{"institution":"ambar","currency":"USD","buy":"70.20","sell":"71.20"}]`, `[{"institution":"acme","currency":"USD","buy":"58.20","sell":"59.20"}]`} {
		postControl(t, controls+"rates", rate)
	}
	run(t, nil, nil, "mock", "--listen", "127.0.0.1:0", "--catalogue", "none.json").fails(t, exit.BadData, "--catalogue", "none.json")
	run(t, nil, nil, "mock", "--listen", "127.0.0.1:0", "--catalogue", writeFile(t, "bad.json", "{")).fails(t, exit.Usage, "bad.json")
}
