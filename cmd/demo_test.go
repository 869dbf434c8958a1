package cmd

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/apitest"
)

// startDemo begins a demo and returns the directory of its temporary files.
func startDemo(t *testing.T, args ...string) (p *program, temp string) {
	t.Helper()
	temp = t.TempDir()
	return startWith(t, "now", []string{"TMPDIR=" + temp}, append([]string{"demo", "--listen", "127.0.0.1:0"}, args...)...).listening(), temp
}

// leavesNothing fails unless the directory is empty.
func leavesNothing(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// onlyDirectory is the directory of a demo's data, while it runs.
func onlyDirectory(t *testing.T, temp string) string {
	t.Helper()
	directories, err := filepath.Glob(temp + "/*")
	if err != nil || len(directories) != 1 {
		t.Fatalf("while it runs the directory has %v, %v", directories, err)
	}
	return directories[0]
}

// TestDemo_LinesToTry does what the demo tells people to try, and opens its pages. The variable that names the
// directory of a node does not name the demo's.
func TestDemo_LinesToTry(t *testing.T) {
	t.Parallel()
	temp, nodes := t.TempDir(), t.TempDir()
	p := startWith(t, "now", []string{"TMPDIR=" + temp, "TASARD_DATA=" + nodes}, "demo", "--listen", "127.0.0.1:0").listening()
	p.Await("Ctrl-C stops it.")
	t.Log(p.Output())
	if strings.Contains(p.Output(), "problem began") {
		t.Error("the demo warns that there are no rates before it has published any")
	}
	commands := regexp.MustCompile(`curl '(http://[^']+)'`).FindAllStringSubmatch(p.Output(), -1)
	if len(commands) != 3 {
		t.Fatalf("%d lines to try in\n%s", len(commands), p.Output())
	}
	for _, command := range commands {
		path, ours := strings.CutPrefix(command[1], p.URL)
		if !ours {
			t.Errorf("%s is not where the demo listens", command[1])
			continue
		}
		if body := p.mustGet(path); strings.Contains(body, `"data":[]`) || strings.Contains(path, "best") && !strings.Contains(body, "Demo") {
			t.Errorf("GET %s: %s", path, body)
		}
	}
	tryAccount(t, p)
	for _, path := range []string{"/", "/en", "/institutions", "/en/institutions", "/institutions/popular", "/en/institutions/bcrd?days=365", "/terms", "/en/terms"} {
		if body := p.mustGet(path); !strings.Contains(body, "simulad") && !strings.Contains(body, "simulated") {
			t.Errorf("%s: the page of a demo does not say so", path)
		}
	}
	contains(t, p.mustGet("/institutions/popular"), `<link rel="canonical" href="`+p.URL+`/institutions/popular">`)
	p.stop(os.Interrupt)
	leavesNothing(t, temp)
	leavesNothing(t, nodes)
}

// tryAccount does what the demo tells about keys: the code is printed.
func tryAccount(t *testing.T, p *program) {
	t.Helper()
	body, path := "", ""
	if hint := regexp.MustCompile(`curl -H 'Content-Type: application/json' -d '(.+)' (http://\S+)`).FindStringSubmatch(p.Output()); hint != nil {
		body, path = hint[1], strings.TrimPrefix(hint[2], p.URL)
	}
	anyone := caller{t: t, node: p}
	anyone.must("POST", path, body, http.StatusAccepted, "")
	code := regexp.MustCompile(`code=(\d{8})`).FindStringSubmatch(p.Await("mail to=ana@example.com"))
	session := anyone.must("POST", sessionsPath, `{"email":"ana@example.com","code":"`+code[1]+`"}`, http.StatusOK, "")
	key, _ := anyone.with(session.field(t, "token")).newKey("first")
	if !strings.HasPrefix(key.token, account.KeyPrefixTest) {
		t.Error("the key does not have the test prefix")
	}
	if got := key.must("GET", "/v1/rates?limit=1", "", http.StatusOK, ""); got.header.Get("X-RateLimit-Limit") != "" {
		t.Errorf("the demo has limits: %v", got.header)
	}
}

// TestDemo_MovesAndBreaks wants new rates with each step, a failing source to be reported and its last good rates to
// stay, and no directory left behind after a hang-up.
func TestDemo_MovesAndBreaks(t *testing.T) {
	t.Parallel()
	p, temp := startDemo(t, "--step", "1s", "--log-format", "text", "--log-level", "info", "--break", "bhd-site=zeros", "--break", "demo-infodolar=challenge")
	p.Await("sources are fetched over HTTP")
	p.Await("Ctrl-C stops it.")
	data := onlyDirectory(t, temp)
	before := withoutMoment(p.mustGet("/v1/rates?limit=200"))
	p.Await("the market has moved")
	eventually(t, "the rates change", func() bool { return withoutMoment(p.mustGet("/v1/rates?limit=200")) != before })
	p.Await("source=demo-bhd-site state=failing")
	if failure := listedSources(t, data)["demo-infodolar"].Health.Failure; failure == nil || failure.Kind != string(source.Blocked) {
		t.Errorf("a challenge page is %+v", failure)
	}
	if rate := rateOf(t, p, "USD", "bhd"); rate == nil || rate.Buy == "0" || rate.SourceID != "demo-bhd-site" {
		t.Errorf("the last good rate is gone: %+v", rate)
	}
	p.stop(syscall.SIGHUP)
	leavesNothing(t, temp)
}

// TestDemo_ForLoad wants a demo to be ready for a load test: no source fails until the caller breaks it, it has no
// quotas, takes more connections of one address than serve does, and logs none of it.
func TestDemo_ForLoad(t *testing.T) {
	t.Parallel()
	p, temp := startDemo(t, "--step", "1h")
	printed := p.Await("Ctrl-C stops it.")
	sources := listedSources(t, onlyDirectory(t, temp))
	for id, s := range sources {
		if s.Disabled == "" && (s.Health == nil || s.Health.LastSuccess.IsZero()) {
			t.Errorf("%s: %+v", id, s.Health)
		}
	}
	if len(sources) < 30 {
		t.Errorf("%d sources", len(sources))
	}
	address := strings.TrimPrefix(p.URL, "http://")
	const connections = 3 * 128 // serve allows 128
	for range connections {
		conn, err := net.Dial("tcp", address)
		noError(t, err)
		defer func() { _ = conn.Close() }()
		if _, err = conn.Write([]byte("GET /v1/currencies HTTP/1.1\r\nHost: a\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || answer.StatusCode != http.StatusOK || answer.Header.Get("X-RateLimit-Limit") != "" {
			t.Fatalf("%+v: %v", answer, err)
		}
		_ = answer.Body.Close()
	}
	if rest := p.Output()[strings.Index(p.Output(), printed)+len(printed):]; strings.TrimSpace(rest) != "" {
		t.Errorf("it logged %s", rest)
	}
}

// TestDemo_KeepsItsDirectory wants a second run to go on with the first one's data, this time with limits, and
// neither a node to take the demo's directory nor a demo that of a node.
func TestDemo_KeepsItsDirectory(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	for _, limits := range []string{"off", "on"} {
		p, temp := startDemo(t, "--data", data, "--limits", limits)
		p.Await("Ctrl-C stops it.")
		if got := (caller{t: t, node: p}).must("GET", countedPath, "", http.StatusOK, ""); limits == "on" && got.left(t, "minute") != 59 {
			t.Errorf("%d left of the minute", got.left(t, "minute"))
		}
		p.stop(os.Interrupt)
		leavesNothing(t, temp)
	}
	refused := run(t, nil, nil, serveArgs(data)...)
	if last := ": the data directory holds made-up rates of demo-"; refused.code != exit.BadData || !strings.Contains(refused.stderr, last) {
		t.Errorf("a node on the demo's directory: exit code %d\n%s", refused.code, refused.stderr)
	}
	realData := importedData(t, observation(1, "59", "60"))
	got := run(t, nil, nil, "demo", "--listen", "127.0.0.1:0", "--data", realData)
	got.stderr = lastLine(got.stderr) // there may be a warning about open files
	got.fails(t, exit.BadData, realData+" holds real rates, of popular-site")
	long := filepath.Join(t.TempDir(), strings.Repeat("a", 120))
	contains(t, run(t, nil, nil, "demo", "--data", long).stderr, "--data: path too long for a socket", "choose a shorter one")
}

// TestDemo_CallsItselfAsItWasCalled wants the line to try to work where the program is not in the PATH, as after make
// run.
func TestDemo_CallsItselfAsItWasCalled(t *testing.T) {
	for name, want := range map[string]string{"./tasard": "./tasard", "/opt/tasard-1.0/tasard": "/opt/tasard-1.0/tasard", "": "tasard", "/tmp/a b;c": "tasard"} {
		lines := exampleCommands((&process.Process{Name: name}).ProgramName(), "http://127.0.0.1:8080", "/tmp/demo/admin.sock")
		if !strings.Contains(lines, "\n  "+want+" sources list --admin-socket /tmp/demo/admin.sock\n") {
			t.Errorf("called as %q:\n%s", name, lines)
		}
	}
}

// startMock is a mock with free ports, the address of its controls, and the directory of its temporary files.
func startMock(t *testing.T, args ...string) (mock *program, controls, temp string) {
	t.Helper()
	temp = t.TempDir()
	args = append([]string{"mock", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0"}, args...)
	p := startWith(t, "now", []string{"TMPDIR=" + temp}, args...).listening()
	p.Await("controls on ")
	found := regexp.MustCompile(`controls on (http://\S+)`).FindStringSubmatch(p.Output())
	if found == nil {
		t.Fatalf("no controls in\n%s", p.Output())
	}
	return p, found[1], temp
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
	p, controls, temp := startMock(t)
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
	leavesNothing(t, temp)
}

// TestMock_Flags: clock, faults, limits and keys are as they were asked for.
func TestMock_Flags(t *testing.T) {
	p, controls, _ := startMock(t, "--clock", "2026-03-02T17:00:00Z", "--limits", "on", "--keys-required", "on", "--fail", "503@/v1/currencies")
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
	node, controls, _ := startMock(t, "--limits", "on", "--keys-required", "on")
	key := strings.Split(postControl(t, controls+"keys", ""), `"`)
	secret := key[slices.IndexFunc(key, func(word string) bool { return strings.HasPrefix(word, "tasard_test_") })]
	session := overPipes(t, "--url", node.URL, "--key-file", writeFile(t, "key", secret+"\n"))
	text, failed := calledTool(t, session, "best_rate", map[string]any{"currency": "USD", "operation": "buy"})
	if failed || !strings.Contains(text, "Source: tasard, "+node.URL) || strings.Contains(text, secret) {
		t.Errorf("best_rate: %s", text)
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
	_, controls, _ := startMock(t, "--lenient", "--catalogue", catalogue)
	for _, rate := range []string{`[{"institution":"ambar","currency":"USD","buy":"70.20","sell":"71.20"}]`, `[{"institution":"acme","currency":"USD","buy":"58.20","sell":"59.20"}]`} {
		postControl(t, controls+"rates", rate)
	}
	run(t, nil, nil, "mock", "--listen", "127.0.0.1:0", "--catalogue", "none.json").fails(t, exit.BadData, "--catalogue", "none.json")
	run(t, nil, nil, "mock", "--listen", "127.0.0.1:0", "--catalogue", writeFile(t, "bad.json", "{")).fails(t, exit.Usage, "bad.json")
}
