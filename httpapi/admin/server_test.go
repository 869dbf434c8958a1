package admin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// fakeNode is a node with one account and one held value, on which every change succeeds.
type fakeNode struct {
	changes int
	by      string
}

func (n *fakeNode) ListAccounts() ([]account.Summary, error) {
	email, err := account.ParseEmail("ana@example.com")
	return []account.Summary{{ID: 7, Email: email.ID()}}, err
}

func (n *fakeNode) ShowAccount(id uint64) (account.Record, account.QuotaResult, error) {
	if id != 7 {
		return account.Record{}, account.QuotaResult{}, &engine.Error{Code: engine.CodeNotFound, Message: "no such account"}
	}
	return account.Record{ID: 7}, account.QuotaResult{}, nil
}

func (n *fakeNode) change(by string) error {
	n.changes++
	n.by = by
	return nil
}

func (n *fakeNode) SuspendAccount(_ uint64, _, by string) error                { return n.change(by) }
func (n *fakeNode) RestoreAccount(_ uint64, by string) error                   { return n.change(by) }
func (n *fakeNode) SetAccountQuota(_ uint64, _ account.Quota, by string) error { return n.change(by) }
func (n *fakeNode) UnlockLogin(_ account.EmailID, by string) error             { return n.change(by) }
func (n *fakeNode) WithdrawAnnouncement(by string) error                       { return n.change(by) }
func (n *fakeNode) KeyPolicy() account.KeyPolicy                               { return account.KeyPolicy{} }
func (n *fakeNode) Announce(_ time.Time, by string) (account.KeyPolicy, error) {
	return account.KeyPolicy{}, n.change(by)
}

func (n *fakeNode) Observe([]engine.Refresh) (engine.Receipt, error) {
	return engine.Receipt{Accepted: 1, Changed: 1}, n.change("")
}

func (n *fakeNode) Rates(engine.RatesQuery) (*engine.Page[*engine.Rate], error) {
	return &engine.Page[*engine.Rate]{}, nil
}

func (n *fakeNode) Quarantine(currency string) ([]engine.Quarantined, error) {
	return []engine.Quarantined{{
		ID: 17, SourceID: "popular-site", Reason: engine.Jump,
		Observation: engine.Observation{InstitutionID: "popular", Currency: cmp.Or(currency, "USD"), Buy: "5.81"},
	}}, nil
}

func (n *fakeNode) Execute(_ string, c engine.Command) (engine.Receipt, error) {
	return engine.Receipt{}, n.change(reflect.ValueOf(c).FieldByName("By").String())
}

func at() time.Time { return time.Date(2026, 6, 30, 15, 0, 0, 0, time.UTC) }

// serverOf tells of a node in which something is wrong, and which can't be copied.
func serverOf(node Node) *Server {
	return New(Config{
		Node: node, Catalogue: engine.DefaultCatalogue(), DefaultQuota: account.DefaultQuota(), Mail: MailSMTP, Clock: at, Logger: slog.New(slog.DiscardHandler),
		Readiness: func() Readiness {
			conditions := []engine.Condition{engine.HealthyCondition("log"), {Name: "disk", State: "slow", Detail: "slow"}}
			return Readiness{Status: engine.ReadinessOf(conditions), Conditions: conditions, Log: Log{Failure: "secret cause"}}
		},
		Sources: func() Sources { return Sources{Sources: []Source{}} },
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "tasard_up 1\n") }),
		Backup: func(io.Writer) (uint64, error) {
			return 0, errors.New("nothing to copy")
		},
	})
}

// request returns the response to a request. media is its Content-Type, "" for none.
func request(t *testing.T, s *Server, method, path, media, body string) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	if media != "" {
		req.Header.Set("Content-Type", media)
	}
	answer := httptest.NewRecorder()
	s.Handler().ServeHTTP(answer, req)
	return answer
}

// TestListen_AfterACrash checks that a stop during the start does not make an error of the socket that a crash left.
func TestListen_AfterACrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), SocketName)
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Listen(ctx, path); left.Close() != nil || !errors.Is(err, ErrInUse) || strings.Contains(err.Error(), "find out") {
		t.Errorf("beside a node that runs: %v", err)
	}
	if listener, err := Listen(ctx, path); err != nil || listener.Close() != nil {
		t.Errorf("after a crash: %v", err)
	}
}

