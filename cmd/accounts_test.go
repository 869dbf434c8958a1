package cmd

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/engine/account/secrettest"
	"github.com/tasard/tasard/httpapi/admin"
)

// limitedArgs returns the arguments of a node with quotas that sends mail to the mail server.
func limitedArgs(data string, box *mailServer, more ...string) []string {
	args := append([]string{"serve", "--listen", "127.0.0.1:0", "--data", data, "--no-collect", "--log-format", "json", "--log-level", "debug"}, box.args()...)
	return append(args, more...)
}

// TestK1_TheWholeWay goes from an address to a counted request, rotates the key, revokes it and signs out, against
// the real program and a real mail server; then it looks for secrets in everything that was written.
func TestK1_TheWholeWay(t *testing.T) {
	t.Parallel()
	const email = "canary.ana.perez@example.do"
	data, box := t.TempDir(), newMailServer(t)
	args := limitedArgs(data, box)
	anyone := caller{t: t, node: startImported(t, args, observation(1, "59", "60"))}

	anyone.must("POST", codesPath, `{"email":"`+email+`"}`, http.StatusAccepted, "")
	code := box.code(email)
	anyone.must("POST", sessionsPath, `{"email":"`+email+`","code":"`+wrong(code)+`"}`, http.StatusUnauthorized, "invalid_code")
	opened := anyone.must("POST", sessionsPath, `{"email":"`+email+`","code":"`+code+`"}`, http.StatusOK, "")
	session := anyone.with(opened.field(t, "token"))

	first, firstID := session.newKey("server")
	wantMinute(t, first.must("GET", countedPath, "", http.StatusOK, ""), 59)
	second, secondID := session.newKey("rotation")
	wantMinute(t, second.must("GET", countedPath, "", http.StatusOK, ""), 58) // one quota for both
	if got := first.must("GET", countedPath+"?limt=5", "", http.StatusBadRequest, "").left(t, "minute"); got != 57 {
		t.Errorf("a 400 leaves %d of the minute, want 57", got)
	}

	for range 2 { // revoking can be repeated
		session.must("DELETE", keysPath+"/"+firstID, "", http.StatusNoContent, "")
	}
	first.must("GET", usagePath, "", http.StatusUnauthorized, "revoked_key")
	if got := first.must("GET", countedPath, "", http.StatusOK, "").left(t, "minute"); got != 59 { // anonymous while keys are optional: the address is charged (decision K6)
		t.Errorf("a revoked key leaves %d of the minute, want 59 of the address", got)
	}
	usage := second.must("GET", usagePath, "", http.StatusOK, "")
	if !strings.Contains(usage.body, `"day":{"limit":1000,"remaining":997,`) {
		t.Errorf("usage of the key is %s", usage.body)
	}
	list := session.must("GET", keysPath, "", http.StatusOK, "").body
	if !strings.Contains(list, `"id":"`+firstID+`"`) || !strings.Contains(list, `"status":"revoked"`) || !strings.Contains(list, `"id":"`+secondID+`"`) {
		t.Errorf("the keys are %s", list)
	}
	session.must("DELETE", sessionsPath, "", http.StatusNoContent, "")
	refused := session.must("GET", keysPath, "", http.StatusUnauthorized, "invalid_session")
	if got := refused.header.Get("WWW-Authenticate"); got != `Bearer realm="tasard", error="invalid_token"` {
		t.Errorf("WWW-Authenticate is %s", got)
	}

	secrets := append(box.codes, wrong(code), session.token, first.token, second.token, mailPassword)
	noTraces(t, anyone.misuse(append(secrets, email)), args, data, email, secrets)
}

// misuse sends secrets where they do not belong. It returns what the node has said and shows then, also to its operator
// and when it crashes.
func (c caller) misuse(secrets []string) string {
	c.t.Helper()
	said := ""
	for _, secret := range secrets {
		said += c.send("GET", "/v1/rates?key="+url.QueryEscape(secret), "").body + c.with(secret+"x").send("GET", "/v1/rates", "").body
		path := c.send("GET", "/v1/institutions/"+url.PathEscape(secret), "")
		body := c.send("POST", sessionsPath, fmt.Sprintf(`{"email":%q,"code":%[1]q,%[1]q:1}`, secret))
		said += fmt.Sprint(path.header, body.header) // a body may repeat a name to the client that sent it (goal Q1)
	}
	data := c.node.Cmd.Args[5]
	for _, path := range []string{
		admin.MetricsPath, admin.ReadyzPath, "/accounts", "/accounts/1", "/keys-required", "/quarantine", "/sources",
		"/debug/pprof/heap?debug=1", "/debug/pprof/goroutine?debug=2",
	} {
		said += askSocket(c.t, data, path)
	}
	c.node.signal(syscall.SIGQUIT) // prints all goroutines, like a crash
	c.node.Expected = true
	said += c.node.Output()
	contains(c.t, said, "goroutine ", "tasard_accounts 1\n", "account operation", "keys go in the Authorization header")
	return said
}

