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

// Config says what a node is made of. Only Dir has no default: the zero value of everything else is a node on a free port of this machine
// that collects nothing, sends no letters, and holds callers to the quotas of the contract.
type Config struct {
	Dir         string // data directory, created if there is none
	Catalogue   string // file that extends the built-in catalogue, "" = none
	Definitions string // directory that extends the built-in definitions of sources, "" = none
	// ReferenceData replaces what Catalogue and Definitions say; nil = what they say.
	Reference *ReferenceData

	HTTP     HTTP
	Accounts Accounts
	Mail     Mail
	Collect  Collect
	Cluster  Cluster
	Admin    Admin

	Logger      *slog.Logger         // nil = nobody is told
	Clock       func() time.Time     // nil = the system's
	Monotonic   func() time.Duration // as in actors.Config; nil = the system's
	Random      io.Reader            // of secrets, safe for concurrent use; nil = the system's
	Version     string               // of the program, for User-Agent, backups and metrics
	Credentials string               // directory whose files the service manager guards; "" = none
}

// HTTP says how a node answers callers.
type HTTP struct {
	Listen   string       // address; "" = a free port of 127.0.0.1
	Listener net.Listener // instead of Listen; the node closes it

	TLS                TLS
	AllowUnknown       bool   // take query parameters that the contract does not know
	AllowAuthorization bool   // let browsers send the Authorization header
	FeeNotice          string // the sentence about fees in conversions; "" = engine.FeeNotice
	PublicURL          string // under which people reach the pages; "" = not known
	AccountURL         string // page that the announcement of required keys links to; "" = the node's own /docs
	Contact            string // e-mail address or URL of the operator, for the pages; "" = they name none
	TrustedProxies     []netip.Prefix
	Conns              int           // at once; 0 = ConnsDefault
	ConnsPerAddress    int           // of them for one client; 0 = any number
	DrainDelay         time.Duration // how long Close answers on, so that balancers see the node leave
	Demo               bool          // pages say that every rate is made up

	AccessLog  io.Writer // a line of JSON for each answer; nil = none
	AccessFrom int       // status from which on answers are logged; 0 = all
}

// TLS names the files of a certificate; both empty = plain HTTP. Reload reads them again.
type TLS struct {
	Certificate string // PEM, the node's own first
	Key         string // only its owner and group may read it
}

// Accounts says how callers are counted.
type Accounts struct {
	Unlimited bool                // nobody is held to a quota
	Quota     account.QuotaPolicy // quotas and lease; zero = those of the contract
	KeyPrefix string              // "" = account.KeyPrefixLive
}

// Collect says how a node collects.
type Collect struct {
	On       bool
	Deferred bool          // it begins with Node.Collect, not by itself
	Contact  string        // whom a site can write to; "" = the project's page alone
	Spread   time.Duration // over how long after each slot sources are asked; 0 = at once

	Schedule collectors.Schedule // nil = 08:00, 12:00 and 17:00 in Santo Domingo
	CatchUp  time.Duration       // as in collectors.Config
	Pause    time.Duration       // between two requests to one host, as in fetch.Config
	// Where institutions are found; nil = the network, and the authorities of the system.
	Dial  func(ctx context.Context, network, address string) (net.Conn, error)
	Roots *x509.CertPool
}

// Admin says where the operator reaches a node.
type Admin struct {
	Off     bool
	Socket  string // "" = admin.SocketName in the data directory
	Metrics string // address of the listener for Prometheus; "" = none
}

// Defaults of Config.
const (
	ConnsDefault = 16384
)

// withDefaults is the configuration with its defaults.
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

// seed is a number that nobody can foresee.
func (c *Config) seed() uint64 {
	var bytes [8]byte
	_, _ = io.ReadFull(c.Random, bytes[:]) // the system's source does not fail
	return binary.LittleEndian.Uint64(bytes[:])
}

// Check tells everything that would keep a node from opening, as far as that can be told without touching the data directory.
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

// core is what answers for such a node.
func (c *Config) core(reference ReferenceData, letters actors.Mailer) core.Config {
	h := &c.HTTP
	return core.Config{
		Actors: actors.Config{
			Dir: c.Dir, Catalogue: reference.Catalogue, Rules: engine.DefaultRules(), Clock: c.Clock, Steady: c.Monotonic, Random: c.Random, Logger: c.Logger,
			Terms: c.Accounts.Quota, LimitsOff: c.Accounts.Unlimited, KeyPrefix: c.Accounts.KeyPrefix, Mailer: letters,
		},
		HTTP: httpapi.Config{
			AllowUnknownParameters: h.AllowUnknown, AllowAuthorizationHeader: h.AllowAuthorization, FeeNotice: h.FeeNotice, TrustedProxies: h.TrustedProxies,
			AccessStatusMin: h.AccessFrom,
		},
		Seed: c.seed, Version: c.Version, Mail: c.Mail.method(), PublicURL: h.PublicURL, AccountURL: h.AccountURL, Contact: h.Contact, Demo: h.Demo, AccessLog: h.AccessLog,
	}
}

// Core is what the node that c describes answers, for whoever shows it without a listener. reference is what is known.
func (c Config) Core(reference ReferenceData) core.Config {
	c = c.withDefaults()
	return c.core(reference, nil)
}
