package acme

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const name = "tasas.example.com"

// authority is an ACME authority for one client. It checks challenges, but no signatures.
// The fault tests use a real one.
type authority struct {
	*httptest.Server
	lifetime time.Duration
	manager  *Manager
	plain    string             // where it checks challenges
	inUse    []*tls.Certificate // the manager's certificate at each order
	state    string             // of the authorization
	chain    []byte
}

func newAuthority(t *testing.T, lifetime time.Duration) *authority {
	a := &authority{lifetime: lifetime}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

func (a *authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var signed, sent struct{ Payload, CSR string }
	_ = json.NewDecoder(r.Body).Decode(&signed)
	payload, _ := base64.RawURLEncoding.DecodeString(signed.Payload)
	_ = json.Unmarshal(payload, &sent)
	w.Header().Set("Replay-Nonce", "n")
	w.Header().Set("Location", a.URL+r.URL.Path+"/1")
	order := `{"status":"%s","authorizations":["` + a.URL + `/authz"],"finalize":"` + a.URL + `/finalize","certificate":"` + a.URL + `/chain"}`
	switch r.URL.Path {
	case "/":
		_, _ = fmt.Fprintf(w, `{"newNonce":"%[1]s/nonce","newAccount":"%[1]s/account","newOrder":"%[1]s/order"}`, a.URL)
	case "/order":
		a.inUse = append(a.inUse, a.manager.Certificate())
		a.state = "pending"
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, order, "pending")
	case "/challenge":
		res, err := a.Client().Get(a.plain + "/.well-known/acme-challenge/token")
		a.state = "invalid"
		if err == nil {
			text, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if strings.HasPrefix(string(text), "token.") {
				a.state = "valid"
			}
		}
		fallthrough
	case "/authz":
		_, _ = fmt.Fprintf(w, `{"status":"%s","challenges":[{"type":"http-01","url":"%s/challenge","token":"token","error":{"detail":"unreachable"}}]}`, a.state, a.URL)
	case "/finalize":
		der, _ := base64.RawURLEncoding.DecodeString(sent.CSR)
		a.chain = issue(der, a.lifetime)
		_, _ = fmt.Fprintf(w, order, "valid")
	case "/order/1":
		_, _ = fmt.Fprintf(w, order, "ready")
	case "/chain":
		_, _ = w.Write(a.chain)
	default: // nonce, account
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "{}")
	}
}

func issue(request []byte, lifetime time.Duration) []byte {
	csr, err := x509.ParseCertificateRequest(request)
	if err != nil {
		return nil
	}
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	now := time.Now() //nolint:forbidigo // the certificate is checked by the real clock
	leaf := &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()), DNSNames: csr.DNSNames, NotBefore: now, NotAfter: now.Add(lifetime)}
	der, _ := x509.CreateCertificate(rand.Reader, leaf, leaf, csr.PublicKey, key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// open opens a manager and serves plain HTTP for it.
func (a *authority) open(t *testing.T, dir string) *Manager {
	m := &Manager{
		Name: name, Dir: dir, Authority: a.URL, Clock: time.Now, Logger: slog.New(slog.DiscardHandler), //nolint:forbidigo // certificates are checked by the real clock
	}
	if err := m.Open(); err != nil {
		t.Fatal(err)
	}
	plain := httptest.NewServer(m)
	t.Cleanup(plain.Close)
	a.plain, a.manager = plain.URL, m
	return m
}

// logWriter is called with each line of a log.
type logWriter func()

func (w logWriter) Write(line []byte) (int, error) {
	w()
	return len(line), nil
}

// run runs a manager until it has logged the results of a number of attempts. It returns the log.
func run(t *testing.T, m *Manager, attempts int) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var log strings.Builder
	m.Logger = slog.New(slog.NewTextHandler(io.MultiWriter(&log, logWriter(func() {
		if attempts--; attempts == 0 {
			cancel()
		}
	})), nil))
	if m.Run(ctx); attempts > 0 {
		t.Fatalf("after a minute %d attempts are missing: %s", attempts, log.String())
	}
	return log.String()
}

