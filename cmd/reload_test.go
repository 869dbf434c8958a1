package cmd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/node"
)

// pairFiles is a certificate for 127.0.0.1 with its key and its authority, in files.
type pairFiles struct {
	cert, key, signer string
	roots             *x509.CertPool
}

func newPairFiles(t *testing.T, change ...func(server *x509.Certificate)) *pairFiles {
	t.Helper()
	directory := t.TempDir()
	f := &pairFiles{cert: filepath.Join(directory, "cert.pem"), key: filepath.Join(directory, "key.pem"), signer: filepath.Join(directory, "ca.pem")}
	f.renew(t, change...)
	return f
}

// renew writes another pair, signed by another authority.
func (f *pairFiles) renew(t *testing.T, change ...func(server *x509.Certificate)) {
	t.Helper()
	signer := newAuthority()
	pair := signer.newCertificate(change...)
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	noError(t, err)
	f.roots = x509.NewCertPool()
	f.roots.AppendCertsFromPEM([]byte(signer.pem))
	f.write(t, f.signer, signer.pem)
	f.write(t, f.cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})))
	f.write(t, f.key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
}

func (f *pairFiles) write(t *testing.T, path, text string) {
	t.Helper()
	noError(t, os.WriteFile(path, []byte(text), 0o600))
}

func (f *pairFiles) args() []string { return []string{"--tls-cert", f.cert, "--tls-key", f.key} }

// secureStatus asks a node over HTTPS, trusting one signer.
func secureStatus(address string, roots *x509.CertPool) (int, error) {
	client := http.Client{Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots},
	}}
	res, err := client.Get("https://" + address + "/v1/institutions")
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

// securely waits until a program listens over HTTPS and gives its address.
func (p *program) securely() string {
	_, address, _ := strings.Cut(p.Await("listening on https://"), "listening on https://")
	return strings.Trim(address, "\" \n")
}

// hangUp sends SIGHUP and waits for a line of the log.
func (p *program) hangUp(line string) {
	p.t.Helper()
	p.Send(syscall.SIGHUP)
	p.Await(line)
}

// TestReload_Certificate wants the next connection to get a new pair, and bad ones to change nothing and be
// reported.
func TestReload_Certificate(t *testing.T) {
	t.Parallel()
	files := newPairFiles(t)
	first := files.roots
	data := t.TempDir()
	p := start(t, "now", serveArgs(data, files.args()...)...)
	address := p.securely()
	p.Await("recovered")
	if status, err := secureStatus(address, first); status != http.StatusOK {
		t.Fatalf("%d, %v", status, err)
	}
	files.renew(t, func(c *x509.Certificate) { c.NotAfter = time.Unix(1<<32, 0) })
	p.hangUp("reloaded: the certificate, valid until ")
	if metrics := askSocket(t, data, admin.MetricsPath); !strings.Contains(metrics, "tasard_certificate_expiry_timestamp_seconds{to=\"http\"} 4.294967296e+09\n") {
		t.Error("the metrics do not tell when the new certificate ends")
	}
	second := files.roots
	if status, err := secureStatus(address, second); status != http.StatusOK {
		t.Errorf("the new certificate: %d, %v", status, err)
	}
	if _, err := secureStatus(address, first); err == nil {
		t.Error("the old certificate is still given")
	}
	files.write(t, files.cert, "no certificate")
	p.hangUp("nothing was reloaded")
	if metrics := askSocket(t, data, admin.MetricsPath); !strings.Contains(metrics, "\ntasard_reload_success 0\n") || !strings.Contains(metrics, "\ntasard_reload_timestamp_seconds ") {
		t.Error("the metrics do not tell that a reload failed")
	}
	if line := p.Await("reload: "); !strings.Contains(line, files.cert) {
		t.Errorf("%q does not name the file", line)
	}
	files.renew(t)
	files.write(t, files.key, readFile(t, newPairFiles(t).key))
	p.hangUp("private key does not match")
	if status, err := secureStatus(address, second); status != http.StatusOK {
		t.Errorf("after bad files: %d, %v", status, err)
	}
	p.stop(syscall.SIGTERM)
}

