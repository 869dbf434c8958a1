package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"

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
