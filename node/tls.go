package node

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/node/acme"
)

// certificate is the certificate of the HTTP server; nil means plain HTTP. Reload can replace it at any time.
type certificate struct {
	files       TLS
	credentials string // directory of systemd credentials (Config.Credentials)
	pair        atomic.Pointer[tls.Certificate]
	manager     *acme.Manager // not nil: obtains the certificate
}

// loadCertificate reads the certificate and its key. It returns nil if none is configured. Node.open reads an
// ACME certificate later, when the data directory is open.
func (c *Config) loadCertificate() (*certificate, error) {
	files, credentials := c.HTTP.TLS, c.Credentials
	switch {
	case c.HTTP.ACME.Name != "" && files != (TLS{}):
		return nil, errorf(Invalid, "HTTP.ACME.Name", "the node has a certificate already (--tls-cert); give only one of both")
	case c.HTTP.ACME.Name != "":
		return &certificate{manager: &acme.Manager{
			Name: c.HTTP.ACME.Name, Dir: filepath.Join(c.Dir, acmeDir), Authority: c.HTTP.ACME.Authority,
			UserAgent: "tasard/" + c.Version, Clock: c.Clock, Logger: c.Logger,
		}}, nil
	case files.Certificate == "" && files.Key == "":
		return nil, nil
	case files.Certificate == "" || files.Key == "":
		return nil, errorf(Invalid, "HTTP.TLS", "one is missing; give both")
	}
	loaded := &certificate{files: files, credentials: credentials}
	pair, err := loaded.read()
	if err != nil {
		return nil, err
	}
	loaded.pair.Store(pair)
	return loaded, nil
}

func (c *certificate) read() (*tls.Certificate, error) {
	var missing, badKey error
	if _, err := checkRegular(c.files.Certificate); err != nil {
		missing = &Error{BadFile, "HTTP.TLS.Certificate", err}
	}
	if err := checkSecretFile(c.files.Key, c.credentials, "private key"); err != nil {
		badKey = &Error{BadFile, "HTTP.TLS.Key", err}
	}
	if err := errors.Join(missing, badKey); err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(c.files.Certificate, c.files.Key)
	if err != nil {
		return nil, errorf(BadFile, "HTTP.TLS.Certificate", "%s with %s: %w", c.files.Certificate, c.files.Key, err)
	}
	return &pair, nil
}

// current returns the certificate in use, or nil.
func (c *certificate) current() *tls.Certificate {
	if c.managed() {
		return c.manager.Certificate()
	}
	return c.pair.Load()
}

// getCertificate is the function of tls.Config.
func (c *certificate) getCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if pair := c.current(); pair != nil {
		return pair, nil
	}
	return nil, errors.New("the node has no certificate yet")
}

// managed reports whether the certificate comes from HTTP.ACME.
func (c *certificate) managed() bool { return c != nil && c.manager != nil }

// expiry returns the expiry of the certificate in use, or the zero time if there is none.
func (c *certificate) expiry() time.Time {
	if c == nil || c.current() == nil {
		return time.Time{}
	}
	return c.current().Leaf.NotAfter
}

// scheme returns the beginning of the node's URL.
func (c *certificate) scheme() string {
	if c == nil {
		return "http://"
	}
	return "https://"
}

// certificateProblem returns why a certificate is not valid at the time now, or "".
func certificateProblem(leaf *x509.Certificate, now time.Time) string {
	switch {
	case now.After(leaf.NotAfter):
		return "the certificate has expired on " + formatInstant(leaf.NotAfter)
	case now.Before(leaf.NotBefore):
		return "the certificate is not valid before " + formatInstant(leaf.NotBefore)
	}
	return ""
}

// warn logs a warning if clients will reject the certificate.
func (c *certificate) warn(log *slog.Logger, now time.Time) {
	if c == nil || c.pair.Load() == nil {
		return
	}
	if problem := certificateProblem(c.pair.Load().Leaf, now); problem != "" {
		log.Warn(problem+"; clients will refuse it", "file", c.files.Certificate)
	}
}

func formatInstant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

const (
	acmeDir            = "https" // in the data directory
	redirectConnsMax   = 128     // further connections wait in the backlog
	redirectTimeout    = 5 * time.Second
	redirectHeaderSize = 8 << 10
)

// startRedirect starts the server for plain HTTP. listener may be nil.
func (n *Node) startRedirect(listener net.Listener) {
	if listener == nil {
		return
	}
	n.redirect = &http.Server{
		Handler: n.certificate.manager, ReadTimeout: redirectTimeout, WriteTimeout: redirectTimeout, MaxHeaderBytes: redirectHeaderSize,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	n.redirect.SetKeepAlivesEnabled(false)
	n.redirects.Go(func() {
		if err := n.redirect.Serve(netutil.LimitListener(listener, redirectConnsMax)); !errors.Is(err, http.ErrServerClosed) {
			n.config.Logger.Error("plain HTTP is not answered any more: the certificate can't be renewed; start the node again", "cause", err.Error())
		}
	})
}

func (n *Node) stopRedirect() {
	if n.redirect != nil {
		_ = n.redirect.Close() // redirects in flight need no answer
		n.redirects.Wait()
	}
}

// certificateCondition returns the health condition "certificate".
func (n *Node) certificateCondition() engine.Condition {
	condition := engine.HealthyCondition("certificate")
	failing, expiry := n.certificate.manager.Failing(), n.certificate.expiry()
	if failing != nil {
		condition.Since = *failing
	}
	switch {
	case expiry.IsZero():
		condition.State, condition.Down = "missing", true
		condition.Detail = "There is no certificate for HTTPS yet. The authority must reach this node at port 80 of its name; the log says what went wrong."
	case !n.config.Clock().Before(expiry):
		condition.State, condition.Down = "expired", true
		condition.Detail = "The certificate for HTTPS has expired and could not be renewed. The log says why."
	case failing != nil:
		condition.State = "renewal_failing"
		condition.Detail = "The certificate for HTTPS could not be renewed and will expire. The log says why."
	}
	return condition
}

// Reload reads the files that may change while a node runs: the certificate for clients and its key. All other files
// are read at a start. After an error the node keeps the certificate that it has. change describes the change for the
// log; "" means none.
func (n *Node) Reload() (change string, err error) {
	defer func() { n.reloads.Record(err == nil, n.config.Clock()) }()
	c := n.certificate
	if c == nil || c.managed() {
		return "", nil
	}
	pair, err := c.read()
	if err != nil {
		return "", err
	}
	if !pair.Leaf.Equal(c.pair.Load().Leaf) {
		change = "the certificate, valid until " + formatInstant(pair.Leaf.NotAfter)
	}
	c.pair.Store(pair)
	c.warn(n.config.Logger, n.config.Clock())
	return change, nil
}
