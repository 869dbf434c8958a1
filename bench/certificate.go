//go:build linux

package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
)

// certificate is a certificate for the loopback address.
type certificate struct {
	file, key string      // paths of the PEM files with the certificate and its key
	client    *tls.Config // configuration of a client that trusts the certificate
}

// newCertificate writes the certificate of package httptest and its key into the directory dir.
func newCertificate(dir string) (*certificate, error) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		return nil, err
	}
	c := &certificate{file: filepath.Join(dir, "tls.pem"), key: filepath.Join(dir, "tls.key")}
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	c.client = &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS13}
	return c, errors.Join(
		os.WriteFile(c.file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600),
		os.WriteFile(c.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
}
