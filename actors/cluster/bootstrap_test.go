package cluster

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tasard/tasard/actors/cluster/clustertest"
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
	appendOutside(t, f.configs[2].Dir, "single 1", "single 2")
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
	case <-time.NewTimer(9 * watchInterval).C:
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
	if log := f.awaitSameRecords(0); !slices.Equal(log, []string{"single 1", "single 2", "together"}) {
		t.Errorf("log %q", log)
	}
}

// onlyAuthenticated starts nodes with a certificate of another authority and without one. They cannot join, while a
// node with a good certificate that starts later can.
func onlyAuthenticated(t *testing.T, f *testCluster, ours TLS) {
	guest := func() Config {
		c := f.guest()
		c.TLS, c.Insecure = ours, false
		return c
	}
	foreign, plain, known, otherSecret := guest(), guest(), guest(), guest()
	theirs := newCertificate(t)
	foreign.TLS.Certificate, foreign.TLS.Key = theirs.Certificate, theirs.Key
	plain.TLS, plain.Insecure = TLS{}, true
	otherSecret.Secret = strings.ToUpper(testSecret)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var outside sync.WaitGroup
	for what, c := range map[string]Config{"another authority": foreign, "no certificate": plain, "another secret": otherSecret} {
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

// newCertificate returns the files of a certificate that all nodes of a test can use.
func newCertificate(t testing.TB) TLS {
	certificate, key := clustertest.Certificate(t, "127.0.0.1")
	return TLS{Authority: certificate, Certificate: certificate, Key: key}
}
