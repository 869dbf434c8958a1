package simulated

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"time"
)

const (
	otherHost  = "sitio-de-otro.example" // for which the certificate of WrongName is, and where Redirect leads
	validFrom  = 2000                    // years: whatever the clock of a test says, it is between them
	validUntil = 2199
	expiredIn  = 2001
)

// certificateSet is the authority of a Site, with the certificates that it made.
type certificateSet struct {
	roots  *x509.CertPool
	good   *tls.Certificate
	faulty map[Fault]*tls.Certificate
}

// generate makes an authority and its certificates.
func (s *certificateSet) generate(hosts []string) error {
	authority, err := newAuthority()
	if err != nil {
		return err
	}
	stranger, err := newAuthority()
	if err != nil {
		return err
	}
	s.roots, s.faulty = x509.NewCertPool(), map[Fault]*tls.Certificate{}
	s.roots.AddCert(authority.certificate)
	if s.good, err = authority.sign(hosts, validUntil); err != nil {
		return err
	}
	if s.faulty[WrongName], err = authority.sign([]string{otherHost}, validUntil); err != nil {
		return err
	}
	if s.faulty[Expired], err = authority.sign(hosts, expiredIn); err != nil {
		return err
	}
	s.faulty[UnknownSigner], err = stranger.sign(hosts, validUntil)
	return err
}

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tasard demo"},
		NotBefore: firstOf(validFrom), NotAfter: firstOf(validUntil), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	return &authority{certificate, key}, err
}

func (a *authority) sign(hosts []string, until int) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: hosts[0]}, DNSNames: hosts,
		NotBefore: firstOf(validFrom), NotAfter: firstOf(until), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der, a.certificate.Raw}, PrivateKey: key}, nil
}

func firstOf(year int) time.Time { return time.Date(year, time.January, 1, 0, 0, 0, 0, time.UTC) }

// certificate is the one for a handshake: the good one, or what the host's fault wants.
func (s *Site) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if on := s.faults.take(Fault.ofHandshake, hello.ServerName); on.fault != "" {
		return s.certificates.faulty[on.fault], nil
	}
	return s.certificates.good, nil
}
