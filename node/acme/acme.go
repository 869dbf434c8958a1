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
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

const (
	renewBeforeMax = 30 * 24 * time.Hour
	obtainMax      = 5 * time.Minute // maximum time for one attempt
	retryMin       = time.Minute     // pause after the first failed attempt
	retryMax       = time.Hour
	retryFactor    = 4
	checkInterval  = time.Hour // maximum pause between two checks of the clock, which may be set forward
)

// Manager obtains and renews the certificate of one name. Name, Dir, Clock and Logger are required. Call Open before
// the other methods, which are safe for concurrent use.
type Manager struct {
	Name      string // DNS name of the certificate
	Dir       string // directory of the files
	Authority string // URL of the authority's directory; "" means Let's Encrypt
	UserAgent string // for requests to the authority
	Clock     func() time.Time
	Logger    *slog.Logger

	client    http.Client
	files     autocert.DirCache // in the subdirectory of Dir for the authority
	pair      atomic.Pointer[tls.Certificate]
	failing   atomic.Pointer[time.Time] // time of the first of the newest consecutive failures; nil if there is none
	challenge atomic.Pointer[challenge] // not nil while the authority checks the name
}

// challenge is a request of the authority, and the response.
type challenge struct{ path, response string }

// Open reads the stored certificate. A damaged file counts as none.
func (m *Manager) Open() error {
	m.client.Transport = http.DefaultTransport.(*http.Transport).Clone() //nolint:forbidigo,forcetypeassert // a copy; documented
	m.Authority = cmp.Or(m.Authority, acme.LetsEncryptURL)
	address, err := url.Parse(m.Authority)
	if err != nil {
		return err
	}
	m.files = autocert.DirCache(filepath.Join(m.Dir, url.PathEscape(address.Host)))
	text, err := m.files.Get(context.Background(), m.file())
	switch {
	case errors.Is(err, autocert.ErrCacheMiss):
		return nil
	case err != nil:
		return err
	}
	if err := m.use(text); err != nil {
		m.Logger.Warn("the stored certificate is unusable: another one will be obtained", "file", m.file(), "cause", err.Error())
	}
	return nil
}

// file returns the name of the file with the certificate, its chain and its key.
func (m *Manager) file() string { return m.Name + ".pem" }

// use puts the certificate in the text of a file into use.
func (m *Manager) use(text []byte) error {
	pair, err := tls.X509KeyPair(text, text)
	if err == nil {
		err = pair.Leaf.VerifyHostname(m.Name)
	}
	if err == nil {
		m.pair.Store(&pair)
	}
	return err
}

// Certificate returns the certificate in use, with its key, or nil.
func (m *Manager) Certificate() *tls.Certificate { return m.pair.Load() }

// Failing returns the time of the first of the newest consecutive failures, or nil if the last attempt has succeeded.
func (m *Manager) Failing() *time.Time { return m.failing.Load() }

// Run obtains the certificate when it is missing or due for renewal, until ctx ends.
func (m *Manager) Run(ctx context.Context) {
	for retry := retryMin; ctx.Err() == nil; {
		pause := min(m.untilRenewal(), checkInterval)
		if pause > 0 {
			retry = retryMin
		} else {
			pause = m.attempt(ctx, retry)
			retry = min(retryFactor*retry, retryMax)
		}
		wait, cancel := context.WithTimeout(ctx, pause)
		<-wait.Done()
		cancel()
	}
}

// untilRenewal returns the time until renewal. It is not positive if renewal is due.
func (m *Manager) untilRenewal() time.Duration {
	pair := m.Certificate()
	if pair == nil {
		return 0
	}
	lifetime := pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore)
	return pair.Leaf.NotAfter.Add(-min(lifetime/3, renewBeforeMax)).Sub(m.Clock())
}

