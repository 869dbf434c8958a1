package cmd

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/engine/account/secrettest"
)

// limitedArgs returns the arguments of a node with quotas that sends mail to the mail server.
func limitedArgs(data string, box *mailServer, more ...string) []string {
	args := append([]string{"serve", "--listen", "127.0.0.1:0", "--data", data, "--no-collect", "--log-format", "json", "--log-level", "debug"}, box.args()...)
	return append(args, more...)
}

// startLimited starts such a node and waits until it is ready.
func startLimited(t *testing.T, args []string) caller {
	t.Helper()
	return caller{t: t, node: startReady(t, args...)}
}

// TestK1_TheWholeWay goes from an address to a counted request, rotates the key, revokes it and signs out, against
// the real program and a real mail server; then it looks for secrets in everything that was written.
func TestK1_TheWholeWay(t *testing.T) {
	t.Parallel()
	const email = "canary.ana.perez@example.do"
	data, box := t.TempDir(), newMailServer(t)
	anyone := startLimited(t, limitedArgs(data, box))

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
	noTraces(t, anyone.node, data, email, secrets)
}

// wrong is a code that is not this one.
func wrong(code string) string {
	return code[:7] + string('0'+(code[7]-'0'+1)%10)
}

// wantMinute wants the headers of an answer to describe the minute, of which so many requests are left.
func wantMinute(t *testing.T, got reply, left int) {
	t.Helper()
	if got.left(t, "minute") != left || got.number(t, "X-RateLimit-Reset") == 0 {
		t.Errorf("want %d left, got %v", left, got.header)
	}
}

// noTraces stops the node and wants no secret and no complete e-mail address in its output, its data and the output
// of the log commands.
func noTraces(t *testing.T, p *program, data, email string, secrets []string) {
	t.Helper()
	lists := mustRun(t, "admin", "accounts", "list", "--data", data) + mustRun(t, "admin", "accounts", "list", "--data", data, "--json")
	if !strings.Contains(lists, "c…@….do") {
		t.Errorf("the account is not listed: %s", lists)
	}
	files := contentOf(t, data)
	p.stop(syscall.SIGTERM)
	files += contentOf(t, data)
	said := p.Output() + lists + mustRun(t, "log", "dump", "--data", data)
	t.Logf("%d secrets, %d bytes of output, %d bytes of data", len(secrets), len(said), len(files))
	snapshots, err := filepath.Glob(data + "/snapshot-*")
	if err != nil || len(snapshots) == 0 || !strings.Contains(readFile(t, snapshots[0]), "c…@….do") ||
		!strings.Contains(said, "account operation") || !strings.Contains(said, "keyRevoked") {
		t.Error("the search looks in the wrong place")
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

// TestL1_StopsAndKills wants a clean stop to cost nothing, and a kill at most one lease.
func TestL1_StopsAndKills(t *testing.T) {
	t.Parallel()
	const lease = 16
	data, box := t.TempDir(), newMailServer(t)
	args := limitedArgs(data, box, "--quota-minute", "1000")
	key, _ := startLimited(t, args).signIn(box, "ana@example.com").newKey("key")
	left := 1000
	for round, signal := range []os.Signal{syscall.SIGTERM, os.Kill, syscall.SIGTERM, os.Kill, os.Kill} {
		for range 5 {
			got := key.must("GET", countedPath, "", http.StatusOK, "").left(t, "day")
			if got >= left {
				t.Errorf("round %d: %d left after %d", round, got, left)
			}
			left = got
		}
		key.node.signal(signal)
		key.node = startLimited(t, args).node
		usage := key.must("GET", usagePath, "", http.StatusOK, "").body
		var now int
		if _, err := fmt.Sscanf(usage, `{"data":{"day":{"limit":1000,"remaining":%d,`, &now); err != nil {
			t.Fatalf("%v in %s", err, usage)
		}
		forfeited := left - now
		t.Logf("round %d: %v costs %d", round, signal, forfeited)
		if most := map[os.Signal]int{syscall.SIGTERM: 0, os.Kill: lease}[signal]; forfeited < 0 || forfeited > most {
			t.Errorf("round %d: %v costs %d requests, at most %d", round, signal, forfeited, most)
		}
		left = now
	}
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
