package acme

import (
	"cmp"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/acme"
)

// LetsEncrypt is the default of Config.Authority.
const LetsEncrypt = acme.LetsEncryptURL

const (
	renewBeforeMax = 30 * 24 * time.Hour
	obtainMax      = 5 * time.Minute // maximum time for one attempt
	retryMin       = time.Minute
	retryMax       = time.Hour
	retryFactor    = 4
	// checkInterval is the maximum pause between two checks of the clock, which may be set forward.
	checkInterval = time.Hour
)

// ErrNoCertificate is the error of handshakes while there is no certificate.
var ErrNoCertificate = errors.New("the node has no certificate yet")

// Config configures a Manager. Name, Dir, Clock and Logger are required.
type Config struct {
	Name      string       // DNS name of the certificate
	Dir       string       // directory of the files; Open creates it
	Authority string       // URL of the authority's directory; "" means LetsEncrypt
	UserAgent string       // for requests to the authority
	Client    *http.Client // for requests to the authority; nil means a client with the proxies of the environment
	Clock     func() time.Time
	Logger    *slog.Logger
}

// Manager obtains and renews the certificate of one name. Its methods are safe for concurrent use.
type Manager struct {
	config     Config
	dir        string // subdirectory of Config.Dir for the authority
	accountKey crypto.Signer
	pair       atomic.Pointer[tls.Certificate] // the certificate in use, with its key; nil if there is none
	failure    atomic.Pointer[Failure]
	challenge  atomic.Pointer[challenge] // not nil while the authority checks the name
}

// challenge is a request of the authority, and the response.
type challenge struct{ path, response string }

// Failure describes failed attempts to obtain or renew the certificate.
type Failure struct {
	Since time.Time // time of the first of these consecutive failures
	Err   error     // error of the last one
}

// Open reads the account's key, or creates it, and reads the certificate if there is one.
func Open(c Config) (*Manager, error) {
	if c.Client == nil {
		c.Client = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()} //nolint:forbidigo,forcetypeassert // a copy; documented
	}
	c.Authority = cmp.Or(c.Authority, LetsEncrypt)
	address, err := url.Parse(c.Authority)
	if err != nil || address.Host == "" {
		return nil, fmt.Errorf("%q: want the address of an ACME directory, such as %s", c.Authority, LetsEncrypt)
	}
	m := &Manager{config: c, dir: filepath.Join(c.Dir, url.PathEscape(address.Host))}
	if m.accountKey, err = m.readAccountKey(); err != nil {
		return nil, err
	}
	pair, err := m.readCertificate()
	m.pair.Store(pair)
	return m, err
}

// GetCertificate is for the field of tls.Config with this name. It does not block.
func (m *Manager) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if pair := m.pair.Load(); pair != nil {
		return pair, nil
	}
	return nil, ErrNoCertificate
}

// Failure returns why the last attempt failed, or nil.
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

// untilRenewal returns the time until renewal. It is not positive if renewal is due.
func (m *Manager) untilRenewal() time.Duration {
	pair := m.pair.Load()
	if pair == nil {
		return 0
	}
	lifetime := pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore)
	return pair.Leaf.NotAfter.Add(-min(lifetime/3, renewBeforeMax)).Sub(m.config.Clock())
}

// attempt tries once to obtain a certificate. After an error it returns the pause before the next attempt: retry, or a
// longer one if the authority asks for it.
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

// obtain orders a certificate with a new key and stores it.
func (m *Manager) obtain(ctx context.Context) (*tls.Certificate, error) {
	client := &acme.Client{Key: m.accountKey, HTTPClient: m.config.Client, DirectoryURL: m.config.Authority, UserAgent: m.config.UserAgent}
	if _, err := client.Register(ctx, &acme.Account{}, acme.AcceptTOS); err != nil && !errors.Is(err, acme.ErrAccountAlreadyExists) {
		return nil, fmt.Errorf("register an account: %w", err)
	}
	order, err := client.AuthorizeOrder(ctx, acme.DomainIDs(m.config.Name))
	if err != nil {
		return nil, fmt.Errorf("order a certificate: %w", err)
	}
	for _, address := range order.AuthzURLs {
		if err := m.authorize(ctx, client, address); err != nil {
			return nil, fmt.Errorf("prove that port 80 of %s leads to this node: %w", m.config.Name, err)
		}
	}
	if order, err = client.WaitOrder(ctx, order.URI); err != nil {
		return nil, fmt.Errorf("await the order: %w", err)
	}
	key, text, err := newKey()
	if err != nil {
		return nil, err
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: []string{m.config.Name}}, key)
	if err != nil {
		return nil, err
	}
	chain, _, err := client.CreateCertFromOrder(ctx, order, request, true)
	if err != nil {
		return nil, fmt.Errorf("get the certificate: %w", err)
	}
	for _, der := range chain { // in one file with the key, so that they always belong together
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	if err := replaceFile(m.certificatePath(), text); err != nil {
		// The certificate is used anyway: another one may be refused, because authorities limit their number in a week.
		m.config.Logger.Error("the certificate can't be stored: the next start needs another one", "cause", err.Error())
	}
	return parseCertificate(text, m.config.Name)
}

