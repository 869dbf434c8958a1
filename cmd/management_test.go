package cmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

// stillNode is a node with one account and one held value, on which every change succeeds.
type stillNode struct {
	changes int
	by      string
}

func (n *stillNode) ListAccounts() ([]engine.AccountSummary, error) {
	email, err := engine.ParseEmail("ana@example.com")
	return []engine.AccountSummary{{ID: 7, Email: email.ID()}}, err
}

func (n *stillNode) ShowAccount(id uint64) (engine.AccountRecord, engine.Verdict, error) {
	if id != 7 {
		return engine.AccountRecord{}, engine.Verdict{}, &engine.Error{Code: engine.CodeNotFound, Message: "no such account"}
	}
	return engine.AccountRecord{ID: 7}, engine.Verdict{}, nil
}

func (n *stillNode) change(by string) error {
	n.changes++
	n.by = by
	return nil
}

func (n *stillNode) SuspendAccount(_ uint64, _, by string) error                { return n.change(by) }
func (n *stillNode) RestoreAccount(_ uint64, by string) error                   { return n.change(by) }
func (n *stillNode) LimitAccount(_ uint64, _ engine.Allowance, by string) error { return n.change(by) }
func (n *stillNode) WithdrawAnnouncement(by string) error                       { return n.change(by) }
func (n *stillNode) Transition() engine.Transition                              { return engine.Transition{} }
func (n *stillNode) Announce(_ time.Time, by string) (engine.Transition, error) {
	return engine.Transition{}, n.change(by)
}

func (n *stillNode) Observe([]engine.Refresh) (engine.Receipt, error) {
	return engine.Receipt{Accepted: 1, Changed: 1}, n.change("")
}

func (n *stillNode) Rates(engine.RatesQuery) (*engine.Page[*engine.Rate], error) {
	return &engine.Page[*engine.Rate]{}, nil
}

func (n *stillNode) Held(currency string) ([]engine.Held, error) {
	return []engine.Held{{
		ID: 17, SourceID: "popular-site", Reason: engine.Jump,
		Observation: engine.Observation{InstitutionID: "popular", Currency: cmp.Or(currency, "USD"), Buy: "5.81"},
	}}, nil
}

func (n *stillNode) Order(_ string, c engine.Command) (engine.Receipt, error) {
	switch order := c.(type) {
	case engine.Release:
		return engine.Receipt{}, n.change(order.By)
	case engine.Reject:
		return engine.Receipt{}, n.change(order.By)
	case engine.Withdraw:
		return engine.Receipt{}, n.change(order.By)
	}
	return engine.Receipt{}, errors.New("no such order")
}

func (n *stillNode) Backup(io.Writer, wal.BackupOptions) (wal.BackupInfo, error) {
	return wal.BackupInfo{}, errors.New("nothing to copy")
}

func managementOf(node managed) *management {
	return &management{
		node: node, catalogue: engine.DefaultCatalogue(), sources: idleCollection(), allowance: engine.DefaultAllowance(), mail: mailSMTP, clock: clockFrom(realNow), log: slog.New(slog.DiscardHandler),
	}
}

// idleCollection collects nothing.
func idleCollection() *collection {
	c := &collection{}
	c.now.Store(&collecting{set: source.DefaultSet()})
	return c
}

// askManagement is a request of JSON to the listener.
func askManagement(t *testing.T, m *management, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	return askManagementAs(t, m, method, path, typeJSON, body)
}

// askManagementAs is askManagement with another media type, "" for none.
func askManagementAs(t *testing.T, m *management, method, path, media, body string) *httptest.ResponseRecorder {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://node"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if media != "" {
		req.Header.Set("Content-Type", media)
	}
	answer := httptest.NewRecorder()
	m.routes().ServeHTTP(answer, req)
	return answer
}