// TestServer_OnlyItsOwnRequests sends what tasard admin would not.
func TestServer_OnlyItsOwnRequests(t *testing.T) {
	for _, test := range []struct {
		method, path, media, body string
		status                    int
	}{
		{"GET", "/keys-required", "", "", http.StatusOK},
		{"GET", "/", "", "", http.StatusNotFound},
		{"GET", "/accounts/", "", "", http.StatusNotFound},
		{"PUT", "/accounts", "", "", http.StatusNotFound},
		{"GET", "/accounts/-1", "", "", http.StatusBadRequest},
		{"GET", "/accounts/18446744073709551616", "", "", http.StatusBadRequest},
		{"POST", "/accounts/1/restore", "", "{}", http.StatusBadRequest},
		{"POST", "/accounts/1/restore", "text/plain", "{}", http.StatusBadRequest},
		{"POST", "/accounts/1/restore", typeJSON, "", http.StatusBadRequest},
		{"POST", "/accounts/1/restore", typeJSON, `{"bye":"x"}`, http.StatusBadRequest},
		{"POST", "/accounts/1/restore", typeJSON, `{} {}`, http.StatusBadRequest},
		{"POST", "/accounts/1/restore", typeJSON, `{"by":"` + strings.Repeat("x", bodyMax) + `"}`, http.StatusBadRequest},
		{"POST", "/accounts/1/restore", typeJSON, `{"by":"a\nb"}`, http.StatusBadRequest},
		{"POST", "/accounts/1/restore", typeJSON, `{"by":"` + strings.Repeat("x", ByMax+1) + `"}`, http.StatusBadRequest},
		{"GET", "/accounts/1", "", "", http.StatusNotFound},
		{"POST", "/accounts/1/suspend", typeJSON, `{"reason":" "}`, http.StatusBadRequest},
		{"POST", "/accounts/1/suspend", typeJSON, `{"reason":"a\u001b[2Jb"}`, http.StatusBadRequest},
		{"POST", "/keys-required", typeJSON, `{"at":"soon"}`, http.StatusBadRequest},
		{"POST", SetRate.path, typeJSON, `{"institution":"popular","currency":"USD"}`, http.StatusBadRequest},
		{"POST", SetRate.path, typeJSON, `{"institution":"popular","currency":"USD","buy":"0"}`, http.StatusBadRequest},
		{"POST", SetRate.path, typeJSON, `{"institution":"popular","currency":"USD","sell":"-1"}`, http.StatusBadRequest},
		{"POST", SetRate.path, typeJSON, `{"institution":"popular","currency":"USD","sell":"1e2"}`, http.StatusBadRequest},
		{"POST", SetRate.path, typeJSON, `{"institution":"popular","currency":"USD","sell":"057.5"}`, http.StatusBadRequest},
		{"POST", SetRate.path, typeJSON, `{"institution":"popular","currency":"USD","buy":58.1}`, http.StatusBadRequest},
		{"POST", SetRate.path, typeJSON, `{"institution":"popular","currency":"USD","buy":"58.1","for":"soon"}`, http.StatusBadRequest},
		{"POST", SetRate.path, typeJSON, `{"institution":"popular","currency":"USD","buy":"58.1","for":"-1h"}`, http.StatusBadRequest},
		{"POST", SetRate.path, typeJSON, `{"institution":"popular","currency":"USD","buy":"58.1","for":"1h","expiresAt":"2026-07-01T00:00:00Z"}`, http.StatusBadRequest},
		{"POST", SetRate.path, typeJSON, `{"institution":"popular","currency":"USD","buy":"58.1","effectiveDate":"2026-02-30"}`, http.StatusBadRequest},
		{"POST", SetRate.path, typeJSON, `{"institution":"popular","currency":"USD","buy":"58.1","channel":"cellar"}`, http.StatusBadRequest},
		{"POST", SetRate.path, typeJSON, `{"institution":"popular","currency":"USD","buy":"58.1","kind":"x"}`, http.StatusBadRequest},
		{"POST", SetRate.path, typeJSON, `{"institution":"popular","currency":"USD","buy":"58.1","by":"a\nb"}`, http.StatusBadRequest},
		{"DELETE", SetRate.path, typeJSON, `{"institution":"","currency":"USD","source":"manual"}`, http.StatusBadRequest},
		{"POST", "/quarantine/USD/-1/release", typeJSON, `{}`, http.StatusBadRequest},
		{"POST", "/quarantine/USD/17/release", typeJSON, `{"by":"a\nb"}`, http.StatusBadRequest},
	} {
		node := &fakeNode{}
		if got := request(t, serverOf(node), test.method, test.path, test.media, test.body); got.Code != test.status || node.changes > 0 {
			t.Errorf("%s %s %.80s: status %d, want %d, %d changes", test.method, test.path, test.body, got.Code, test.status, node.changes)
		}
	}
}

