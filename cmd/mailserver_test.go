package cmd

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
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

const (
	mailUser     = "tasard"
	mailPassword = "c4n4ry-Pa55word/+of the mail server"
	mailSender   = "no-reply@tasard.example"
)

// mailServer is a real SMTP server with STARTTLS and login that keeps received e-mails.
type mailServer struct {
	t        *testing.T
	addr     string
	ca       string // file with the certificate that signs its own
	received chan receivedMail

	mu    sync.Mutex
	codes []string // every code that was sent
}

// receivedMail is what arrived.
type receivedMail struct {
	from string
	to   []string
	text []byte
}

// newMailServer serves until the test ends.
func newMailServer(t *testing.T) *mailServer {
	t.Helper()
	certificate, authority := newCertificate(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &mailServer{t: t, addr: listener.Addr().String(), ca: writeFile(t, "ca.pem", authority), received: make(chan receivedMail, 64)}
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &mailSession{box: m}, nil }))
	server.Domain, server.TLSConfig = "127.0.0.1", &tls.Config{Certificates: []tls.Certificate{certificate}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
	return m
}

// args returns the settings of a node that uses this mail server.
func (m *mailServer) args() []string {
	return []string{
		"--smtp-addr", m.addr, "--smtp-ca-file", m.ca, "--smtp-user", mailUser,
		"--smtp-password-file", writeFile(m.t, "password", mailPassword+"\n"), "--mail-from", mailSender,
	}
}

// code waits for the next e-mail, which must have only this recipient, and returns the code in it.
func (m *mailServer) code(to string) string {
	m.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case got := <-m.received:
		if got.from != mailSender || len(got.to) != 1 || got.to[0] != to {
			m.t.Fatalf("a letter from %s to %q, want one to %s", got.from, got.to, to)
		}
		code := codeIn(m.t, got.text)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.codes = append(m.codes, code)
		return code
	case <-timer.C:
		m.t.Fatalf("no letter to %s has arrived", to)
	}
	return ""
}

// codeIn returns the code in the plain text of an e-mail; the subject must not contain it.
func codeIn(t *testing.T, text []byte) string {
	t.Helper()
	message, err := mail.ReadMessage(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	_, parameters, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	part, err := multipart.NewReader(message.Body, parameters["boundary"]).NextPart() // decodes quoted-printable
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(part)
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile(`\b\d{8}\b`).FindString(string(plain))
	if code == "" || strings.Contains(message.Header.Get("Subject"), code) {
		t.Fatalf("the code is %q in\n%s", code, text)
	}
	return code
}

// mailSession is one connection to the mailbox.
type mailSession struct {
	box    *mailServer
	logged bool
	got    receivedMail
}

func (d *mailSession) Reset()                   { d.got = receivedMail{} }
func (d *mailSession) Logout() error            { return nil }
func (d *mailSession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (d *mailSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != mailUser || password != mailPassword {
			return smtp.ErrAuthFailed
		}
		d.logged = true
		return nil
	}), nil
}

func (d *mailSession) Mail(from string, _ *smtp.MailOptions) error {
	if !d.logged {
		return smtp.ErrAuthRequired
	}
	d.got = receivedMail{from: from}
	return nil
}

func (d *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	d.got.to = append(d.got.to, to)
	return nil
}

func (d *mailSession) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	d.got.text = text
	d.box.received <- d.got
	return nil
}

// newCertificate is one for 127.0.0.1, good for both ends, and the PEM text of the one that signed it.
func newCertificate(t *testing.T, change ...func(server *x509.Certificate)) (tls.Certificate, string) {
	t.Helper()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0),
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore:   time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0),
	}
	for _, do := range change {
		do(server)
	}
	var keys [2]*ecdsa.PrivateKey
	for i := range keys {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		keys[i] = key
	}
	sign := func(template *x509.Certificate, key *ecdsa.PrivateKey) []byte {
		der, err := x509.CreateCertificate(rand.Reader, template, authority, &key.PublicKey, keys[0])
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	signer := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: sign(authority, keys[0])})
	return tls.Certificate{Certificate: [][]byte{sign(server, keys[1])}, PrivateKey: keys[1]}, string(signer)
}
