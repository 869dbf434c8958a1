package mail

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tasard/tasard/engine/account"
)

// TLS is the kind of encryption of the connection to the mail server.
type TLS string

// Values of TLS. With StartTLS and Implicit the server's certificate must be valid for the host of Config.Addr.
const (
	StartTLS TLS = "starttls" // send the STARTTLS command before any email or password
	Implicit TLS = "tls"      // use TLS from the first byte
	Off      TLS = "off"      // danger: login codes are sent unencrypted; only for a server on the same machine
)

// Config configures a Mailer. Addr, From, Clock and Random are required.
type Config struct {
	// Addr is the address of the mail server, host:port.
	Addr string
	// TLS is the encryption of the connection. Empty = StartTLS.
	TLS TLS
	// User and Password are for the SMTP login (PLAIN or LOGIN). Set both or neither. If they are set, TLS must not be
	// Off.
	User     string
	Password account.Secret
	// From is the sender's address. Its domain is also used for EHLO and Message-IDs.
	From account.Email
	// CAFile is a PEM file with certificates of trusted authorities. Empty = the system's authorities.
	CAFile string
	// Clock returns the present time. With a monotonic reading, steps of the wall clock do not change delays.
	Clock func() time.Time
	// Random is the source of Message-IDs, usually crypto/rand.Reader. It need not be safe for concurrent use.
	Random io.Reader
	// Logger logs. nil = no log.
	Logger *slog.Logger

	// The following fields are for tests. Zero means the default.
	rootCAs  *x509.CertPool
	queueMax int // maximum number of emails in the queue
	dial     func(ctx context.Context, network, addr string) (net.Conn, error)
}

const (
	queueMaxDefault = 1000
	backoffFirst    = 5 * time.Second // delay after an email's first failed attempt; it doubles each time
	backoffMax      = 2 * time.Minute
	attemptTimeout  = 30 * time.Second // for the whole SMTP dialog of one email
	drainTimeout    = 5 * time.Second  // maximum time for Close to send the queued emails
)

// Validate returns the error of Open for this configuration.
func (c Config) Validate() error {
	_, err := c.complete()
	return err
}

func (c Config) complete() (Config, error) {
	c.TLS = cmp.Or(c.TLS, StartTLS)
	if err := c.check(); err != nil {
		return c, err
	}
	c.queueMax = cmp.Or(c.queueMax, queueMaxDefault)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.dial == nil {
		c.dial = (&net.Dialer{}).DialContext
	}
	if c.CAFile != "" {
		roots, err := readRoots(c.CAFile)
		if err != nil {
			return c, err
		}
		c.rootCAs = roots
	}
	return c, nil
}

func (c Config) check() error {
	switch {
	case c.From.IsZero():
		return errors.New("check mail settings: From is empty, want the address of the sender")
	case c.TLS == Off && c.Password != account.Secret{}:
		return errors.New("check mail settings: TLS is off, so the password would be sent unencrypted; use starttls or tls")
	}
	return checkAddr(c.Addr)
}

func checkAddr(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	number, portErr := strconv.ParseUint(port, 10, 16)
	if err != nil || portErr != nil || number == 0 || host == "" || strings.ContainsFunc(host, notInHost) {
		return fmt.Errorf("check mail settings: Addr is %q, want host:port with a port from 1 to 65535", addr)
	}
	return nil
}

func notInHost(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`"/<>@\`, c) }

func readRoots(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the certificates: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read the certificates: %s has no PEM certificate", file)
	}
	return roots, nil
}

func (c Config) host() string {
	host, _, _ := net.SplitHostPort(c.Addr)
	return host
}

func (c Config) domain() string {
	from := c.From.String()
	return from[strings.LastIndexByte(from, '@')+1:]
}

func (c Config) tls() *tls.Config {
	return &tls.Config{ServerName: c.host(), RootCAs: c.rootCAs, MinVersion: tls.VersionTLS12}
}
