package cmdtest

import (
	"bytes"
	"crypto/tls"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/mail"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// MailServer is a mail server on a local address. It keeps the newest e-mail of each recipient.
type MailServer struct {
	Addr string // HOST:PORT

	t       testing.TB
	login   *MailLogin
	mu      sync.Mutex
	server  *smtp.Server
	ended   chan struct{}
	emails  map[string]Email
	arrived int
	more    chan struct{} // closed, and replaced by a new channel, when an e-mail arrives
}

// MailLogin is the requirement of a mail server: TLS, and a user with a password.
type MailLogin struct {
	User, Password string
	Certificate    tls.Certificate
}

// Email is a received e-mail.
type Email struct {
	From string
	To   []string
	Text []byte
}

// NewMailServer starts a mail server. If login is nil, the server requires no login and has no TLS.
func NewMailServer(t testing.TB, host string, login *MailLogin) *MailServer {
	t.Helper()
	m := &MailServer{Addr: net.JoinHostPort(host, "0"), t: t, login: login, emails: map[string]Email{}, more: make(chan struct{})}
	m.Open()
	t.Cleanup(m.Close)
	return m
}

// Open starts the server again after Close, on the same address.
func (m *MailServer) Open() {
	m.t.Helper()
	listener, err := net.Listen("tcp", m.Addr)
	if err != nil {
		m.t.Error(err)
		return
	}
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &mailSession{server: m}, nil }))
	server.Domain = "127.0.0.1"
	if m.login != nil {
		server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{m.login.Certificate}, MinVersion: tls.VersionTLS12}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // returns an error after Close
	}()
	m.Addr, m.server, m.ended = listener.Addr().String(), server, ended
}

// Close ends all connections and stops the server.
func (m *MailServer) Close() {
	_ = m.server.Close() // it may be closed already
	<-m.ended
}

// Arrived returns how many e-mails have arrived.
func (m *MailServer) Arrived() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.arrived
}

// Receive waits for an e-mail to an address, and removes the e-mail from the server. It returns false if none arrives
// in time.
func (m *MailServer) Receive(to string, limit time.Duration) (email Email, arrived bool) {
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
			return Email{}, false
		}
	}
}

// Code returns the login code in the plain text of an e-mail. It returns "" without a code, and if the subject shows it
// too.
func (e Email) Code() string {
	message, err := mail.ReadMessage(bytes.NewReader(e.Text))
	if err != nil {
		return ""
	}
	_, parameters, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	part, err := multipart.NewReader(message.Body, parameters["boundary"]).NextPart() // NextPart decodes quoted-printable
	if err != nil {
		return ""
	}
	plain, err := io.ReadAll(part)
	code := regexp.MustCompile(`\b\d{8}\b`).FindString(string(plain))
	if err != nil || strings.Contains(message.Header.Get("Subject"), code) {
		return ""
	}
	return code
}

// mailSession is one connection to a mail server.
type mailSession struct {
	server   *MailServer
	loggedIn bool
	email    Email
}

// Reset implements smtp.Session.
func (s *mailSession) Reset() { s.email = Email{} }

// Logout implements smtp.Session.
func (s *mailSession) Logout() error { return nil }

// AuthMechanisms implements smtp.AuthSession.
func (s *mailSession) AuthMechanisms() []string { return []string{sasl.Plain} }

// Auth implements smtp.AuthSession.
func (s *mailSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if login := s.server.login; login == nil || user != login.User || password != login.Password {
			return smtp.ErrAuthFailed
		}
		s.loggedIn = true
		return nil
	}), nil
}

// Mail implements smtp.Session.
func (s *mailSession) Mail(from string, _ *smtp.MailOptions) error {
	if s.server.login != nil && !s.loggedIn {
		return smtp.ErrAuthRequired
	}
	s.email = Email{From: from}
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
	m.arrived++
	close(m.more)
	m.more = make(chan struct{})
	return nil
}
