package mail

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/emersion/go-sasl"
	gosmtp "github.com/emersion/go-smtp"
	"go.uber.org/goleak"

	"github.com/tasard/tasard/engine/account"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	serverName   = "mail.example.do"
	testUser     = "tasard"
	testPassword = "c4n4ry-Pa55word/+of the server"
)

// clock returns the time of the synctest bubble. Outside of one only its monotonic progress matters.
func clock() time.Time {
	return time.Now() //nolint:forbidigo // the one door of the tests to the clock
}

// settleAfter advances the time of a bubble until every goroutine is blocked again.
func settleAfter(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

func email(t testing.TB, text string) account.Email {
	t.Helper()
	address, err := account.ParseEmail(text)
	if err != nil {
		t.Fatalf("parse %q: %v", text, err)
	}
	return address
}

// mailTo returns an email whose code expires in ten minutes.
func mailTo(t testing.TB, to, code string) account.LoginMail {
	t.Helper()
	return account.LoginMail{To: email(t, to), Code: account.SecretOf(code), Expires: clock().Add(10 * time.Minute)}
}

// receivedMail is a message that the server accepted.
type receivedMail struct {
	from string
	to   []string
	text []byte
}

// smtpServer is a real SMTP server that keeps what it receives. Hooks that are set before serve decide its answers.
type smtpServer struct {
	onMail     func() error
	onRcpt     func(to string) error
	onData     func(text []byte, conn net.Conn) error
	onLogin    func(user, password string) error
	mechanisms []string
	tls        *tls.Config // offered by STARTTLS
	arrived    chan receivedMail

	mu       sync.Mutex
	received []receivedMail
	sessions int
}

func (c *smtpServer) receivedMails() []receivedMail {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]receivedMail(nil), c.received...)
}

// serve accepts connections until the test ends.
func (c *smtpServer) serve(t testing.TB, listener net.Listener) {
	server := gosmtp.NewServer(gosmtp.BackendFunc(func(conn *gosmtp.Conn) (gosmtp.Session, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sessions++
		return &smtpSession{smtpServer: c, conn: conn}, nil
	}))
	server.Domain, server.TLSConfig, server.ErrorLog = serverName, c.tls, discardLogger{}
	server.AllowInsecureAuth = true
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
}

type discardLogger struct{}

func (discardLogger) Printf(string, ...any) {}
func (discardLogger) Println(...any)        {}

// smtpSession is one connection to the server.
type smtpSession struct {
	*smtpServer
	conn *gosmtp.Conn
	got  receivedMail
}

func (d *smtpSession) Reset()        { d.got = receivedMail{} }
func (d *smtpSession) Logout() error { return nil }

func (d *smtpSession) Mail(from string, _ *gosmtp.MailOptions) error {
	d.got = receivedMail{from: from}
	if d.onMail != nil {
		return d.onMail()
	}
	return nil
}

func (d *smtpSession) Rcpt(to string, _ *gosmtp.RcptOptions) error {
	if d.onRcpt != nil {
		if err := d.onRcpt(to); err != nil {
			return err
		}
	}
	d.got.to = append(d.got.to, to)
	return nil
}

func (d *smtpSession) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if d.onData != nil {
		if err := d.onData(text, d.conn.Conn()); err != nil {
			return err
		}
	}
	d.got.text = text
	d.mu.Lock()
	d.received = append(d.received, d.got)
	d.mu.Unlock()
	if d.arrived != nil {
		d.arrived <- d.got
	}
	return nil
}

func (d *smtpSession) AuthMechanisms() []string { return d.mechanisms }

func (d *smtpSession) Auth(mechanism string) (sasl.Server, error) {
	if mechanism == sasl.Login {
		return &loginServer{check: d.onLogin}, nil
	}
	return sasl.NewPlainServer(func(_, user, password string) error { return d.onLogin(user, password) }), nil
}

// loginServer is the server's side of the LOGIN mechanism, which the library lacks.
type loginServer struct {
	check func(user, password string) error
	said  []string
}

func (l *loginServer) Next(response []byte) ([]byte, bool, error) {
	if response != nil {
		l.said = append(l.said, string(response))
	}
	switch len(l.said) {
	case 0:
		return []byte("Username:"), false, nil
	case 1:
		return []byte("Password:"), false, nil
	}
	return nil, true, l.check(l.said[0], l.said[1])
}

// refusal is an error answer of the server.
func refusal(code int, text string) error {
	return &gosmtp.SMTPError{Code: code, EnhancedCode: gosmtp.EnhancedCode{code / 100, 7, 1}, Message: text}
}

// seeded returns a reproducible source of bytes.
func seeded(seed uint64) io.Reader {
	var key [32]byte
	key[0] = byte(seed)
	return rand.NewChaCha8(key)
}

// testMailer is a mailer connected to an smtpServer by pipes. Use it in a bubble.
type testMailer struct {
	*Mailer
	server *smtpServer
	pipes  *pipes
	logs   *bytes.Buffer
}

// newTestMailer opens a mailer without TLS; adjust changes its settings.
func newTestMailer(t *testing.T, server interface {
	serve(t testing.TB, listener net.Listener)
}, adjust func(*Config)) *testMailer {
	t.Helper()
	b := &testMailer{pipes: newPipes(), logs: &bytes.Buffer{}}
	b.server, _ = server.(*smtpServer)
	server.serve(t, b.pipes)
	b.Mailer = openMailer(t, b.pipes.dial, b.logs, adjust)
	return b
}

func openMailer(t *testing.T, dial func(context.Context, string, string) (net.Conn, error), logs io.Writer, adjust func(*Config)) *Mailer {
	t.Helper()
	config := Config{
		Addr: serverName + ":587", TLS: Off, From: email(t, "no-reply@tasard.example"), Clock: clock, Random: seeded(1), dial: dial,
		Logger: slog.New(slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if adjust != nil {
		adjust(&config)
	}
	m := Open(config)
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m
}

// mustSend sends emails with the test's code, and fails the test if one is not accepted.
func (m *Mailer) mustSend(t *testing.T, to ...string) {
	t.Helper()
	for _, to := range to {
		if err := m.Send(mailTo(t, to, testCode)); err != nil {
			t.Fatalf("send: %v", err)
		}
	}
}

// addresses returns different addresses.
func addresses(count int) (all []string) {
	for i := range count {
		all = append(all, fmt.Sprintf("ana%d@example.do", i))
	}
	return all
}

func year(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }

// newCertificate returns the configuration of a server with a self-signed certificate.
func newCertificate(t testing.TB, name string, until time.Time) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), seeded(2))
	if err != nil {
		t.Fatal(err)
	}
	made := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: year(1990), NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(seeded(3), made, made, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if made, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key, Leaf: made}}}
}

// goodCertificate is valid for the host of the mail server.
func goodCertificate(t testing.TB) *tls.Config { return newCertificate(t, serverName, year(2200)) }

// roots returns a pool that trusts the certificates of servers.
func roots(trusted ...*tls.Config) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, c := range trusted {
		pool.AddCert(c.Certificates[0].Leaf)
	}
	return pool
}
