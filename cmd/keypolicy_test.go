package cmd

import (
	"context"
	"crypto/rand"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tasard/tasard/cmd/cmdtest"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/httpapi/apitest"
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

// TestK6_TheDayComes runs the parts of the program on a clock of the test's: 401s begin at the announced instant, not a
// nanosecond sooner or later, and without a restart.
func TestK6_TheDayComes(t *testing.T) {
	box, h := newMailServer(t), &apitest.Clock{}
	h.Set(time.Date(2026, 6, 30, 15, 0, 0, 0, time.UTC))
	required := h.Now().Add(15 * 24 * time.Hour)
	anyone, data := startOnClock(t, box, h)
	key, _ := anyone.signIn(box, "ana@example.com").newKey("key")
	last := "x"
	if strings.HasSuffix(key.token, last) {
		last = "y"
	}
	revoked := key.with(key.token[:len(key.token)-1] + last)
	runAdmin(t, data, "keys-required", "--at", required.Format(time.RFC3339))

	h.Set(required.Add(-1))
	for _, who := range []caller{anyone, key, revoked} {
		if got := who.must("GET", countedPath, "", http.StatusOK, ""); got.header.Get("Sunset") == "" {
			t.Errorf("no Sunset a nanosecond before: %v", got.header)
		}
	}
	h.Set(required)
	refused := anyone.must("GET", countedPath, "", http.StatusUnauthorized, "missing_key")
	if got := refused.header.Get("WWW-Authenticate"); got != `Bearer realm="tasard"` {
		t.Errorf("WWW-Authenticate is %s", got)
	}
	if got := revoked.must("GET", countedPath, "", http.StatusUnauthorized, "invalid_key"); got.header.Get("WWW-Authenticate") != `Bearer realm="tasard", error="invalid_token"` {
		t.Errorf("WWW-Authenticate is %v", got.header)
	}
	got := key.must("GET", countedPath, "", http.StatusOK, "")
	for _, name := range []string{"Deprecation", "Sunset", "Link"} {
		if got.header.Get(name)+refused.header.Get(name) != "" {
			t.Errorf("%s is still there", name)
		}
	}
	anyone.must("OPTIONS", countedPath, "", http.StatusNoContent, "")
	if said := runAdmin(t, data, "keys-required", "--show"); !strings.HasPrefix(said, "Keys are required since 2026-07-15T15:00:00Z") {
		t.Errorf("show says %q", said)
	}
	late := run(t, nil, nil, "admin", "keys-required", "--withdraw", "--data", data)
	if late.code != exit.Usage {
		t.Errorf("withdrawn after the day: exit code %d, %s", late.code, late.stdout)
	}
}

// startOnClock runs the serve command in this process, on a clock that the test turns.
func startOnClock(t *testing.T, box *mailServer, h *apitest.Clock) (caller, string) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	p := &commands{&process.Process{
		Args: limitedArgs(data, box), Stdin: strings.NewReader(""), Stdout: write, Stderr: write,
		Clock: h.Now, Seed: randomSeed, Random: rand.Reader,
	}}
	node := &program{cmdtest.Follow(t, nil, read), t}
	ctx, stop := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() {
		code <- p.run(ctx)
		_ = write.Close()
	}()
	t.Cleanup(func() {
		stop()
		if got := <-code; got != exit.OK {
			t.Errorf("exit code %d:\n%s", got, node.Output())
		}
		<-node.Done
	})
	node.listening().Await("recovered")
	return caller{t: t, node: node}, data
}
