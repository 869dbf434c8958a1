package cluster

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"
)

const (
	secretBytesMin = 32
	// serverName is the name in the certificates of all nodes. Which node has answered is in its hello.
	serverName = "tasard"
)

func (c *Config) checkSecret() error {
	if n := len(c.Secret); n < secretBytesMin {
		return fmt.Errorf("the secret has %d characters: want %d or more, as openssl rand -base64 32 makes them", n, secretBytesMin)
	}
	return nil
}

// tlsConfig returns the configuration of connections in both directions: as client and as server. All nodes derive the
// same private key from the secret, so only a program that knows the secret can be at either end of a connection. The
// secret itself is never sent: another program could listen on the port of a stopped node and read it.
func (c *Config) tlsConfig() (*tls.Config, error) {
	seed, err := hkdf.Key(sha256.New, []byte(c.Secret), nil, "tasard cluster key", ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	private := ed25519.NewKeyFromSeed(seed)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tasard cluster"}, DNSNames: []string{serverName},
		NotBefore: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
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
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private, Leaf: leaf}}, RootCAs: pool, ClientCAs: pool,
		ServerName: serverName, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	}, nil
}
