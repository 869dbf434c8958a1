package cmd

import (
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/httpapi/admin"
)

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
