package node

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/node/core"
)

// Config configures a node. Only Dir is required. By default a node listens on a free port of this machine, does not
// collect, sends no e-mail, and enforces the quotas of the API specification.
type Config struct {
	Dir         string // data directory, created if there is none
	Catalogue   string // file that extends the built-in catalogue, "" = none
	Definitions string // directory that extends the built-in definitions of sources, "" = none
	// Reference replaces Catalogue and Definitions; nil = read those.
	Reference *ReferenceData

	HTTP     HTTP
	Accounts Accounts
	Mail     Mail
	Collect  Collect
	Cluster  Cluster
	Admin    Admin

	Logger      *slog.Logger         // nil = discard
	Clock       func() time.Time     // nil = the system's
	Monotonic   func() time.Duration // as in actors.Config; nil = the system's
	Random      io.Reader            // for secrets, safe for concurrent use; nil = the system's
	Version     string               // of the program, for User-Agent, backups and metrics
	Credentials string               // directory of files that the service manager guards; "" = none
}

// HTTP configures the HTTP server.
type HTTP struct {
	Listen   string       // address; "" = a free port of 127.0.0.1
	Listener net.Listener // instead of Listen; the node closes it

	TLS                TLS
	AllowUnknown       bool   // accept unknown query parameters
	AllowAuthorization bool   // let browsers send the Authorization header
	FeeNotice          string // the sentence about fees in conversions; "" = engine.FeeNotice
	PublicURL          string // public address of the pages; "" = unknown
	AccountURL         string // page that the announcement of required keys links to; "" = the node's own /docs
	Contact            string // e-mail address or URL of the operator, for the pages; "" = none
	TrustedProxies     []netip.Prefix
	Conns              int           // maximum of open connections; 0 = ConnsDefault
	ConnsPerAddress    int           // maximum for one client; 0 = no limit
	DrainDelay         time.Duration // time for which Close keeps answering, so that load balancers see the node leave
	Demo               bool          // pages say that every rate is made up

	AccessLog  io.Writer // a line of JSON for each answer; nil = none
	AccessFrom int       // lowest status to log; 0 = all
}

// TLS names the files of a certificate; both empty = plain HTTP. Reload reads them again.
type TLS struct {
	Certificate string // PEM chain, the node's own certificate first
	Key         string // only its owner and group may read it
}

// Accounts configures quotas and keys.
type Accounts struct {
	Unlimited bool                // enforce no quota
	Quota     account.QuotaPolicy // quotas and lease; zero = those of the API specification
	KeyPrefix string              // "" = account.KeyPrefixLive
}

// Collect configures collecting.
type Collect struct {
	On       bool
	Deferred bool          // Node.Collect starts it, not Open
	Contact  string        // for operators of sites; "" = only the project's page
	Spread   time.Duration // time after each slot over which requests are spread; 0 = none

	Schedule collectors.Schedule // nil = 08:00, 12:00 and 17:00 in Santo Domingo
	Pause    time.Duration       // between two requests to one host, as in fetch.Config
	// Dial and Roots connect to sources; nil = the network and the system's certificate authorities.
	Dial  func(ctx context.Context, network, address string) (net.Conn, error)
	Roots *x509.CertPool
}

// Admin configures the management listeners.
type Admin struct {
	Off     bool
	Socket  string // "" = admin.SocketName in the data directory
	Metrics string // listen address for Prometheus; "" = none
}

// ConnsDefault is the default of HTTP.Conns.
const ConnsDefault = 16384

// withDefaults returns the configuration with its defaults.
func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.HTTP.Listen == "" {
		c.HTTP.Listen = "127.0.0.1:0"
	}
	if c.HTTP.FeeNotice == "" {
		c.HTTP.FeeNotice = engine.FeeNotice
	}
	if c.Accounts.KeyPrefix == "" {
		c.Accounts.KeyPrefix = account.KeyPrefixLive
	}
	if c.Accounts.Quota == (account.QuotaPolicy{}) {
		c.Accounts.Quota = account.QuotaPolicy{DefaultQuota: account.DefaultQuota(), LeaseSize: account.LeaseSizeDefault}
	}
	if c.Admin.Socket == "" {
		c.Admin.Socket = filepath.Join(c.Dir, admin.SocketName)
	}
	return c
}

// seed returns an unpredictable number.
func (c *Config) seed() uint64 {
	var bytes [8]byte
	_, _ = io.ReadFull(c.Random, bytes[:]) // the system's source does not fail
	return binary.LittleEndian.Uint64(bytes[:])
}

// Check returns all errors of Open that do not depend on the data directory.
func (c Config) Check() error {
	c = c.withDefaults()
	problems := []error{c.Cluster.check(&c), c.Mail.check()}
	if c.Reference == nil {
		_, err := LoadReferenceData(c.Catalogue, c.Definitions)
		problems = append(problems, err)
	}
	_, err := loadCertificate(c.HTTP.TLS, c.Credentials)
	problems = append(problems, err, checkListen(c.HTTP.Listen))
	if c.Mail.check() == nil {
		_, err := c.Mail.client(&c)
		problems = append(problems, err)
	}
	if err := admin.CheckSocket(c.Admin.Socket); err != nil && !c.Admin.Off {
		problems = append(problems, &Error{BadFile, "Admin.Socket", err})
	}
	return errors.Join(problems...)
}

// core returns the configuration of package core.
func (c *Config) core(reference ReferenceData, mailer actors.Mailer) core.Config {
	h := &c.HTTP
	return core.Config{
		Actors: actors.Config{
			Dir: c.Dir, Catalogue: reference.Catalogue, Rules: engine.DefaultRules(), Clock: c.Clock, Steady: c.Monotonic, Random: c.Random, Logger: c.Logger,
			QuotaPolicy: c.Accounts.Quota, LimitsOff: c.Accounts.Unlimited, KeyPrefix: c.Accounts.KeyPrefix, Mailer: mailer,
		},
		HTTP: httpapi.Config{
			AllowUnknownParameters: h.AllowUnknown, AllowAuthorizationHeader: h.AllowAuthorization, FeeNotice: h.FeeNotice, TrustedProxies: h.TrustedProxies,
			AccessStatusMin: h.AccessFrom,
		},
		Seed: c.seed, Version: c.Version, Mail: c.Mail.method(), PublicURL: h.PublicURL, AccountURL: h.AccountURL, Contact: h.Contact, Demo: h.Demo, AccessLog: h.AccessLog,
	}
}

// Core returns the configuration of package core, for use without a listener.
func (c Config) Core(reference ReferenceData) core.Config {
	c = c.withDefaults()
	return c.core(reference, nil)
}
