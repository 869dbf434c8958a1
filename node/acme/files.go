package acme

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	accountFile  = "account.key"
	typeKey      = "PRIVATE KEY"
	modeDir      = 0o700
	permissions  = 0o600
	suffixUnused = ".new"
)

// readOrCreateKey returns the key of the account.
func readOrCreateKey(dir string) (crypto.Signer, error) {
	path := filepath.Join(dir, accountFile)
	text, err := os.ReadFile(path) //nolint:gosec // G304: in the data directory
	if errors.Is(err, fs.ErrNotExist) {
		return createKey(dir, path)
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != typeKey {
		return nil, fmt.Errorf("%s: want a private key in PEM; delete the file to register a new account", path)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	signer, ok := key.(crypto.Signer)
	if err != nil || !ok {
		return nil, fmt.Errorf("%s: not a private key; delete the file to register a new account", path)
	}
	return signer, nil
}

func createKey(dir, path string) (crypto.Signer, error) {
	if err := os.MkdirAll(dir, modeDir); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	text, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	return key, replaceFile(path, text)
}

func encodeKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: typeKey, Bytes: der}), nil
}

func (m *Manager) certificatePath() string { return filepath.Join(m.dir, m.config.Name+".pem") }

// readCertificate reads the stored certificate. It returns nil if there is none.
func (m *Manager) readCertificate() (*tls.Certificate, error) {
	text, err := os.ReadFile(m.certificatePath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	pair, err := parseCertificate(text, m.config.Name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; delete the file to get a new certificate", m.certificatePath(), err)
	}
	return pair, nil
}

// encodeCertificate returns the contents of a file with a private key and its chain. They are in one file so that they
// always belong together.
func encodeCertificate(key crypto.Signer, chain [][]byte) ([]byte, error) {
	text, err := encodeKey(key)
	for _, der := range chain {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return text, err
}

func parseCertificate(text []byte, name string) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(text, text)
	if err == nil {
		err = pair.Leaf.VerifyHostname(name)
	}
	return &pair, err
}

// replaceFile writes a file that only its owner may read, so that after a crash it has either its old or its new
// contents.
func replaceFile(path string, text []byte) error {
	file, err := os.OpenFile(path+suffixUnused, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, permissions) //nolint:gosec // G304: in the data directory
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
