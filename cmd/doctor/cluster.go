package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/node"
)

const memberTimeout = 5 * time.Second

// cluster checks the certificate and address of a node in a cluster, and connects to the other nodes.
func (d *doctor) cluster(ctx context.Context) {
	o := &d.o.Config.Cluster
	if o.Check(d.config()) != nil {
		return // the method settings reports the error
	}
	if o.Name == "" {
		d.add(findingOK, "cluster", "", "none (--cluster)")
		return
	}
	tlsConfig, err := o.TLSConfig(d.config())
	if err != nil {
		return // impossible: o.Check has loaded the same files
	}
	if o.Insecure {
		d.add(findingWarn, "cluster", "use certificates unless this is a trial", "insecure: each program that can read %s can change all data", o.SecretFile)
	} else {
		d.clusterCertificate(o, tlsConfig)
	}
	d.checkAddress("cluster", o.Address(), "Cluster.Listen")
	reachable := 0
	for _, m := range o.Members {
		if ctx.Err() != nil {
			return
		}
		if m.Node == o.Node || d.checkMember(ctx, m, tlsConfig) {
			reachable++
		}
	}
	if 2*reachable <= len(o.Members) {
		d.add(findingFail, "cluster", "start the other members, or mend the network between",
			"no majority of the cluster's members is reachable: %d of %d with this one, so changes are refused", reachable, len(o.Members))
	}
}

// clusterCertificate checks the certificate of this node, in the same way as the other nodes will check it.
func (d *doctor) clusterCertificate(o *node.Cluster, tlsConfig *tls.Config) {
	const renew = "make a new one and send SIGHUP to the node; see packaging/cluster/README.md"
	leaf, now := tlsConfig.Certificates[0].Leaf, d.Clock()
	host, _, _ := net.SplitHostPort(o.Address())
	chainErr := verifyCertificate(&tlsConfig.Certificates[0], tlsConfig.RootCAs, now)
	switch problem := node.CertificateProblem(leaf, now); {
	case problem != "":
		d.add(findingFail, "cluster", renew, "%s", problem)
	case chainErr != nil:
		d.add(findingFail, "cluster", renew, "the other nodes will refuse %s: %v", o.TLS.Certificate, chainErr)
	case leaf.VerifyHostname(host) != nil:
		d.add(findingFail, "cluster", renew, "other nodes connect to %s, and the certificate is for %s", host, strings.Join(certificateNames(&tlsConfig.Certificates[0]), ", "))
	case o.CheckCertificate(leaf) != nil:
		d.add(findingFail, "cluster", "name the host of this node in --cluster-guests of all nodes", "the other nodes will refuse this node: %v", o.CheckCertificate(leaf))
	case leaf.NotAfter.Sub(now) < certificateWarnBefore:
		d.add(findingWarn, "cluster", renew, "the certificate of this node expires in %s", terminal.FormatDays(leaf.NotAfter.Sub(now)))
	default:
		d.add(findingOK, "cluster", "", "the certificate of this node is valid until %s", terminal.FormatInstant(leaf.NotAfter))
	}
}

// verifyCertificate checks that the cluster's certificate authority has signed a certificate, directly or through
// intermediate certificates. The certificate must be valid for both servers and clients.
func verifyCertificate(pair *tls.Certificate, authority *x509.CertPool, now time.Time) error {
	intermediates := x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		if cert, err := x509.ParseCertificate(der); err == nil {
			intermediates.AddCert(cert)
		}
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		_, err := pair.Leaf.Verify(x509.VerifyOptions{
			Roots: authority, Intermediates: intermediates, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkMember connects to another node of the cluster, as this node would at its start, and disconnects. It returns
// whether the node is reachable.
func (d *doctor) checkMember(ctx context.Context, m node.Member, tlsConfig *tls.Config) bool {
	ctx, cancel := context.WithTimeout(ctx, memberTimeout)
	defer cancel()
	if err := d.readGreeting(ctx, m.Address, tlsConfig); err != nil {
		d.add(findingWarn, "cluster", "check that it runs, and the network between; changes need more than half of the members",
			"%s at %s is not reachable: %v", node.NodeName(m.Node), m.Address, err)
		return false
	}
	d.add(findingOK, "cluster", "", "%s at %s is reachable", node.NodeName(m.Node), m.Address)
	return true
}

// readGreeting connects to the cluster address of a node and reads the greeting, with which a node begins every
// connection.
func (d *doctor) readGreeting(ctx context.Context, address string, tlsConfig *tls.Config) error {
	conn, err := d.connect(ctx, address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // nothing was sent
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	tlsConfig = tlsConfig.Clone()
	tlsConfig.ServerName, _, _ = net.SplitHostPort(address)
	conn = tls.Client(conn, tlsConfig)
	const greeting = "INFO "
	prefix := make([]byte, len(greeting))
	if _, err := io.ReadFull(conn, prefix); err != nil {
		return err
	}
	if string(prefix) != greeting {
		return fmt.Errorf("not a node of a cluster: it answered %q", prefix)
	}
	return nil
}
