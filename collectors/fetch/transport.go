package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"sync"

	"github.com/tasard/tasard/collectors/source"
)

// connections are those of one Fetch. All of them end with it, whatever state they are in: the transport alone would let a handshake
// go on for a while after nobody waits for it any more.
type connections struct {
	ctx  context.Context // of the Fetch
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu    sync.Mutex
	open  []net.Conn
	ended bool
}

// dialTracked dials for the transport, whose own context outlives the request.
func (c *connections) dialTracked(_ context.Context, network, address string) (net.Conn, error) {
	conn, err := c.dial(c.ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		_ = conn.Close() // nobody waits for it
		return nil, net.ErrClosed
	}
	c.open = append(c.open, conn)
	return conn, nil
}

// closeAll closes them all.
func (c *connections) closeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for _, conn := range c.open {
		_ = conn.Close() // most are closed already
	}
}

// newTransport makes the transport of one Fetch. It speaks HTTP/1.1, unpacks gzip that it asked for itself, and knows no proxy but
// that of the Config. Each Fetch has its own, so that no source can use a connection or a CA of another.
func (c *Client) newTransport(d *source.Definition, lines *connections) (*http.Transport, *fetchError) {
	roots, refused := c.roots(d)
	if refused != nil {
		return nil, refused
	}
	return &http.Transport{
		Proxy:                  c.config.Proxy,
		DialContext:            lines.dialTracked,
		TLSClientConfig:        &tls.Config{RootCAs: roots, Time: c.config.Clock, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    c.config.RequestTimeout,
		IdleConnTimeout:        c.config.FetchTimeout,
		MaxResponseHeaderBytes: headerBytesMax,
	}, nil
}

// roots are the authorities for a source: those of all, and those of its own file. A certificate of that file is believed for this
// source alone; an intermediate that the server forgets is enough.
func (c *Client) roots(d *source.Definition) (*x509.CertPool, *fetchError) {
	if d.CAFile == "" {
		return c.config.Roots, nil
	}
	if c.config.CA == nil {
		return nil, newFetchError(source.TLS, "caFile %q: files of certificates can't be read here", d.CAFile)
	}
	text, err := c.config.CA(d.CAFile)
	if err != nil {
		return nil, newFetchError(source.TLS, "read caFile %q: %v", d.CAFile, err).withCause(err)
	}
	pool := c.config.Roots
	if pool == nil {
		if pool, err = x509.SystemCertPool(); err != nil {
			return nil, newFetchError(source.TLS, "read the authorities of the system: %v", err).withCause(err)
		}
	}
	pool = pool.Clone()
	if !pool.AppendCertsFromPEM(text) {
		return nil, newFetchError(source.TLS, "caFile %q holds no certificate in PEM", d.CAFile)
	}
	return pool, nil
}
