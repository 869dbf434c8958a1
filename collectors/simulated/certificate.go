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
	otherHost  = "sitio-de-otro.example" // host of another site, for the faults WrongName and Redirect
	validFrom  = 2000                    // year; tests use only times between validFrom and validUntil
	validUntil = 2199                    // year
	expiredIn  = 2001                    // year, for the fault Expired
)

// certificateSet has the certificates of a Site, good ones and faulty ones for tests.
type certificateSet struct {
	roots  *x509.CertPool             // the authority that clients must trust
	good   *tls.Certificate           // for all hosts
	faulty map[Fault]*tls.Certificate // for the faults of the TLS handshake
}

func (s *certificateSet) generate(hosts []string) error {
	var firstErr error
	issue := func(issuer *tls.Certificate, until int, hosts ...string) *tls.Certificate {
		certificate, err := newCertificate(issuer, until, hosts)
		if firstErr == nil {
			firstErr = err
		}
		return certificate
	}
	authority, otherAuthority := issue(nil, validUntil), issue(nil, validUntil)
	if firstErr != nil {
		return firstErr
	}
	s.roots = x509.NewCertPool()
	s.roots.AddCert(authority.Leaf)
	s.good = issue(authority, validUntil, hosts...)
	s.faulty = map[Fault]*tls.Certificate{
		WrongName:     issue(authority, validUntil, otherHost),
		Expired:       issue(authority, expiredIn, hosts...),
		UnknownSigner: issue(otherAuthority, validUntil, hosts...),
	}
	return firstErr
}

// newCertificate makes a certificate for hosts, signed by issuer. If issuer is nil, it makes a certificate authority.
func newCertificate(issuer *tls.Certificate, until int, hosts []string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	certificate := &tls.Certificate{PrivateKey: key}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "tasard demo"}, DNSNames: hosts,
		NotBefore: startOfYear(validFrom), NotAfter: startOfYear(until), KeyUsage: x509.KeyUsageDigitalSignature,
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
	certificate.Certificate = append([][]byte{der}, issuer.Certificate...)
	certificate.Leaf, err = x509.ParseCertificate(der)
	return certificate, err
}

func startOfYear(year int) time.Time { return time.Date(year, time.January, 1, 0, 0, 0, 0, time.UTC) }

// certificate returns the certificate for a handshake. If a fault of the handshake has been set for the host
// (SetFault), the certificate is faulty.
func (s *Site) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if active := s.faults.find(Fault.affectsHandshake, hello.ServerName); active.fault != "" {
		return s.certificates.faulty[active.fault], nil
	}
	return s.certificates.good, nil
}
