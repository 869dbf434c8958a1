package mail

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
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
	Addr     string         // host:port of the mail server
	TLS      TLS            // encryption of the connection; "" means StartTLS
	User     string         // for the SMTP login (PLAIN or LOGIN), which needs TLS; "" means no login
	Password account.Secret // of User
	From     account.Email  // address of the sender; its domain is also used for EHLO and Message-IDs
	// Clock returns the present time. With a monotonic reading, steps of the wall clock do not change delays.
	Clock func() time.Time
	// Random is the source of Message-IDs, usually crypto/rand.Reader. It need not be safe for concurrent use.
	Random io.Reader
	Logger *slog.Logger // nil means no log

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

func (c Config) withDefaults() Config {
	c.TLS, c.queueMax = cmp.Or(c.TLS, StartTLS), cmp.Or(c.queueMax, queueMaxDefault)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.dial == nil {
		c.dial = (&net.Dialer{}).DialContext
	}
	return c
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