// FuzzServer wants every request to be answered with JSON, and nothing to be changed by one that is refused or has an
// author that would not stay on its line.
func FuzzServer(f *testing.F) {
	f.Add("GET", "/accounts", "")
	f.Add("POST", "/accounts/7/suspend", `{"reason":"x","by":"ana"}`)
	f.Add("POST", "/accounts/ana@example.com/limit", `{"day":5}`)
	f.Add("POST", "/keys-required", `{"at":"2027-01-01T00:00:00Z"}`)
	f.Add("DELETE", "/keys-required", "{}")
	f.Add("GET", "/accounts/%2f%00", "")
	f.Add("GET", "/quarantine?currency=USD&source=x", "")
	f.Add("POST", "/quarantine/USD/17/release", `{"by":"ana"}`)
	f.Add("POST", "/rates", `{"institution":"popular","currency":"USD","buy":"58.10","for":"6h"}`)
	f.Add("DELETE", "/rates", `{"institution":"popular","currency":"USD","source":"manual"}`)
	f.Fuzz(func(t *testing.T, method, path, body string) {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://node"+path, strings.NewReader(body))
		if err != nil || !strings.HasPrefix(path, "/") {
			t.Skip()
		}
		req.Header.Set("Content-Type", typeJSON)
		node := &fakeNode{}
		answer := httptest.NewRecorder()
		serverOf(node).Handler().ServeHTTP(answer, req)
		switch {
		case answer.Code/100 == 3: // a path that the library cleans
		case !json.Valid(answer.Body.Bytes()):
			t.Errorf("%s %s %q: %d %q", method, path, body, answer.Code, answer.Body)
		}
		if node.changes > 1 || node.changes == 1 && answer.Code/100 == 4 && answer.Code != 404 || strings.ContainsAny(node.by, "\r\n\x1b") {
			t.Errorf("%s %s %q: %d, %d changes by %q", method, path, body, answer.Code, node.changes, node.by)
		}
	})
}

// TestServer_Author wants the operating system's user in every author, whatever name is given.
func TestServer_Author(t *testing.T) {
	ctx := context.WithValue(t.Context(), peerKey{}, "root")
	for by, want := range map[string]string{"": "root", "ana": "ana (root)", "root": "root (root)"} {
		if got := authorName(ctx, Author{by}); got != want {
			t.Errorf("%q: %q, want %q", by, got, want)
		}
	}
}

// TestServer_Public: the listener for Prometheus serves only metrics and health, without causes.
func TestServer_Public(t *testing.T) {
	node := &fakeNode{}
	public := serverOf(node).public()
	for target, want := range map[string]int{
		"GET /metrics": 200, "GET /livez": 200, "GET /readyz": 200, "HEAD /livez": 200, "POST /metrics": 405, "GET /": 404, "GET /debug/pprof/": 404,
		"GET /accounts": 404, "POST /accounts/7/suspend": 404, "GET /quarantine": 404, "GET /backup": 404, "GET /sources": 404, "DELETE /keys-required": 404,
	} {
		method, path, _ := strings.Cut(target, " ")
		answer := httptest.NewRecorder()
		public.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), method, path, nil))
		if answer.Code != want {
			t.Errorf("%s: %d, want %d", target, answer.Code, want)
		}
		if body := answer.Body.String(); strings.Contains(body, "secret") || path == ReadyzPath && !strings.Contains(body, `{"status":"degraded","conditions":[{"name":"log"`) {
			t.Errorf("%s: %s", target, body)
		}
	}
	if node.changes > 0 {
		t.Error("the listener has changed something")
	}
}

// TestServer_WatchedFromOutside: an address that other machines reach is warned of.
func TestServer_WatchedFromOutside(t *testing.T) {
	open, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s := serverOf(&fakeNode{})
	s.config.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s.ServeMetrics(open)
	if err := s.Stop(t.Context()); err != nil || !strings.Contains(log.String(), "every client that reaches this address can read the metrics") {
		t.Errorf("%v: %s", err, log.String())
	}
}

// TestBackup_OneAtATime: a second backup is rejected while one is running, and a node that stops ends a backup.
func TestBackup_OneAtATime(t *testing.T) {
	s := serverOf(&fakeNode{})
	s.backupSlot.busy.Store(true)
	if got := request(t, s, http.MethodGet, backupPath, "", ""); got.Code != http.StatusServiceUnavailable {
		t.Errorf("the second is answered %d", got.Code)
	}
	s.backupSlot.busy.Store(false)
	for range 2 { // the first has let go
		if got := request(t, s, http.MethodGet, backupPath, "", ""); got.Code != http.StatusInternalServerError || !json.Valid(got.Body.Bytes()) {
			t.Errorf("a copy that fails is answered %d: %s", got.Code, got.Body)
		}
	}
	recorder := httptest.NewRecorder()
	out := &backupWriter{w: recorder, control: http.NewResponseController(recorder), stopping: make(chan struct{})}
	if _, err := out.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	close(out.stopping)
	if _, err := out.Write([]byte("x")); !errors.Is(err, errStopping) {
		t.Errorf("a node that stops: %v", err)
	}
}
