package acme

import (
	"cmp"
	"context"
	"crypto"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/acme"
)

// LetsEncrypt is the default of Config.Authority.
const LetsEncrypt = acme.LetsEncryptURL

const (
	renewBeforeMax = 30 * 24 * time.Hour
	obtainMax      = 5 * time.Minute // longest time for one attempt
	retryMin       = time.Minute
	retryMax       = time.Hour
	retryFactor    = 4
	// checkInterval is the longest pause between two looks at the clock, which may be stepped.
	checkInterval = time.Hour
)

// ErrNoCertificate is the error of handshakes while there is no certificate.
var ErrNoCertificate = errors.New("the node has no certificate yet")

// Config configures a Manager. Name and Dir are required.
type Config struct {
	Name      string           // DNS name of the certificate
	Dir       string           // directory of the files; Open creates it
	Authority string           // URL of the authority's directory; "" means LetsEncrypt
	UserAgent string           // for requests to the authority
	Client    *http.Client     // for requests to the authority; nil means a client with the proxies of the environment
	Clock     func() time.Time // nil means time.Now
	Logger    *slog.Logger     // nil means no log
}

// Manager has the certificate of one name. Its methods are safe for concurrent use.
type Manager struct {
	config     Config
	dir        string // the part of Config.Dir for the authority
	accountKey crypto.Signer
	pair       atomic.Pointer[tls.Certificate]
	failure    atomic.Pointer[Failure]

	mu     sync.Mutex
	tokens map[string]string // responses to challenges by path, while the authority checks the name
}

// Failure describes why the certificate could not be obtained or renewed.
type Failure struct {
	Since time.Time // time of the first of consecutive failures
	Err   error     // error of the last one
}

// Open reads the key of the account, which it creates if there is none, and the certificate if there is one.
func Open(c Config) (*Manager, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = time.Now //nolint:forbidigo // documented
	}
	if c.Client == nil {
		c.Client = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()} //nolint:forbidigo,forcetypeassert // a copy; documented
	}
	m, err := c.manager()
	if err != nil {
		return nil, err
	}
	if m.accountKey, err = readOrCreateKey(m.dir); err != nil {
		return nil, err
	}
	pair, err := m.readCertificate()
	m.pair.Store(pair)
	return m, err
}

// Stored returns the certificate that Open would use, or nil if there is none. It creates nothing.
func Stored(c Config) (*tls.Certificate, error) {
	m, err := c.manager()
	if err != nil {
		return nil, err
	}
	return m.readCertificate()
}

func (c Config) manager() (*Manager, error) {
	c.Authority = cmp.Or(c.Authority, LetsEncrypt)
	address, err := url.Parse(c.Authority)
	if err != nil || address.Host == "" {
		return nil, fmt.Errorf("%q: want the address of an ACME directory, such as %s", c.Authority, LetsEncrypt)
	}
	return &Manager{config: c, dir: filepath.Join(c.Dir, url.PathEscape(address.Host)), tokens: map[string]string{}}, nil
}

// Certificate returns the certificate in use, or nil if there is none yet.
func (m *Manager) Certificate() *tls.Certificate { return m.pair.Load() }

// GetCertificate is the function of tls.Config with this name. It does not wait.
func (m *Manager) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if pair := m.pair.Load(); pair != nil {
		return pair, nil
	}
	return nil, ErrNoCertificate
}

// Failure returns why the last attempt to obtain a certificate failed, or nil if it did not.
func (m *Manager) Failure() *Failure { return m.failure.Load() }

// Run obtains the certificate when it is missing or due for renewal, until ctx ends.
func (m *Manager) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	retry := retryMin
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if m.untilRenewal() <= 0 {
			pause, err := m.attempt(ctx, retry)
			if err != nil {
				retry = min(retryFactor*retry, retryMax)
				timer.Reset(pause)
				continue
			}
			retry = retryMin
		}
		timer.Reset(min(max(m.untilRenewal(), 0), checkInterval))
	}
}

// untilRenewal returns the time until the certificate should be renewed. It is not positive if renewal is due.
func (m *Manager) untilRenewal() time.Duration {
	pair := m.pair.Load()
	if pair == nil {
		return 0
	}
	lifetime := pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore)
	return pair.Leaf.NotAfter.Add(-min(lifetime/3, renewBeforeMax)).Sub(m.config.Clock())
}

// attempt tries once to obtain a certificate. After an error it returns the pause before the next attempt: retry, or
// longer if the authority asks for it.
func (m *Manager) attempt(ctx context.Context, retry time.Duration) (pause time.Duration, err error) {
	obtainCtx, cancel := context.WithTimeout(ctx, obtainMax)
	defer cancel()
	defer m.config.Client.CloseIdleConnections() // their goroutines would outlive Run
	pair, err := m.obtain(obtainCtx)
	log := m.config.Logger.With("name", m.config.Name, "authority", m.config.Authority)
	switch {
	case err == nil:
		m.pair.Store(pair)
		m.failure.Store(nil)
		log.Info("certificate obtained", "notAfter", pair.Leaf.NotAfter.UTC())
		return 0, nil
	case ctx.Err() != nil: // Run ends
		return 0, err
	}
	if asked, limited := acme.RateLimit(err); limited {
		retry = max(retry, asked)
	}
	failure := Failure{m.config.Clock(), err}
	if previous := m.failure.Load(); previous != nil {
		failure.Since = previous.Since
	}
	m.failure.Store(&failure)
	log.Warn("no certificate was obtained", "cause", err.Error(), "nextAttempt", retry.String())
	return retry, err
}
