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

// memberPatience is how long another node may take to greet.
const memberPatience = 5 * time.Second

// cluster looks at what a node needs that is one of several: its certificate, its address, the others.
func (d *doctor) cluster(ctx context.Context) {
	o := &d.o.Config.Cluster
	if o.Check(d.config()) != nil {
		return // said already
	}
	if o.Name == "" {
		d.note(findingOK, "cluster", "", "none: this node is alone (--cluster)")
		return
	}
	security, err := o.TLS.Load()
	if err != nil {
		return // it was there a moment ago
	}
	if security != nil {
		d.clusterCertificate(o, security)
	}
	d.free("cluster", o.Address(), "Cluster.Listen")
	for _, m := range o.Members {
		if m.Node != o.Node && ctx.Err() == nil {
			d.member(ctx, m, security)
		}
	}
}

// clusterCertificate holds this node's certificate against what the others will want of it.
func (d *doctor) clusterCertificate(o *node.Cluster, security *tls.Config) {
	const renew = "make it anew and restart this node; packaging/cluster/README.md has how"
	leaf, now := security.Certificates[0].Leaf, d.Clock()
	host, _, _ := net.SplitHostPort(o.Address())
	unsigned := believed(&security.Certificates[0], security.RootCAs, now)
	switch problem := node.Untimely(leaf, now); {
	case problem != "":
		d.note(findingFail, "cluster", renew, "%s", problem)
	case unsigned != nil:
		d.note(findingFail, "cluster", renew, "the other nodes will not believe %s: %v", o.TLS.Certificate, unsigned)
	case leaf.VerifyHostname(host) != nil:
		d.note(findingFail, "cluster", renew, "others reach this node at %s, and the certificate is for %s", host, strings.Join(namesOf(&security.Certificates[0]), ", "))
	case leaf.NotAfter.Sub(now) < certificateDays:
		d.note(findingWarn, "cluster", renew, "the certificate of this node ends in %s", terminal.InDays(leaf.NotAfter.Sub(now)))
	default:
		d.note(findingOK, "cluster", "", "the certificate of this node is good until %s", terminal.Instant(leaf.NotAfter))
	}
}

// believed tells whether an authority, or somebody whom it has signed, has signed a certificate, for both ends of a connection.
func believed(pair *tls.Certificate, authority *x509.CertPool, now time.Time) error {
	between := x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		if one, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(one)
		}
	}
	for _, end := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		_, err := pair.Leaf.Verify(x509.VerifyOptions{
			Roots: authority, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{end},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// member goes as far as another node's greeting, as this node does when it starts, and leaves.
func (d *doctor) member(ctx context.Context, m node.Member, security *tls.Config) {
	ctx, cancel := context.WithTimeout(ctx, memberPatience)
	defer cancel()
	if err := d.greeted(ctx, m.Address, security); err != nil {
		d.note(findingWarn, "cluster", "look whether it runs, and at what lies between the machines; changes need more than half of the members",
			"%s at %s is not reached: %v", node.NodeName(m.Node), m.Address, err)
		return
	}
	d.note(findingOK, "cluster", "", "%s at %s is reached", node.NodeName(m.Node), m.Address)
}

// greeted connects to a node's address for other nodes and waits for the first line that it says there.
func (d *doctor) greeted(ctx context.Context, address string, security *tls.Config) error {
	conn, err := d.connect(ctx, address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // nothing was said
	if end, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(end); err != nil {
			return err
		}
	}
	if security != nil {
		security = security.Clone()
		security.ServerName, _, _ = net.SplitHostPort(address)
		conn = tls.Client(conn, security)
	}
	const greeting = "INFO "
	found := make([]byte, len(greeting))
	if _, err := io.ReadFull(conn, found); err != nil {
		return err
	}
	if string(found) != greeting {
		return fmt.Errorf("what answers there is no node of a cluster: %q", found)
	}
	return nil
}