// authorize proves to the authority that this node owns the name. It does nothing while an earlier proof is valid.
func (m *Manager) authorize(ctx context.Context, client *acme.Client, address string) error {
	authorization, err := client.GetAuthorization(ctx, address)
	if err != nil || authorization.Status == acme.StatusValid {
		return err
	}
	for _, offered := range authorization.Challenges {
		if offered.Type != "http-01" {
			continue
		}
		response, err := client.HTTP01ChallengeResponse(offered.Token)
		if err != nil {
			return err
		}
		m.challenge.Store(&challenge{client.HTTP01ChallengePath(offered.Token), response})
		defer m.challenge.Store(nil)
		if _, err := client.Accept(ctx, offered); err != nil {
			return err
		}
		_, err = client.WaitAuthorization(ctx, address)
		return err
	}
	return errors.New("the authority does not offer the challenge http-01")
}

// ServeHTTP serves plain HTTP: it answers the authority's challenges, and redirects other requests to the same path
// over HTTPS. It refuses a request with an API key, because the key was sent unencrypted and a redirect would hide
// this.
func (m *Manager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch asked := m.challenge.Load(); {
	case asked != nil && asked.path == r.URL.Path:
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, asked.response) // the authority tries again
	case r.Header.Get("Authorization") != "":
		http.Error(w, "This key was sent without encryption: revoke it, and send keys only to https://"+m.config.Name, http.StatusForbidden)
	default:
		target := "https://" + m.config.Name
		if r.URL.Path != "*" { // OPTIONS * concerns the whole server
			target += r.URL.RequestURI()
		}
		http.Redirect(w, r, target, http.StatusPermanentRedirect) //nolint:gosec // G710: always to m.config.Name
	}
}

const (
	typeKey      = "PRIVATE KEY"
	suffixUnused = ".new"
)

// readAccountKey returns the account's key, and creates it if necessary.
func (m *Manager) readAccountKey() (crypto.Signer, error) {
	path := filepath.Join(m.dir, "account.key")
	text, err := os.ReadFile(path) //nolint:gosec // G304: in the data directory
	if errors.Is(err, fs.ErrNotExist) {
		key, text, err := newKey()
		if err = errors.Join(err, os.MkdirAll(m.dir, 0o700)); err == nil {
			err = replaceFile(path, text)
		}
		return key, err
	}
	if err != nil {
		return nil, err
	}
	if block, _ := pem.Decode(text); block != nil && block.Type == typeKey {
		if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if signer, ok := key.(crypto.Signer); ok {
				return signer, nil
			}
		}
	}
	return nil, fmt.Errorf("%s: want a private key in PEM; delete the file to register a new account", path)
}

// newKey creates a private key. It also returns the key in PEM.
func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return key, pem.EncodeToMemory(&pem.Block{Type: typeKey, Bytes: der}), err
}

func (m *Manager) certificatePath() string { return filepath.Join(m.dir, m.config.Name+".pem") }

// readCertificate reads the stored certificate. It returns nil if there is none.
func (m *Manager) readCertificate() (*tls.Certificate, error) {
	text, err := os.ReadFile(m.certificatePath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	pair, err := parseCertificate(text, m.config.Name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; delete the file to get a new certificate", m.certificatePath(), err)
	}
	return pair, nil
}

func parseCertificate(text []byte, name string) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(text, text)
	if err == nil {
		err = pair.Leaf.VerifyHostname(name)
	}
	return &pair, err
}

// replaceFile writes a file that only its owner may read. After a crash the file has either its old or its new
// contents.
func replaceFile(path string, text []byte) error {
	file, err := os.OpenFile(path+suffixUnused, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) //nolint:gosec // G304: in the data directory
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