// attempt tries once to obtain a certificate. After a failure it returns the pause before the next attempt: retry, or a
// longer one if the authority asks for it.
func (m *Manager) attempt(ctx context.Context, retry time.Duration) (pause time.Duration) {
	obtainCtx, cancel := context.WithTimeout(ctx, obtainMax)
	defer cancel()
	defer m.client.CloseIdleConnections() // their goroutines would outlive Run
	err := m.obtain(obtainCtx)
	log := m.Logger.With("name", m.Name, "authority", m.Authority)
	switch {
	case err == nil:
		m.failing.Store(nil)
		log.Info("certificate obtained", "notAfter", m.Certificate().Leaf.NotAfter.UTC())
		if m.untilRenewal() > 0 {
			return 0
		}
		return retry // the clock is wrong: do not order one after the other
	case ctx.Err() != nil: // Run ends
		return 0
	}
	if asked, limited := acme.RateLimit(err); limited {
		retry = max(retry, asked)
	}
	now := m.Clock()
	m.failing.CompareAndSwap(nil, &now)
	log.Warn("no certificate was obtained", "cause", err.Error(), "nextAttempt", retry.String())
	return retry
}

// obtain orders a certificate with a new key, puts it into use and stores it.
func (m *Manager) obtain(ctx context.Context) error {
	accountKey, err := m.accountKey(ctx)
	if err != nil {
		return err
	}
	client := &acme.Client{Key: accountKey, HTTPClient: &m.client, DirectoryURL: m.Authority, UserAgent: m.UserAgent}
	if _, err := client.Register(ctx, &acme.Account{}, acme.AcceptTOS); err != nil && !errors.Is(err, acme.ErrAccountAlreadyExists) {
		return fmt.Errorf("register an account: %w", err)
	}
	order, err := client.AuthorizeOrder(ctx, acme.DomainIDs(m.Name))
	if err != nil {
		return fmt.Errorf("order a certificate: %w", err)
	}
	for _, address := range order.AuthzURLs {
		if err := m.authorize(ctx, client, address); err != nil {
			return fmt.Errorf("prove that port 80 of %s leads to this node: %w", m.Name, err)
		}
	}
	if order, err = client.WaitOrder(ctx, order.URI); err != nil {
		return fmt.Errorf("await the order: %w", err)
	}
	key, text, err := newKey()
	if err != nil {
		return err
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: []string{m.Name}}, key)
	if err != nil {
		return err
	}
	chain, _, err := client.CreateCertFromOrder(ctx, order, request, true)
	if err != nil {
		return fmt.Errorf("get the certificate: %w", err)
	}
	for _, der := range chain { // in one file with the key, so that they always belong together
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	if err := m.use(text); err != nil {
		return err
	}
	if err := m.files.Put(context.WithoutCancel(ctx), m.file(), text); err != nil {
		// The certificate is used anyway: another one may be refused, because authorities limit their number in a week.
		m.Logger.Error("the certificate can't be stored: the next start needs another one", "cause", err.Error())
	}
	return nil
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
		http.Error(w, "This key was sent without encryption: revoke it, and send keys only to https://"+m.Name, http.StatusForbidden)
	default:
		target := "https://" + m.Name
		if r.URL.Path != "*" { // OPTIONS * concerns the whole server
			target += r.URL.RequestURI()
		}
		http.Redirect(w, r, target, http.StatusPermanentRedirect) //nolint:gosec // G710: always to m.Name
	}
}

// accountFile is the name of the file with the key of the account at the authority.
const accountFile = "account.key"

// accountKey reads the account's key. It creates one if there is none, or if the file is damaged.
func (m *Manager) accountKey(ctx context.Context) (crypto.Signer, error) {
	text, err := m.files.Get(ctx, accountFile)
	if block, _ := pem.Decode(text); block != nil {
		if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if signer, ok := key.(crypto.Signer); ok {
				return signer, nil
			}
		}
	}
	if err != nil && !errors.Is(err, autocert.ErrCacheMiss) {
		return nil, err
	}
	key, text, err := newKey()
	if err == nil {
		err = m.files.Put(context.WithoutCancel(ctx), accountFile, text)
	}
	return key, err
}

// newKey creates a private key. It also returns the key in PEM.
func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}
