package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPing_States wants the code of a health check to follow the node: none, one without data, one that answers, one that is gone.
func TestPing_States(t *testing.T) {
	data := t.TempDir()
	if got := run(t, nil, nil, "ping", "--live", "--data", data); got.code != exitUnavailable || !strings.Contains(got.stderr, "no node is running") {
		t.Errorf("without a node: %+v", got)
	}
	p := start(t, realNow, serveArgs(data)...).listening()
	p.await("recovered 0 rates")
	if got := run(t, nil, nil, "ping", "--data", data); got.code != exitUnavailable || got.stdout != "unavailable, data: empty\n" {
		t.Errorf("without rates: %+v", got)
	}
	if got := run(t, nil, nil, "ping", "--live", "--data", data); got.code != exitDone || got.stdout != "unavailable, data: empty\n" {
		t.Errorf("alive without rates: %+v", got)
	}
	mustRun(t, "admin", "rates", "set", "popular", "USD", "--buy", "58.10", "--sell", "59.30", "--data", data)
	socket := "TASARD_ADMIN_SOCKET=" + filepath.Join(data, adminSocketName)
	if got := run(t, []string{socket}, nil, "ping"); got.code != exitDone || got.stdout != "ready\n" {
		t.Errorf("with a rate: %+v", got)
	}
	if got := run(t, nil, nil, "ping", "--json", "--data", data); got.code != exitDone || !strings.HasPrefix(got.stdout, `{"status":"ready","conditions":[{`) {
		t.Errorf("as JSON: %+v", got)
	}
	if code := p.signal(syscall.SIGTERM); code != exitDone {
		t.Fatalf("the node ended with code %d", code)
	}
	if got := run(t, nil, nil, "ping", "--data", data); got.code != exitUnavailable {
		t.Errorf("of a node that has stopped: %+v", got)
	}
}

// TestPing_NotANode wants an answer that is none to be told as that.
func TestPing_NotANode(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	other := httptest.NewUnstartedServer(http.NotFoundHandler())
	other.Listener = listener
	other.Start()
	defer other.Close()
	if got := run(t, nil, nil, "ping", "--live", "--admin-socket", socket); got.code != exitBroken || !strings.Contains(got.stderr, "404 Not Found") {
		t.Errorf("of something else: %+v", got)
	}
}