// wrong is a code that is not this one.
func wrong(code string) string {
	return code[:7] + string('0'+(code[7]-'0'+1)%10)
}

// wantMinute wants the headers of an answer to describe the minute, of which so many requests are left.
func wantMinute(t *testing.T, got answer, left int) {
	t.Helper()
	if got.left(t, "minute") != left || got.number(t, "X-RateLimit-Reset") == 0 {
		t.Errorf("want %d left, got %v", left, got.header)
	}
}

// noTraces wants no secret and no complete e-mail address in what a node has said, in its data, also after another
// start and a stop, and in the output of commands.
func noTraces(t *testing.T, said string, args []string, data, email string, secrets []string) {
	t.Helper()
	files := contentOf(t, data)
	p := startReady(t, args...)
	lists := mustRun(t, "admin", "accounts", "list", "--data", data) + mustRun(t, "admin", "accounts", "list", "--data", data, "--json")
	p.stop(syscall.SIGTERM)
	files += contentOf(t, data)
	said += p.Output() + lists + mustRun(t, "log", "dump", "--data", data)
	t.Logf("%d secrets, %d bytes of output, %d bytes of data", len(secrets), len(said), len(files))
	snapshots, err := filepath.Glob(data + "/snapshot-*")
	if err != nil || len(snapshots) == 0 || !strings.Contains(readFile(t, snapshots[0]), "c…@….do") || !strings.Contains(lists, "c…@….do") ||
		!strings.Contains(said, "keyRevoked") {
		t.Errorf("the search looks in the wrong place: %s", lists)
	}
	for _, leak := range secrettest.Leaks(said+files, append(secrets, email)...) {
		t.Error(leak)
	}
}

// contentOf is every file of a directory, one behind the other.
func contentOf(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	entries, err := os.ReadDir(dir)
	noError(t, err)
	for _, entry := range entries {
		if entry.Type().IsRegular() {
			all.WriteString(readFile(t, dir+"/"+entry.Name()))
		}
	}
	return all.String()
}

// TestL8_TrustedProxy wants callers behind a named proxy to be counted one by one, and all others by their connection.
func TestL8_TrustedProxy(t *testing.T) {
	for _, test := range []struct {
		args []string
		want []int
	}{{nil, []int{59, 58}}, {[]string{"--trusted-proxy", "10.0.0.0/8", "--trusted-proxy", "127.0.0.0/8,::1"}, []int{59, 59}}} {
		p := startReady(t, limitedArgs(t.TempDir(), newMailServer(t), test.args...)...)
		for i, from := range []string{"198.51.100.7", "198.51.100.8"} {
			if got := (caller{t: t, node: p, from: from}).must("GET", countedPath, "", http.StatusOK, "").left(t, "minute"); got != test.want[i] {
				t.Errorf("%v: %s has %d left, want %d", test.args, from, got, test.want[i])
			}
		}
	}
}

// TestServe_MailServerDown wants an answer that waits for no mail server, and a clean stop that says what was given up.
func TestServe_MailServerDown(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	gone.Close()
	p := startNode(t, t.TempDir(), "--smtp-addr", gone.Addr().String(), "--smtp-tls", "off", "--mail-from", mailSender)
	caller{t: t, node: p}.must("POST", codesPath, `{"email":"ana@example.com"}`, http.StatusAccepted, "")
	p.stop(syscall.SIGTERM)
	p.Await("unsent emails: 1")
	p.Await("stopped")
}

// TestServe_WithoutMail wants a node that names no mail server to say so to the operator and to callers, and to offer
// no form that would fail.
func TestServe_WithoutMail(t *testing.T) {
	t.Parallel()
	node := startNode(t, t.TempDir())
	node.Await(command.NoMailNotice)
	caller{t: t, node: node}.must("POST", codesPath, `{"email":"ana@example.com"}`, http.StatusServiceUnavailable, "mail_unavailable")
	if page := node.mustGet("/account"); !strings.Contains(page, "no envía correos") || strings.Contains(page, "<form") {
		t.Errorf("not said, or there is a form:\n%s", page)
	}
}

