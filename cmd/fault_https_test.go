//go:build faults

package cmd

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	httpsName         = "tasas.example.com"
	httpsLifetime     = 12 // seconds of a certificate
	httpsCertificates = 3  // that must be seen
	httpsClients      = 4
)

// pebble is a test authority of Let's Encrypt, in a process, with a DNS server that leads every name to this machine.
type pebble struct {
	directory string // URL
	roots     string // file with the certificate of its HTTPS server
	plain     string // address at which it checks challenges
	issuer    *x509.CertPool
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	defer l.Close()
	return l.Addr().String()
}

func startPebble(t *testing.T) *pebble {
	t.Helper()
	const module, tools = "github.com/letsencrypt/pebble/v2", "-modfile=.ci/tools.mod"
	dir := t.TempDir()
	mustExec(t, "go", "build", tools, "-o", dir, module+"/cmd/pebble", module+"/cmd/pebble-challtestsrv")
	certs := filepath.Join(strings.TrimSpace(mustExec(t, "go", "list", tools, "-m", "-f", "{{.Dir}}", module)), "test", "certs")
	listen, management, dns := freeAddress(t), freeAddress(t), freeAddress(t)
	p := &pebble{directory: "https://" + listen + "/dir", roots: filepath.Join(certs, "pebble.minica.pem"), plain: freeAddress(t), issuer: x509.NewCertPool()}
	_, port, _ := net.SplitHostPort(p.plain)
	number, _ := strconv.Atoi(port)
	config, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": listen, "managementListenAddress": management, "httpPort": number, "keyAlgorithm": "ecdsa",
		"certificate": filepath.Join(certs, "localhost", "cert.pem"), "privateKey": filepath.Join(certs, "localhost", "key.pem"),
		"retryAfter": map[string]int{"authz": 1, "order": 1}, "profiles": map[string]any{"default": map[string]any{"validityPeriod": httpsLifetime}},
	}})
	noError(t, err)
	file := filepath.Join(dir, "pebble.json")
	noError(t, os.WriteFile(file, config, 0o600))
	startChild(t, exec.Command(filepath.Join(dir, "pebble-challtestsrv"), "-defaultIPv4", "127.0.0.1", "-defaultIPv6", "", "-dnsserver", dns,
		"-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", "", "-management", freeAddress(t)))
	server := exec.Command(filepath.Join(dir, "pebble"), "-config", file, "-dnsserver", dns)
	server.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1")
	startChild(t, server).Await("ACME directory available")
	text, err := os.ReadFile(p.roots)
	noError(t, err)
	own := x509.NewCertPool()
	own.AppendCertsFromPEM(text)
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: own}, DisableKeepAlives: true}}
	if !comesTrue(10*time.Second, func() bool {
		res, err := client.Get("https://" + management + "/roots/0")
		if err != nil {
			return false
		}
		issuer, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		return err == nil && p.issuer.AppendCertsFromPEM(issuer)
	}) {
		t.Fatal("the authority does not show its root certificate")
	}
	return p
}

// httpsUse is what clients that verify the certificate have seen.
type httpsUse struct {
	mu       sync.Mutex
	serials  map[string]bool
	answered int
	failures []string
	longest  time.Duration
}

// use sends requests, each on a new connection, until enough certificates were seen or a request has failed.
func (u *httpsUse) use(t *testing.T, p *pebble, address string) {
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: p.issuer, ServerName: httpsName}}}
	for deadline := time.Now().Add(10 * httpsLifetime * time.Second); time.Now().Before(deadline); {
		began := time.Now()
		res, err := client.Get("https://" + address + "/v1/currencies")
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
		u.mu.Lock()
		switch {
		case err != nil:
			u.failures = append(u.failures, err.Error())
		case res.StatusCode != http.StatusOK:
			u.failures = append(u.failures, res.Status)
		default:
			u.answered++
			u.serials[res.TLS.PeerCertificates[0].SerialNumber.String()] = true
			u.longest = max(u.longest, time.Since(began))
		}
		done := len(u.failures) > 0 || len(u.serials) >= httpsCertificates
		u.mu.Unlock()
		if done {
			return
		}
	}
}

// build builds the program for an authority other than Let's Encrypt, which checks names at the address plain.
func (p *pebble) build(t *testing.T, name, directory string) string {
	t.Helper()
	return buildWith(t, name, plant{"node/config.go", `acme.Redirect = cmp.Or(acme.Redirect, ":80")`,
		fmt.Sprintf("acme.Redirect, acme.Authority = %q, %q", p.plain, directory)})
}

// useHTTPS starts a node that gets its certificates from p, and uses it until enough of them were seen.
func useHTTPS(t *testing.T, p *pebble) (u *httpsUse, n *nodeProcess) {
	t.Helper()
	address := freeAddress(t)
	n = launch(t, nodeCommand{program: p.build(t, "https", p.directory), env: []string{"SSL_CERT_FILE=" + p.roots}, args: nodeArgs(filepath.Join(t.TempDir(), "data"),
		"--limits", "off", "--listen", address, "--https", httpsName)})
	n.Await("certificate obtained")
	u = &httpsUse{serials: map[string]bool{}}
	var clients sync.WaitGroup
	for range httpsClients {
		clients.Go(func() { u.use(t, p, address) })
	}
	clients.Wait()
	return u, n
}

// TestFaultsHTTPS_Renewal: certificates of a real authority are renewed under load, and no client notices; a stored one
// is not used for another authority.
func TestFaultsHTTPS_Renewal(t *testing.T) {
	p := startPebble(t)
	u, n := useHTTPS(t, p)
	if len(u.failures) > 0 || len(u.serials) < httpsCertificates {
		t.Fatalf("%d certificates, %d answers, failures: %v", len(u.serials), u.answered, u.failures)
	}
	figure(t, "%d certificates renewed under load: %d requests, each with a handshake, 0 failed, the longest took %v", len(u.serials)-1, u.answered, u.longest)
	data := n.data
	n.stop() // a certificate is in use before it is stored and logged
	orders := strings.Count(n.Output(), "certificate obtained")
	other := p.build(t, "https-other", "https://127.0.0.1:1/dir")
	again := launch(t, nodeCommand{program: other, env: []string{"SSL_CERT_FILE=" + p.roots}, args: nodeArgs(data, "--https", httpsName)})
	again.Await("no certificate was obtained") // another authority: the stored one is not used for it
	if files, _ := filepath.Glob(filepath.Join(data, "https", "*", httpsName+".pem")); len(files) != 1 || orders < httpsCertificates {
		t.Errorf("%d orders, files %v", orders, files)
	}
	again.stop()
}
