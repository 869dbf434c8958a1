package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"

	"github.com/tasard/tasard/collectors/source"
)

// newTransport returns the transport of one Fetch: HTTP/1.1, gzip, no proxy except the definition's. Each Fetch has its
// own, so that sources share no connections and no certificate authorities.
//
// The end of ctx, that of the Fetch, closes every connection. The context of a dial is ignored, because it may outlive
// the Fetch.
func (c *Client) newTransport(ctx context.Context, d *source.Definition) (*http.Transport, *fetchError) {
	roots, fetchErr := c.roots(d)
	if fetchErr != nil {
		return nil, fetchErr
	}
	config := &tls.Config{RootCAs: roots, Time: c.config.Clock, MinVersion: tls.VersionTLS12}
	var proxy func(*http.Request) (*url.URL, error)
	if d.Proxy != "" {
		address, err := url.Parse(d.Proxy)
		if err != nil {
			return nil, newFetchError(source.Internal, "%q is not the address of a proxy; correct the definition", d.Proxy).withCause(err)
		}
		proxy = http.ProxyURL(address)
	}
	dial := c.config.Dial
	if dial == nil {
		dial = dialPublic(d)
	}
	return &http.Transport{
		Proxy: proxy,
		DialContext: func(_ context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			if err == nil {
				context.AfterFunc(ctx, func() { _ = conn.Close() }) // the transport has closed most of them already
			}
			return conn, err
		},
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    c.config.RequestTimeout,
		IdleConnTimeout:        c.config.FetchTimeout,
		MaxResponseHeaderBytes: headerBytesMax,
	}, nil
}

// roots returns the trusted certificates for a source: Config.Roots and the definition's PEM file (CAFile). A CAFile
// can also contain an intermediate certificate that the server omits.
func (c *Client) roots(d *source.Definition) (*x509.CertPool, *fetchError) {
	if d.CAFile == "" {
		return c.config.Roots, nil
	}
	text, err := c.config.CA(d.CAFile)
	if err != nil {
		return nil, newFetchError(source.TLS, "read caFile %q: %v", d.CAFile, err).withCause(err)
	}
	pool := c.config.Roots
	if pool == nil {
		if pool, err = x509.SystemCertPool(); err != nil {
			return nil, newFetchError(source.TLS, "read the certificate authorities of the system: %v", err).withCause(err)
		}
	}
	pool = pool.Clone()
	if !pool.AppendCertsFromPEM(text) {
		return nil, newFetchError(source.TLS, "caFile %q holds no certificate in PEM", d.CAFile)
	}
	return pool, nil
}

// sharedAddresses are addresses behind providers' NAT (RFC 6598), not reachable from outside.
var sharedAddresses = netip.MustParsePrefix("100.64.0.0/10")

// dialPublic returns the dial function for a source if Config.Dial is nil. It connects only to public addresses, so
// that neither a site's DNS nor a redirect can direct requests into the operator's network. An IP address in a URL of
// the definition is allowed too. With a proxy, the node connects only to the proxy.
func dialPublic(d *source.Definition) func(ctx context.Context, network, address string) (net.Conn, error) {
	if d.Proxy != "" { // named by the operator; all connections go there
		return new(net.Dialer).DialContext
	}
	named := map[netip.Addr]bool{}
	for i := range d.Pages {
		for _, request := range d.Pages[i].Requests {
			if location, err := url.Parse(request.URL); err == nil {
				if addr, err := netip.ParseAddr(location.Hostname()); err == nil {
					named[addr.Unmap()] = true
				}
			}
		}
	}
	dialer := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if addr := to.Addr().Unmap().WithZone(""); err != nil || !isPublic(addr) && !named[addr] {
			return fmt.Errorf("%s is not a public address; a source in your own network needs the address itself in the url of its definition", address)
		}
		return nil
	}}
	return dialer.DialContext
}

func isPublic(addr netip.Addr) bool {
	return addr.IsGlobalUnicast() && !addr.IsPrivate() && !sharedAddresses.Contains(addr)
}
