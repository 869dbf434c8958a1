//go:build !nocluster

package cmd

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/actors/cluster/clustertest"
	"github.com/tasard/tasard/cmd/internal/exit"
)

// about are the findings of a check, a line each.
func (r doctorReport) about(check string) string {
	var lines []string
	for _, f := range r.Findings {
		if f.Check == check {
			lines = append(lines, f.Level+" "+f.Message)
		}
	}
	return strings.Join(lines, "\n")
}

// TestDoctor_ClusterBesideOthers: of three nodes one runs, the doctor examines the second, and the third is down.
// The running node greets over TLS and does not log the doctor's connection.
func TestDoctor_ClusterBesideOthers(t *testing.T) {
	t.Parallel()
	at, f := clustertest.Addresses(t, 3), newPairFiles(t)
	p := start(t, realNow, append(serveArgs(t.TempDir()), clusterArgs(2, at, f)...)...)
	args := append([]string{"--data", t.TempDir() + "/data", "--listen", "127.0.0.1:0"}, clusterArgs(1, at, f)...)
	var got string
	eventually(t, "the other node is reachable", func() bool {
		report, _ := runDoctor(t, args...)
		got = report.about("cluster")
		return strings.Contains(got, "OK node-2 at "+at[1]+" is reachable")
	})
	contains(t, got,
		"OK the certificate of this node is valid until 2242-", "OK "+at[0]+" is free",
		"WARN node-3 at "+at[2]+" is not reachable: ")
	if said := p.Output(); strings.Contains(said, "handshake error") {
		t.Errorf("the node that was greeted is troubled:\n%s", said)
	}
}

// TestDoctor_ClusterMemberIsAnotherProgram: another program listens on the address of a node.
func TestDoctor_ClusterMemberIsAnotherProgram(t *testing.T) {
	at := clustertest.Addresses(t, 3)
	outsider, err := net.Listen("tcp", at[2])
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		conn, err := outsider.Accept()
		if err == nil {
			_, err = conn.Write([]byte("220 mail.example.com\r\n"))
			err = errors.Join(err, conn.Close())
		}
		served <- err
	}()
	report, _ := runDoctor(t, "--data", t.TempDir()+"/data", "--listen", "127.0.0.1:0", "--cluster", "test", "--cluster-node", "1", "--cluster-insecure", "--cluster-secret-file", secretFile(t),
		"--cluster-members", fmt.Sprintf("1=%s,2=%s,3=%s", at[0], at[1], at[2]))
	if err := errors.Join(outsider.Close(), <-served); err != nil {
		t.Error(err)
	}
	const want = "first record does not look like a TLS handshake"
	if got := report.about("cluster"); !strings.Contains(got, want) {
		t.Errorf("%q is not said:\n%s", want, got)
	}
}

// TestCluster_CertificateHasEnded: a node with an expired certificate warns before it waits for the others.
func TestCluster_CertificateHasEnded(t *testing.T) {
	t.Parallel()
	f := newPairFiles(t, func(c *x509.Certificate) { c.NotAfter = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) })
	p := start(t, realNow, append(serveArgs(t.TempDir()), clusterArgs(2, clustertest.Addresses(t, 3), f)...)...)
	if line := p.Await("the other nodes will refuse it"); !strings.Contains(line, "has expired on 2026-01-02T03:04:05Z") || !strings.Contains(line, f.cert) {
		t.Error(line)
	}
}

// TestDoctor_ClusterFindsWhatIsWrong: a certificate that others would refuse and a readable key are reported before
// the node is started; serve refuses files that it can't read.
func TestDoctor_ClusterFindsWhatIsWrong(t *testing.T) {
	at := clustertest.Addresses(t, 3)
	foreign := newPairFiles(t)
	for name, one := range map[string]struct {
		change       func(*x509.Certificate)
		spoil        func(f *pairFiles) error
		check, found string
	}{
		"expired": {func(c *x509.Certificate) { c.NotAfter = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }, nil,
			"cluster", "FAIL the certificate has expired on 2026-01-02T03:04:05Z"},
		"for another host": {func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"node-1.example.com"} }, nil,
			"cluster", "FAIL other nodes connect to 127.0.0.1, and the certificate is for node-1.example.com"},
		"for one end only": {func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[:1] }, nil,
			"cluster", "FAIL the other nodes will refuse "},
		"signed by others": {nil, func(f *pairFiles) error { f.signer = foreign.signer; return nil },
			"cluster", "FAIL the other nodes will refuse "},
		"a key for all": {nil, func(f *pairFiles) error { return os.Chmod(f.key, 0o644) },
			"settings", "other users can read or change this private key (mode 0644)"},
		"no such file": {nil, func(f *pairFiles) error { f.cert += ".none"; return nil }, "settings", "cert.pem.none: no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newPairFiles(t, func(c *x509.Certificate) {
				if one.change != nil {
					one.change(c)
				}
			})
			if one.spoil != nil {
				if err := one.spoil(f); err != nil {
					t.Fatal(err)
				}
			}
			args := append([]string{"--data", t.TempDir() + "/data", "--listen", "127.0.0.1:0"}, clusterArgs(1, at, f)...)
			report, got := runDoctor(t, args...)
			if found := report.about(one.check); !strings.Contains(found, one.found) || got.code != exit.CheckFailed {
				t.Errorf("code %d, %q is not said:\n%s", got.code, one.found, found)
			}
			if one.check != "settings" {
				return
			}
			if refused := run(t, nil, nil, append([]string{"serve"}, args...)...); refused.code != exit.BadData || !strings.Contains(refused.stderr, one.found) {
				t.Errorf("serve: code %d\n%s", refused.code, refused.stderr)
			}
		})
	}
}