// TestManagement_OnlyItsOwnRequests sends what tasard admin would not.
func TestManagement_OnlyItsOwnRequests(t *testing.T) {
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
		{"POST", "/accounts/1/restore", typeJSON, `{"by":"` + strings.Repeat("x", adminBodyMax) + `"}`, http.StatusBadRequest},
		{"POST", "/accounts/1/restore", typeJSON, `{"by":"a\nb"}`, http.StatusBadRequest},
		{"POST", "/accounts/1/restore", typeJSON, `{"by":"` + strings.Repeat("x", byRunesMax+1) + `"}`, http.StatusBadRequest},
		{"GET", "/accounts/1", "", "", http.StatusNotFound},
		{"POST", "/accounts/1/suspend", typeJSON, `{"reason":" "}`, http.StatusBadRequest},
		{"POST", "/accounts/1/suspend", typeJSON, `{"reason":"a\u001b[2Jb"}`, http.StatusBadRequest},
		{"POST", "/keys-required", typeJSON, `{"at":"soon"}`, http.StatusBadRequest},
		{"POST", ratesPath, typeJSON, `{"institution":"popular","currency":"USD"}`, http.StatusBadRequest},
		{"POST", ratesPath, typeJSON, `{"institution":"popular","currency":"USD","buy":"0"}`, http.StatusBadRequest},
		{"POST", ratesPath, typeJSON, `{"institution":"popular","currency":"USD","sell":"-1"}`, http.StatusBadRequest},
		{"POST", ratesPath, typeJSON, `{"institution":"popular","currency":"USD","sell":"1e2"}`, http.StatusBadRequest},
		{"POST", ratesPath, typeJSON, `{"institution":"popular","currency":"USD","sell":"057.5"}`, http.StatusBadRequest},
		{"POST", ratesPath, typeJSON, `{"institution":"popular","currency":"USD","buy":58.1}`, http.StatusBadRequest},
		{"POST", ratesPath, typeJSON, `{"institution":"popular","currency":"USD","buy":"58.1","for":"soon"}`, http.StatusBadRequest},
		{"POST", ratesPath, typeJSON, `{"institution":"popular","currency":"USD","buy":"58.1","for":"-1h"}`, http.StatusBadRequest},
		{"POST", ratesPath, typeJSON, `{"institution":"popular","currency":"USD","buy":"58.1","for":"1h","expiresAt":"2026-07-01T00:00:00Z"}`, http.StatusBadRequest},
		{"POST", ratesPath, typeJSON, `{"institution":"popular","currency":"USD","buy":"58.1","effectiveDate":"2026-02-30"}`, http.StatusBadRequest},
		{"POST", ratesPath, typeJSON, `{"institution":"popular","currency":"USD","buy":"58.1","channel":"cellar"}`, http.StatusBadRequest},
		{"POST", ratesPath, typeJSON, `{"institution":"popular","currency":"USD","buy":"58.1","kind":"x"}`, http.StatusBadRequest},
		{"POST", ratesPath, typeJSON, `{"institution":"popular","currency":"USD","buy":"58.1","by":"a\nb"}`, http.StatusBadRequest},
		{"DELETE", ratesPath, typeJSON, `{"institution":"","currency":"USD","source":"manual"}`, http.StatusBadRequest},
		{"POST", "/quarantine/USD/-1/release", typeJSON, `{}`, http.StatusBadRequest},
		{"POST", "/quarantine/USD/17/release", typeJSON, `{"by":"a\nb"}`, http.StatusBadRequest},
	} {
		node := &stillNode{}
		if got := askManagementAs(t, managementOf(node), test.method, test.path, test.media, test.body); got.Code != test.status || node.changes > 0 {
			t.Errorf("%s %s %.80s: status %d, want %d, %d changes", test.method, test.path, test.body, got.Code, test.status, node.changes)
		}
	}
}

// FuzzManagement wants every request to be answered with JSON, and nothing to be changed by one that is refused or has an
// author that would not stay on its line.
func FuzzManagement(f *testing.F) {
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
		node := &stillNode{}
		answer := httptest.NewRecorder()
		managementOf(node).routes().ServeHTTP(answer, req)
		switch {
		case answer.Code/100 == 3: // a path that the library cleans
		case !jsonLines(answer):
			t.Errorf("%s %s %q: %d %q", method, path, body, answer.Code, answer.Body)
		}
		if node.changes > 1 || node.changes == 1 && answer.Code/100 == 4 && answer.Code != 404 || strings.ContainsAny(node.by, "\r\n\x1b") {
			t.Errorf("%s %s %q: %d, %d changes by %q", method, path, body, answer.Code, node.changes, node.by)
		}
	})
}

// jsonLines tells an answer that is JSON, or one JSON object a line where it says so.
func jsonLines(answer *httptest.ResponseRecorder) bool {
	if answer.Header().Get("Content-Type") != typeLines {
		return json.Valid(answer.Body.Bytes())
	}
	for line := range strings.Lines(answer.Body.String()) {
		if !json.Valid([]byte(line)) {
			return false
		}
	}
	return true
}

// TestAdmin_Tables wants names that others chose to steer no terminal, and nothing to be cut off.
func TestAdmin_Tables(t *testing.T) {
	at := clockFrom(realNow)()
	var out bytes.Buffer
	printAccount(&out, &shownAccount{
		ID: 7, Email: "ana@example.com", CreatedAt: at, SuspendedAt: at, Reason: "a\x1b[2Jb", Limits: shownLimits{20000, 60, true},
		Day: shownWindow{20000, 19990, at}, Minute: shownWindow{60, 50, at},
		Keys: []shownKey{{"key_1", "\u202egnp.exe", "abcd", at, time.Time{}, time.Time{}}, {"key_2", "", "efgh", at, at, at}},
	})
	want := `account    7
e-mail     ana@example.com
since      2026-06-30T15:00:00Z
state      suspended since 2026-06-30T15:00:00Z: a?[2Jb
limits     20,000 a day, 60 in 60 seconds (its own)
day        19,990 left, until 2026-06-30T15:00:00Z
minute     50 left

KEY    NAME      ENDS IN  CREATED               LAST USED             STATE
key_1  ?gnp.exe  abcd     2026-06-30T15:00:00Z  -                     active
key_2  -         efgh     2026-06-30T15:00:00Z  2026-06-30T15:00:00Z  revoked 2026-06-30T15:00:00Z
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// TestAdmin_Author wants the operating system's user in every author, whatever name is given.
func TestAdmin_Author(t *testing.T) {
	ctx := context.WithValue(t.Context(), peerKey{}, "root")
	for by, want := range map[string]string{"": "root", "ana": "ana (root)", "root": "root (root)"} {
		if got := who(ctx, by); got != want {
			t.Errorf("%q: %q, want %q", by, got, want)
		}
	}
}
