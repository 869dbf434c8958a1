package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"sync"

	"github.com/tasard/tasard/collectors/source"
)

// connections collects the connections of one Fetch, to close all of them before Fetch returns. Otherwise the transport
// might keep a connection whose handshake ends after its request's timeout.
type connections struct {
	ctx  context.Context // the context of the Fetch
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu    sync.Mutex
	open  []net.Conn
	ended bool // closeAll was called
}

// dialTracked is the transport's DialContext. It ignores the transport's context, because that may outlive the Fetch.
func (c *connections) dialTracked(_ context.Context, network, address string) (net.Conn, error) {
	conn, err := c.dial(c.ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	c.open = append(c.open, conn)
	return conn, nil
}

func (c *connections) closeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for _, conn := range c.open {
		_ = conn.Close() // the transport has closed most of them already
	}
}

// newTransport returns the transport of one Fetch: HTTP/1.1, gzip, no proxy except the definition's. Each Fetch has its
// own, so that sources share no connections and no certificate authorities.
func (c *Client) newTransport(d *source.Definition, conns *connections) (*http.Transport, *fetchError) {
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
	return &http.Transport{
		Proxy:                  proxy,
		DialContext:            conns.dialTracked,
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
	if c.config.CA == nil {
		return nil, newFetchError(source.TLS, "caFile %q: certificate files can't be read here", d.CAFile)
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