// TestRun_ObtainsAndKeeps: a certificate is obtained once, stored for its owner only, and used by the next start.
func TestRun_ObtainsAndKeeps(t *testing.T) {
	a, dir := newAuthority(t, 90*24*time.Hour), t.TempDir()
	m := a.open(t, dir)
	if m.Certificate() != nil {
		t.Error("a certificate before the first one")
	}
	run(t, m, 1)
	files, _ := filepath.Glob(filepath.Join(dir, "*", "*"))
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	again := a.open(t, dir)
	if again.Certificate() == nil || !again.Certificate().Leaf.Equal(m.Certificate().Leaf) || again.untilRenewal() < 59*24*time.Hour || again.untilRenewal() > 60*24*time.Hour {
		t.Error("the next start has another certificate")
	}
	if len(files) != 2 || len(a.inUse) != 1 || m.challenge.Load() != nil {
		t.Errorf("%d files, %d orders, challenge %v", len(files), len(a.inUse), m.challenge.Load())
	}
	for _, file := range files {
		_ = os.Truncate(file, 0)
	}
	if again = a.open(t, dir); again.Certificate() == nil { // damaged files count as none
		run(t, again, 1)
	}
	if len(a.inUse) != 2 || a.open(t, dir).Certificate() == nil {
		t.Errorf("after damage: %d orders", len(a.inUse))
	}
}

// TestRun_Renews: a certificate stays in use until a new one has replaced it.
func TestRun_Renews(t *testing.T) {
	a := newAuthority(t, 3*time.Second)
	m := a.open(t, t.TempDir())
	run(t, m, 2)
	if len(a.inUse) != 2 || a.inUse[0] != nil || a.inUse[1] == nil || m.Certificate() == nil || m.Certificate() == a.inUse[1] {
		t.Errorf("in use at each order: %v, at the end: %v", a.inUse, m.Certificate())
	}
	end := m.Certificate().Leaf.NotAfter.Add(time.Hour)
	m.Clock = func() time.Time { return end }
	if pause := m.attempt(t.Context(), retryMin); pause != retryMin || len(a.inUse) != 3 {
		t.Errorf("a clock that is wrong: the next order after %s", pause)
	}
}

// TestRun_SaysWhatFails: the reason of a failure is kept, and the next attempt is not at once.
func TestRun_SaysWhatFails(t *testing.T) {
	a := newAuthority(t, time.Hour)
	m := a.open(t, t.TempDir())
	a.plain = "http://127.0.0.1:1"
	if log := run(t, m, 1); !strings.Contains(log, "port 80 of "+name) || len(a.inUse) != 1 || m.Failing() == nil {
		t.Errorf("%d orders, %s", len(a.inUse), log)
	}
}

func TestServeHTTP(t *testing.T) {
	m := newAuthority(t, time.Hour).open(t, t.TempDir())
	for _, c := range []struct{ target, key, location string }{
		{"/v1/rates?currency=USD", "", "https://" + name + "/v1/rates?currency=USD"},
		{"http://other.example/%2e//x", "", "https://" + name + "/%2e//x"},
		{"/v1/rates", "Bearer k", ""},
	} {
		r, w := httptest.NewRequest(http.MethodGet, c.target, nil), httptest.NewRecorder()
		if c.key != "" {
			r.Header.Set("Authorization", c.key)
		}
		m.ServeHTTP(w, r)
		want := map[bool]int{true: http.StatusForbidden, false: http.StatusPermanentRedirect}[c.location == ""]
		if w.Code != want || w.Header().Get("Location") != c.location {
			t.Errorf("%s: %d %q", c.target, w.Code, w.Header().Get("Location"))
		}
	}
}
