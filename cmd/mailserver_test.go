package cmd

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/tasard/tasard/cmd/cmdtest"
)

const (
	mailUser     = "tasard"
	mailPassword = "c4n4ry-Pa55word/+of the mail server"
	mailSender   = "no-reply@tasard.example"
)

// mailServer is a mail server with STARTTLS and login.
type mailServer struct {
	*cmdtest.MailServer
	t     *testing.T
	codes []string // every code that was sent
}

// newMailServer serves until the test ends.
func newMailServer(t *testing.T) *mailServer {
	t.Helper()
	certificate := trusted().newCertificate(t)
	login := &cmdtest.MailLogin{User: mailUser, Password: mailPassword, Certificate: certificate}
	return &mailServer{MailServer: cmdtest.NewMailServer(t, "127.0.0.1", login), t: t}
}

// args returns the settings of a node that uses this mail server.
func (m *mailServer) args() []string {
	return []string{
		"--smtp-addr", m.Addr, "--smtp-user", mailUser,
		"--smtp-password-file", writeFile(m.t, "password", mailPassword+"\n"), "--mail-from", mailSender,
	}
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
func (a authority) newCertificate(t *testing.T, change ...func(server *x509.Certificate)) tls.Certificate {
	t.Helper()
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore:   time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0),
	}
	for _, do := range change {
		do(server)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, server, a.template, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
