package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tasard/tasard/actors/cluster/clustertest"
)

// authority signs certificates for a test.
type authority struct {
	dir, file   string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t testing.TB, dir string) *authority {
	t.Helper()
	a := &authority{dir: dir, file: filepath.Join(dir, "authority.pem")}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	made := template("authority")
	made.IsCA, made.BasicConstraintsValid, made.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, made, made, &a.key.PublicKey, a.key)
	if err == nil {
		a.certificate, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, a.file, "CERTIFICATE", der)
	return a
}

func template(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(realClock().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: realClock().Add(-time.Hour), NotAfter: realClock().Add(time.Hour),
	}
}

// issue makes the files of one node.
func (a *authority) issue(t testing.TB, name string) (file, certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made := template(name)
	made.IPAddresses, made.KeyUsage = []net.IP{net.IPv4(127, 0, 0, 1)}, x509.KeyUsageDigitalSignature
	made.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, made, a.certificate, &private.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key = filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+".key")
	writePEM(t, certificate, "CERTIFICATE", der)
	writePEM(t, key, "EC PRIVATE KEY", secret)
	return a.file, certificate, key
}

func writePEM(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestTLS forms a cluster whose nodes prove themselves and know a secret. A node with a certificate of another authority, without
// one, or without the secret stays outside.
func TestTLS(t *testing.T) {
	f := newFleet(t)
	dir := t.TempDir()
	ours := newAuthority(t, dir)
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("of the cluster: / @\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range f.configs {
		c := &f.configs[i]
		c.Insecure, c.SecretFile = false, secret
		c.TLS.Authority, c.TLS.Certificate, c.TLS.Key = ours.issue(t, c.Name)
	}
	f.startAll()
	f.nodes[0].mustAppend(t, "between proven nodes")
	f.sameLogs()

	known := f.config("guest", 4, clustertest.Addresses(t, 1)[0], t.TempDir())
	known.SecretFile = secret
	known.TLS.Authority, known.TLS.Certificate, known.TLS.Key = ours.issue(t, "guest")
	stranger, plain, ignorant := known, known, known
	stranger.Dir, plain.Dir, ignorant.Dir = t.TempDir(), t.TempDir(), t.TempDir()
	theirs := newAuthority(t, t.TempDir())
	_, stranger.TLS.Certificate, stranger.TLS.Key = theirs.issue(t, "guest")
	plain.TLS = TLS{}
	ignorant.SecretFile = ""
	for _, c := range []Config{stranger, plain, ignorant} {
		refused(t, c, 3*time.Second, "context deadline exceeded")
	}
	n, err := startNode(t.Context(), known)
	if err != nil {
		t.Fatalf("a node that proves itself: %v", err)
	}
	n.await(t, 1)
	if err := n.stop(); err != nil {
		t.Error(err)
	}
}

// TestServer_PipeOnly finds the port on which the server insists, and is refused there.
func TestServer_PipeOnly(t *testing.T) {
	f := newFleet(t)
	f.startAll()
	address := f.nodes[0].cluster.node.server.Addr()
	if host, _, err := net.SplitHostPort(address.String()); err != nil || host != "127.0.0.1" {
		t.Errorf("clients come in at %s", address)
	}
	c, err := nats.Connect("nats://" + address.String())
	if err == nil {
		c.Close()
		t.Fatal("a client that is not in the process came in")
	}
	if !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("refused with %v", err)
	}
}
