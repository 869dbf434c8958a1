//go:build !nocluster

package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestBootstrap forms a cluster of nodes with certificates, one of which brings a log.
func TestBootstrap(t *testing.T) {
	t.Parallel()
	f := newTestCluster(t)
	ours := newCertificate(t)
	for i := range f.configs {
		f.configs[i].Insecure, f.configs[i].TLS = false, ours
	}
	f.runSteps(t, step{"AllMembers", allMembers}, step{"TLS", func(t *testing.T, f *testCluster) { onlyAuthenticated(t, f, ours) }})
}

// allMembers checks that no stream is created before all members are reachable: the last one to start has the records,
// which come first on every node.
func allMembers(t *testing.T, f *testCluster) {
	writeLocalLog(t, &f.configs[2], 4)
	done := make(chan error, 2)
	for i := range 2 {
		go func() {
			n, err := startNode(f.parent.Context(), f.configs[i])
			f.nodes[i] = n
			done <- err
		}()
	}
	select {
	case err := <-done:
		t.Fatalf("started without the third: %v", err)
	case <-time.NewTimer(3 * conflictWait).C:
	}
	third, err := startNode(t.Context(), f.configs[2])
	for range 2 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if f.nodes[2] = third; err != nil {
		t.Fatal(err)
	}
	f.nodes[0].mustAppend(t, "together")
	if log := f.awaitSameRecords(0); !slices.Equal(log, []string{"alone 1", "alone 2", "alone 3", "alone 4", "together"}) {
		t.Errorf("log %q", log)
	}
	if e, err := f.nodes[0].cluster.queryStream(t.Context()); err != nil || e.first != 5 {
		t.Errorf("the stream begins with %d, %v", e.first, err)
	}
}

// onlyAuthenticated starts nodes with a certificate of another authority and without one. They cannot join, while a
// node with a good certificate that starts later can.
func onlyAuthenticated(t *testing.T, f *testCluster, ours TLS) {
	guest := func() Config {
		c := f.guest()
		c.TLS = ours
		return c
	}
	foreign, plain, known := guest(), guest(), guest()
	theirs := newCertificate(t)
	foreign.TLS.Certificate, foreign.TLS.Key = theirs.Certificate, theirs.Key
	plain.TLS, plain.Insecure = TLS{}, true
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var outside sync.WaitGroup
	for what, c := range map[string]Config{"another authority": foreign, "no certificate": plain} {
		outside.Go(func() {
			n, err := startNode(ctx, c)
			switch {
			case err == nil:
				t.Errorf("%s: came in; %v", what, n.stop())
			case !strings.Contains(err.Error(), "context canceled"):
				t.Errorf("%s: refused with %v", what, err)
			}
		})
	}
	n, err := startNode(ctx, known)
	cancel()
	outside.Wait()
	if err != nil {
		t.Fatalf("a node with a good certificate: %v", err)
	}
	n.await(t, f.nodes[0].last())
	if err := n.stop(); err != nil {
		t.Error(err)
	}
}

// newCertificate writes a self-signed certificate that all nodes of a test use.
func newCertificate(t testing.TB) TLS {
	t.Helper()
	made := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "node"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: realClock().Add(-time.Hour), NotAfter: realClock().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, made, made, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	certificate := write("node.pem", "CERTIFICATE", der)
	return TLS{Authority: certificate, Certificate: certificate, Key: write("node.key", "EC PRIVATE KEY", secret)}
}