// TestReload_PlainHTTP wants a plain HTTP request to an HTTPS port to get an explanation, and nothing else.
func TestReload_PlainHTTP(t *testing.T) {
	t.Parallel()
	p := start(t, "now", serveArgs(t.TempDir(), newPairFiles(t).args()...)...)
	res, err := (&http.Client{Timeout: patience}).Get("http://" + p.securely() + "/v1/institutions")
	noError(t, err)
	defer res.Body.Close()
	if res.StatusCode != http.StatusBadRequest {
		t.Errorf("status %d", res.StatusCode)
	}
}

// TestSourceSecrets wants a source to be off without its secret, on at a start with it, and the secret in no log.
func TestSourceSecrets(t *testing.T) {
	t.Parallel()
	const key = "tcrd_0123456789abcdef"
	for _, has := range []bool{false, true} {
		data, secrets := t.TempDir(), t.TempDir()
		if has {
			noError(t, os.WriteFile(filepath.Join(secrets, "tasareal"), []byte(key), 0o600))
		}
		p := start(t, "now", serveArgs(data, "--source-secrets", secrets)...)
		p.Await("recovered")
		shown := listedSources(t, data)["tasareal"]
		if off := shown.State == string(collectors.Disabled) && strings.Contains(shown.Disabled, "It needs the secret tasareal"); off == has {
			t.Errorf("with its secret %v: the source is %s: %s", has, shown.State, shown.Disabled)
		}
		if strings.Contains(p.Output(), key) {
			t.Error("the secret is in the log")
		}
	}
}

// serviceManager is the service manager's end of sd_notify.
type serviceManager struct {
	conn *net.UnixConn
	path string
}

func newServiceManager(t *testing.T) *serviceManager {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	noError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &serviceManager{conn, path}
}

// Await reads messages until one has all the parts; it gives those before it too.
func (m *serviceManager) await(t *testing.T, parts ...string) (before []string) {
	t.Helper()
	buffer := make([]byte, 4096)
	for {
		n, err := m.conn.Read(buffer)
		if err != nil {
			t.Fatalf("%q was not said, but %q: %v", parts, before, err)
		}
		message, found := string(buffer[:n]), true
		for _, part := range parts {
			found = found && strings.Contains(message, part)
		}
		if found {
			return before
		}
		before = append(before, message)
	}
}

// TestNotify wants the service manager to hear of every turn: ready, alive, reloading, ready again, stopping.
func TestNotify(t *testing.T) {
	t.Parallel()
	m := newServiceManager(t)
	p := startWith(t, realNow, []string{"NOTIFY_SOCKET=" + m.path, "WATCHDOG_USEC=600000"}, serveArgs(t.TempDir())...).listening()
	for _, early := range m.await(t, "READY=1", "STATUS=0 rates") {
		if strings.Contains(early, "READY") {
			t.Errorf("said before it was ready: %q", early)
		}
	}
	m.await(t, "WATCHDOG=1")
	m.await(t, "WATCHDOG=1")
	p.hangUp("reloaded: nothing has changed")
	m.await(t, "RELOADING=1", "MONOTONIC_USEC=")
	m.await(t, "READY=1")
	p.stop(syscall.SIGTERM)
	m.await(t, "STOPPING=1")
}

// TestNotify_ActorsThatDoNotAnswer: the service manager gets no keep-alive, so that it restarts the node.
func TestNotify_ActorsThatDoNotAnswer(t *testing.T) {
	m := newServiceManager(t)
	t.Setenv(notifyVariable, m.path)
	n, err := node.Open(t.Context(), node.Config{Dir: t.TempDir()})
	noError(t, err)
	defer func() { noError(t, n.Close(context.Background())) }()
	<-n.Ready()
	var now time.Time
	took := responseMax // of an answer
	alive := &notifier{node: n, log: slog.New(slog.DiscardHandler), watchdog: true, clock: func() time.Time {
		now = now.Add(took)
		return now
	}}
	alive.keepAlive()
	took--
	alive.send("STATUS=in time")
	alive.keepAlive()
	if early := m.await(t, "STATUS=in time"); len(early) > 0 {
		t.Errorf("said without an answer: %q", early)
	}
	m.await(t, "WATCHDOG=1")
}