// announced are the requests of every kind and the status of their answers before keys are required.
func announced() map[string]int {
	return map[string]int{
		"GET " + countedPath: http.StatusOK, "GET /v1/rates?limit=0": http.StatusServiceUnavailable, "GET " + countedPath + "?x=1": http.StatusBadRequest,
		"GET /v1/institutions/nobody": http.StatusNotFound, "POST " + countedPath: http.StatusMethodNotAllowed,
		"OPTIONS " + countedPath: http.StatusNoContent, "GET /nowhere": http.StatusNotFound, "GET " + keysPath: http.StatusUnauthorized,
	}
}

// wantNotice wants the announcement on every kind of answer, or on none.
func wantNotice(t *testing.T, anyone caller, deprecation, sunset, link string) {
	t.Helper()
	for request, status := range announced() {
		method, path, _ := strings.Cut(request, " ")
		got := anyone.must(method, path, "", status, "")
		if got.header.Get("Deprecation") != deprecation || got.header.Get("Sunset") != sunset || got.header.Get("Link") != link {
			t.Errorf("%s: Deprecation %q, Sunset %q, Link %q", request, got.header.Get("Deprecation"), got.header.Get("Sunset"), got.header.Get("Link"))
		}
	}
}

// TestK7_Announced announces and withdraws required keys at a running node, and looks at the answers.
func TestK7_Announced(t *testing.T) {
	t.Parallel()
	const link = `</docs>; rel="deprecation", </docs>; rel="sunset"`
	data := t.TempDir()
	args := serveArgs(data, "--limits", "on")
	p := startReady(t, args...)
	anyone := caller{t: t, node: p}
	if got := runAdmin(t, data, "keys-required", "--show"); got != "Keys are optional; nothing is announced.\n" {
		t.Errorf("show says %q", got)
	}
	wantNotice(t, anyone, "", "", "")

	got := runAdmin(t, data, "keys-required", "--at", "2026-07-15T00:00:00-04:00", "--by", "Ana")
	contains(t, got, "Keys are required from 2026-07-15T04:00:00Z on, in 14 days", "by Ana ("+osUser(t)+")", "Note: users can't get keys")
	shown := asJSON[admin.KeyPolicy](t, runAdmin(t, data, "keys-required", "--show", "--json"))
	if shown.State != admin.KeysAnnounced || shown.AnnouncedAt.Sub(clockFrom(realNow)()) > time.Minute {
		t.Errorf("shown as %+v", shown)
	}
	deprecation := "@" + strconv.FormatInt(shown.AnnouncedAt.Unix(), 10)
	const sunset = "Wed, 15 Jul 2026 04:00:00 GMT"
	wantNotice(t, anyone, deprecation, sunset, link)
	p.signal(os.Kill)
	anyone.node = startReady(t, args...)
	wantNotice(t, anyone, deprecation, sunset, link)

	anyone.node.signal(syscall.SIGTERM)
	refused := run(t, nil, nil, serveArgs(data, "--smtp-addr", "log")...)
	if refused.code != exit.BadData || !strings.Contains(refused.stderr, "keys are announced for 2026-07-15T04:00:00Z, and this node runs with --smtp-addr log") {
		t.Errorf("--smtp-addr log: exit code %d, %s", refused.code, refused.stderr)
	}
	anyone.node = startReady(t, args...)
	runAdmin(t, data, "keys-required", "--withdraw")
	wantNotice(t, anyone, "", "", "")
}

// TestK7_NotWithPrintedCodes wants a node that prints login codes to refuse to announce.
func TestK7_NotWithPrintedCodes(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p := startNode(t, data, "--smtp-addr", "log")
	run(t, nil, nil, "admin", "keys-required", "--at", "2026-08-01T00:00:00Z", "--data", data).fails(t, exit.BadData, "--smtp-addr log", "--smtp-addr")
	caller{t: t, node: p}.must("POST", codesPath, `{"email":"ana@example.com"}`, http.StatusAccepted, "")
	if line := p.Await("mail to=ana@example.com"); !strings.Contains(line, "code=") {
		t.Errorf("the letter is %q", line)
	}
}
