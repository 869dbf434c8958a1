package cmd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
)

// keyModeRefused are the permissions that a private key's file may not give: its group may read it, as web servers' groups do.
const keyModeRefused = 0o026

// tlsOptions say with which certificate the node answers; both empty = plain HTTP.
type tlsOptions struct {
	cert string // file, the node's own certificate first
	key  string // file
}

// addTLS declares the flags of tlsOptions.
func addTLS(cmd *cobra.Command, o *tlsOptions) {
	flags := cmd.Flags()
	flags.Var(pathValue(&o.cert, "FILE"), "tls-cert", "answer over HTTPS with the PEM certificates in `FILE`, the node's own first; SIGHUP reads it again")
	flags.Var(pathValue(&o.key, "FILE"), "tls-key", "a `FILE` with the private key of that certificate, which only its owner and group may read")
}

// certificate is what connections are opened with. It may be replaced at any time.
type certificate struct {
	options     tlsOptions
	credentials string // directory of the service manager
	pair        atomic.Pointer[tls.Certificate]
}

// openCertificate reads the pair; nil without one.
func openCertificate(o tlsOptions, credentials string) (*certificate, error) {
	switch {
	case o.cert == "" && o.key == "":
		return nil, nil
	case o.cert == "" || o.key == "":
		return nil, fail(exitUsage, "--tls-cert and --tls-key belong together; one is missing")
	}
	c := &certificate{options: o, credentials: credentials}
	pair, err := c.read()
	if err != nil {
		return nil, err
	}
	c.pair.Store(pair)
	return c, nil
}

// read reads the files as they are now.
func (c *certificate) read() (*tls.Certificate, error) {
	if err := checkKeyFile(c.options.key, c.credentials); err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(c.options.cert, c.options.key)
	var missing *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist) && errors.As(err, &missing):
		return nil, fail(exitBadData, "%s: there is no such file", missing.Path)
	case err != nil:
		return nil, fail(exitBadData, "%s with %s: %w", c.options.cert, c.options.key, err)
	}
	return &pair, nil
}

// checkKeyFile refuses a private key that anybody may read; files in the directory of credentials are guarded by the service manager.
func checkKeyFile(path, credentials string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail(exitBadData, "%s: there is no such file", path)
	case err != nil:
		return fail(exitBadData, "read private key: %w", err)
	}
	guarded := credentials != "" && filepath.Dir(path) == filepath.Clean(credentials)
	if mode := info.Mode().Perm(); mode&keyModeRefused != 0 && !guarded {
		return fail(exitBadData, "%s: others may read or change this private key (mode %04o); do: chmod 640 %s", path, mode, path)
	}
	return nil
}

// give is for httpapi.Config.Certificate.
func (c *certificate) give(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.pair.Load(), nil }

// certify is give, nil without a certificate.
func (c *certificate) certify() func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c == nil {
		return nil
	}
	return c.give
}

// scheme is how addresses of the node begin.
func (c *certificate) scheme() string {
	if c == nil {
		return "http://"
	}
	return "https://"
}

// untimely says what is wrong with the days of a certificate, "" for nothing.
func untimely(leaf *x509.Certificate, now time.Time) string {
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Sprintf("the certificate has expired on %s", instant(leaf.NotAfter))
	case now.Before(leaf.NotBefore):
		return fmt.Sprintf("the certificate is not valid before %s", instant(leaf.NotBefore))
	}
	return ""
}

// shown is the certificate for who asks when it ends.
func (c *certificate) shown() []shownCertificate {
	if c == nil {
		return nil
	}
	return []shownCertificate{{shownToClients, func() time.Time { return c.pair.Load().Leaf.NotAfter }}}
}

// warn tells of a certificate that clients will refuse.
func (c *certificate) warn(log *slog.Logger, now time.Time) {
	if c == nil {
		return
	}
	if problem := untimely(c.pair.Load().Leaf, now); problem != "" {
		log.Warn(problem+"; clients will refuse it", "file", c.options.cert)
	}
}
