package cluster

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"slices"
	"strings"
	"time"
)

// TLS names PEM files. Authority is the certificate of the authority that signed the certificates of all nodes.
// Certificate and Key belong to this node. Certificate must be valid as client and as server, and for the host name
// that other nodes dial.
type TLS struct{ Authority, Certificate, Key string }

const secretBytesMin = 32

// checkSecurity requires either certificate files, or Insecure with a secret and only loopback addresses.
func (c *Config) checkSecurity() error {
	if n := len(c.Secret); n > 0 && n < secretBytesMin {
		return fmt.Errorf("the secret has %d characters: want %d or more, as openssl rand -base64 32 makes them", n, secretBytesMin)
	}
	switch t := c.TLS; {
	case t != (TLS{}) && c.Insecure:
		return errors.New("insecure, and TLS is given: choose one")
	case t != (TLS{}) && (t.Authority == "" || t.Certificate == "" || t.Key == ""):
		return errors.New("TLS is given in part: name the files of the authority, the certificate and the key")
	case t != (TLS{}):
		return nil
	case !c.Insecure:
		return errors.New("neither TLS nor insecure: name the files of the authority, the certificate and the key")
	}
	addresses := []string{c.Listen}
	for _, m := range c.Members {
		addresses = append(addresses, m.Address)
	}
	if i := slices.IndexFunc(addresses, func(a string) bool { return !isLoopback(a) }); i >= 0 {
		return fmt.Errorf("insecure, and %s is not a loopback address: name the files of the authority, the certificate and the key",
			addresses[i])
	}
	if c.Secret == "" {
		return errors.New("insecure, and no secret is given: name a file with one, the same on all nodes")
	}
	return nil
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// TLSConfig returns a configuration for connections in both directions: as client and as server. Certificates[0] is the
// certificate of this node. Without certificate files its key is derived from the secret.
func (c *Config) TLSConfig() (*tls.Config, error) {
	if c.TLS != (TLS{}) {
		return c.TLS.Load()
	}
	return c.secretTLS()
}

// Load reads the files, and returns a configuration for connections in both directions: as client and as server.
// Certificates[0] of the result is the certificate of this node. If t names no files, the result is nil.
func (t TLS) Load() (*tls.Config, error) {
	if t == (TLS{}) {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of this node: %w", err)
	}
	authority, err := os.ReadFile(t.Authority)
	if err != nil {
		return nil, fmt.Errorf("read the authority of the cluster: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("read the authority of the cluster: %s has no certificate", t.Authority)
	}
	return mutualTLS(pair, pool), nil
}

func mutualTLS(pair tls.Certificate, authority *x509.CertPool) *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, RootCAs: authority, ClientCAs: authority,
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	}
}

// secretTLS returns the configuration of a cluster without certificate files. All nodes derive the same private key
// from the secret, so only a program that knows the secret can be at either end of a connection. The secret itself is
// never sent: another program could listen on the port of a stopped node and read it.
func (c *Config) secretTLS() (*tls.Config, error) {
	seed, err := hkdf.Key(sha256.New, []byte(c.Secret), nil, "tasard cluster key", ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	private := ed25519.NewKeyFromSeed(seed)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tasard cluster"},
		NotBefore: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, host := range append(c.memberHosts(), hostOf(c.Listen)) {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return mutualTLS(tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private, Leaf: leaf}, pool), nil
}

func hostOf(address string) string {
	host, _, _ := net.SplitHostPort(address) // checkAddress has accepted it
	return host
}

func (c *Config) memberHosts() (hosts []string) {
	for _, m := range c.Members {
		hosts = append(hosts, hostOf(m.Address))
	}
	return hosts
}

// clusterPassword returns the password that nodes send to each other within TLS, or "" without a secret.
func (c *Config) clusterPassword() string {
	if c.Secret == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("tasard cluster password " + c.Secret))
	return hex.EncodeToString(sum[:])
}

// checkPeer returns an error if the node at the other end of a connection must be refused. TLS has already verified
// that the authority of the cluster has signed its certificate.
func (c *Config) checkPeer(state *tls.ConnectionState, want, password string) error {
	switch {
	case state == nil || len(state.PeerCertificates) == 0:
		return errors.New("no certificate")
	case subtle.ConstantTimeCompare([]byte(want), []byte(password)) != 1:
		return errors.New("its secret is not the secret of this node")
	case c.TLS == (TLS{}):
		return nil
	}
	return c.CheckCertificate(state.PeerCertificates[0])
}

// CheckCertificate returns an error if a certificate is for neither a member's host nor a guest's. Nodes refuse such
// certificates, because the authority may also have signed certificates for other purposes.
func (c *Config) CheckCertificate(leaf *x509.Certificate) error {
	if slices.ContainsFunc(append(c.memberHosts(), c.Guests...), func(host string) bool { return leaf.VerifyHostname(host) == nil }) {
		return nil
	}
	names := slices.Clone(leaf.DNSNames)
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	return fmt.Errorf("the certificate is for %s, which is neither the host of a member nor of a guest", strings.Join(names, ", "))
}
