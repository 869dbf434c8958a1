package cmd

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

const (
	mailUser     = "tasard"
	mailPassword = "c4n4ry-Pa55word/+of the mail server"
	mailSender   = "no-reply@tasard.example"
)

// mailServer is a mail server on a local address. It keeps the newest e-mail of each recipient.
type mailServer struct {
	Addr string // HOST:PORT

	t           *testing.T
	certificate *tls.Certificate // with one, the server requires STARTTLS and a login
	codes       []string         // every code that the method code has returned
	mu          sync.Mutex
	server      *smtp.Server
	ended       chan struct{}
	emails      map[string]receivedEmail
	more        chan struct{} // closed, and replaced by a new channel, when an e-mail arrives
}

// receivedEmail is a received e-mail.
type receivedEmail struct {
	From string
	To   []string
	Text []byte
}

// newMailServer starts a mail server with STARTTLS and login. It serves until the test ends.
func newMailServer(t *testing.T) *mailServer {
	t.Helper()
	certificate := trusted().newCertificate()
	return openMailServer(t, "127.0.0.1", &certificate)
}

// newPlainMailServer is newMailServer without TLS and login, on the loopback address or another host.
func newPlainMailServer(t *testing.T, host ...string) *mailServer {
	t.Helper()
	return openMailServer(t, append(host, "127.0.0.1")[0], nil)
}

func openMailServer(t *testing.T, host string, certificate *tls.Certificate) *mailServer {
	t.Helper()
	m := &mailServer{Addr: net.JoinHostPort(host, "0"), t: t, certificate: certificate, emails: map[string]receivedEmail{}, more: make(chan struct{})}
	m.Open()
	t.Cleanup(m.Close)
	return m
}

// args are the settings of a node that uses this mail server.
func (m *mailServer) args() []string {
	if m.certificate == nil {
		return []string{"--smtp-addr", m.Addr, "--smtp-tls", "off", "--mail-from", mailSender}
	}
	return []string{"--smtp-addr", m.Addr, "--smtp-user", mailUser, "--smtp-password-file", writeFile(m.t, "password", mailPassword+"\n"), "--mail-from", mailSender}
}

// code waits for an e-mail, which must have only this recipient, and returns the code in it.
func (m *mailServer) code(to string) string {
	m.t.Helper()
	got, arrived := m.Receive(to, patience)
	code := got.Code()
	if !arrived || got.From != mailSender || len(got.To) != 1 || code == "" {
		m.t.Fatalf("an e-mail from %s to %q, want one to %s with a code:\n%s", got.From, got.To, to, got.Text)
	}
	m.codes = append(m.codes, code)
	return code
}

// Open starts the server again after Close, on the same address.
func (m *mailServer) Open() {
	m.t.Helper()
	listener, err := net.Listen("tcp", m.Addr)
	if err != nil {
		m.t.Error(err)
		return
	}
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &mailSession{server: m}, nil }))
	server.Domain = "127.0.0.1"
	if m.certificate != nil {
		server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*m.certificate}, MinVersion: tls.VersionTLS12}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // returns an error after Close
	}()
	m.Addr, m.server, m.ended = listener.Addr().String(), server, ended
}

// Close ends all connections and stops the server.
func (m *mailServer) Close() {
	_ = m.server.Close() // it may be closed already
	<-m.ended
}

// Receive waits for an e-mail to an address, and removes the e-mail from the server. It returns false if none arrives
// in time.
func (m *mailServer) Receive(to string, limit time.Duration) (email receivedEmail, arrived bool) {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for {
		m.mu.Lock()
		email, arrived := m.emails[to]
		delete(m.emails, to)
		more := m.more
		m.mu.Unlock()
		if arrived {
			return email, true
		}
		select {
		case <-more:
		case <-deadline.C:
			return receivedEmail{}, false
		}
	}
}

// Code returns the login code in the plain text of an e-mail. It returns "" without a code, and if the headers show it
// too.
func (e receivedEmail) Code() string {
	headers, plain, _ := strings.Cut(string(e.Text), "text/plain")
	code := regexp.MustCompile(`\b\d{8}\b`).FindString(plain)
	if strings.Contains(headers, code) {
		return ""
	}
	return code
}

// mailSession is one connection to a mail server.
type mailSession struct {
	server   *mailServer
	loggedIn bool
	email    receivedEmail
}

// Reset implements smtp.Session.
func (s *mailSession) Reset() { s.email = receivedEmail{} }

// Logout implements smtp.Session.
func (s *mailSession) Logout() error { return nil }

// AuthMechanisms implements smtp.AuthSession.
func (s *mailSession) AuthMechanisms() []string { return []string{sasl.Plain} }

// Auth implements smtp.AuthSession.
func (s *mailSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if s.server.certificate == nil || user != mailUser || password != mailPassword {
			return smtp.ErrAuthFailed
		}
		s.loggedIn = true
		return nil
	}), nil
}

// Mail implements smtp.Session.
func (s *mailSession) Mail(from string, _ *smtp.MailOptions) error {
	if s.server.certificate != nil && !s.loggedIn {
		return smtp.ErrAuthRequired
	}
	s.email = receivedEmail{From: from}
	return nil
}

// Rcpt implements smtp.Session.
func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.email.To = append(s.email.To, to)
	return nil
}

// Data implements smtp.Session.
func (s *mailSession) Data(r io.Reader) (err error) {
	if s.email.Text, err = io.ReadAll(r); err != nil {
		return err
	}
	m := s.server
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, to := range s.email.To {
		m.emails[to] = s.email
	}
	close(m.more)
	m.more = make(chan struct{})
	return nil
}

// authority signs certificates.
type authority struct {
	key      *ecdsa.PrivateKey
	template *x509.Certificate
	pem      string
}

// trusted is the authority that this program and the programs that it starts trust: TestMain names its certificate in
// SSL_CERT_FILE.
var trusted = sync.OnceValue(newAuthority)

func newAuthority() (a authority) {
	a.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader) // never fails
	a.template = &x509.Certificate{
		SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, a.template, a.template, &a.key.PublicKey, a.key)
	if err != nil {
		panic(err)
	}
	a.pem = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return a
}

// newCertificate is one for 127.0.0.1, good for both ends.
func (a authority) newCertificate(change ...func(server *x509.Certificate)) tls.Certificate {
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore:   time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0),
	}
	for _, do := range change {
		do(server)
	}
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader) // never fails
	der, err := x509.CreateCertificate(rand.Reader, server, a.template, &key.PublicKey, a.key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
