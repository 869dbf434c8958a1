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
	otherHost  = "sitio-de-otro.example" // the host of the certificate of WrongName, and the target of Redirect
	validFrom  = 2000                    // years: the clock of any test is between them
	validUntil = 2199
	expiredIn  = 2001
)

// certificateSet is the certificate authority of a Site, with the certificates that it signed.
type certificateSet struct {
	roots  *x509.CertPool
	good   *tls.Certificate
	faulty map[Fault]*tls.Certificate
}

// generate makes a certificate authority and its certificates.
func (s *certificateSet) generate(hosts []string) error {
	var failed error
	issue := func(issuer *tls.Certificate, until int, hosts ...string) *tls.Certificate {
		certificate, err := newCertificate(issuer, until, hosts)
		if failed == nil {
			failed = err
		}
		return certificate
	}
	authority, otherAuthority := issue(nil, validUntil), issue(nil, validUntil)
	if failed != nil {
		return failed
	}
	s.roots = x509.NewCertPool()
	s.roots.AddCert(authority.Leaf)
	s.good = issue(authority, validUntil, hosts...)
	s.faulty = map[Fault]*tls.Certificate{
		WrongName:     issue(authority, validUntil, otherHost),
		Expired:       issue(authority, expiredIn, hosts...),
		UnknownSigner: issue(otherAuthority, validUntil, hosts...),
	}
	return failed
}

// newCertificate makes a certificate for hosts, signed by issuer; without an issuer that of a certificate authority.
func newCertificate(issuer *tls.Certificate, until int, hosts []string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	made := &tls.Certificate{PrivateKey: key}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "tasard demo"}, DNSNames: hosts,
		NotBefore: firstOf(validFrom), NotAfter: firstOf(until), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if issuer == nil {
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
		template.ExtKeyUsage = nil
		issuer = &tls.Certificate{PrivateKey: key, Leaf: template}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer.Leaf, &key.PublicKey, issuer.PrivateKey)
	if err != nil {
		return nil, err
	}
	made.Certificate = append([][]byte{der}, issuer.Certificate...)
	made.Leaf, err = x509.ParseCertificate(der)
	return made, err
}

func firstOf(year int) time.Time { return time.Date(year, time.January, 1, 0, 0, 0, 0, time.UTC) }

// certificate returns the certificate for a handshake: the good one, or what the fault of the host demands.
func (s *Site) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if on := s.faults.find(Fault.ofHandshake, hello.ServerName); on.fault != "" {
		return s.certificates.faulty[on.fault], nil
	}
	return s.certificates.good, nil
}
