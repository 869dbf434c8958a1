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

// TestBootstrap forms a cluster of nodes that prove themselves and know a secret, one of which has a log of its own.
func TestBootstrap(t *testing.T) {
	t.Parallel()
	f := newTestCluster(t)
	ours, secret := newCertificate(t), filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("of the cluster: / @\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range f.configs {
		f.configs[i].Insecure, f.configs[i].SecretFile, f.configs[i].TLS = false, secret, ours
	}
	f.runSteps(t, step{"AllMembers", allMembers}, step{"TLS", func(t *testing.T, f *testCluster) { onlyAuthenticated(t, f, ours) }})
}

// allMembers makes no stream before all members are there: the one that is late has the records. They come first, and every node has them.
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

// onlyAuthenticated starts nodes with a certificate of another authority, without one, and without the secret. They stay outside while a
// node that has both, and began later, comes in.
func onlyAuthenticated(t *testing.T, f *testCluster, ours TLS) {
	guest := func() Config {
		c := f.guest()
		c.SecretFile, c.TLS = f.configs[0].SecretFile, ours
		return c
	}
	stranger, plain, ignorant, known := guest(), guest(), guest(), guest()
	theirs := newCertificate(t)
	stranger.TLS.Certificate, stranger.TLS.Key = theirs.Certificate, theirs.Key
	plain.TLS, plain.Insecure = TLS{}, true
	ignorant.SecretFile = ""
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var outside sync.WaitGroup
	for what, c := range map[string]Config{"another authority": stranger, "no certificate": plain, "no secret": ignorant} {
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
		t.Fatalf("a node that proves itself: %v", err)
	}
	n.await(t, f.nodes[0].last())
	if err := n.stop(); err != nil {
		t.Error(err)
	}
}

// newCertificate makes the files of nodes that prove themselves by one certificate, which is its own authority.
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
