package main

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tasard/tasard/engine"
)

// TestS15_BothListeners wants the same conditions at both listeners and in the metrics, with limits on and keys unknown, before and after
// the first rate.
func TestS15_BothListeners(t *testing.T) {
	data := t.TempDir()
	p := start(t, realNow, serveArgs(data)...).listening()
	p.await("recovered 0 rates")
	if status, headers := p.ask(http.MethodGet, "/readyz"); status != http.StatusServiceUnavailable || headers.Get("Retry-After") != "2" {
		t.Errorf("without rates: %d, Retry-After %q", status, headers.Get("Retry-After"))
	}
	if body := p.mustGet("/livez"); body != `{"status":"live"}` {
		t.Errorf("/livez: %s", body)
	}
	text := askSocket(t, data, metricsPath)
	for _, line := range []string{`tasard_condition{name="data",state="empty"} 1`, `tasard_condition{name="log",state="ok"} 1`, `tasard_readiness{status="unavailable"} 1`} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("metrics lack %s", line)
		}
	}
	if got := run(t, nil, nil, "admin", "rates", "set", "popular", "USD", "--buy", "58.10", "--sell", "59.30", "--data", data); got.code != exitDone {
		t.Fatalf("set a rate: %+v", got)
	}
	var public struct {
		Status     engine.Readiness
		Conditions []struct{ Name, State string }
	}
	if err := json.Unmarshal([]byte(p.mustGet("/readyz")), &public); err != nil || public.Status != engine.Ready {
		t.Errorf("with a rate: %+v, %v", public, err)
	}
	var shown shownReadiness
	err := json.Unmarshal([]byte(askSocket(t, data, readyzPath)), &shown)
	if err != nil || shown.Status != engine.Ready || len(shown.Conditions) != len(public.Conditions) || shown.Version == "" {
		t.Errorf("at the management socket: %v, %+v", err, shown)
	}
}

// askSocket is what the management listener of a node answers.
func askSocket(t *testing.T, data, path string) string {
	t.Helper()
	answer, err := newAdminNode(filepath.Join(data, adminSocketName), "").ask(t.Context(), http.MethodGet, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Close()
	text, err := io.ReadAll(answer)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
