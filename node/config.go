package node

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/actors/mail"
	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/node/core"
)

// Config configures a node. Only Dir is required. By default a node listens on a free port of this machine, fetches no
// rates, sends no e-mail, and enforces the quotas of the API specification.
type Config struct {
	Dir         string // data directory; Open creates it if it does not exist
	Catalogue   string // file that extends the built-in list of institutions, currencies and sources; "" means none
	Definitions string // directory that adds to the built-in source definitions (how to read rates); "" means none
	// If Reference is not nil, it is used instead of Catalogue and Definitions.
	Reference *ReferenceData

	HTTP     HTTP
	Accounts Accounts
	Mail     Mail
	Collect  Collect
	Cluster  Cluster
	Admin    Admin

	Logger *slog.Logger // nil means no log
	// DroppedLogLines returns the number of dropped lines of the log, for the metrics; nil means unknown.
	DroppedLogLines func() uint64
	Clock           func() time.Time     // nil means time.Now
	Monotonic       func() time.Duration // a clock that never goes back; nil means that of the operating system
	Random          io.Reader            // for secrets; safe for concurrent use; nil means crypto/rand.Reader
	Version         string               // of the program, for User-Agent, backups and metrics
	Credentials     string               // directory of systemd credentials: secret files that only the service can read; "" means none
}

// HTTP configures the HTTP server.
type HTTP struct {
	Listen string // address; "" means a free port of 127.0.0.1

	// Listener, if not nil, is used instead of Listen; the node closes it. Its first connections wait for up to two
	// seconds while the node reads its log.
	Listener net.Listener

	TLS                TLS
	ACME               ACME
	AllowUnknown       bool   // accept unknown query parameters
	AllowAuthorization bool   // let browsers send the Authorization header
	FeeNotice          string // sentence about fees, in responses that convert an amount; "" means engine.FeeNotice
	PublicURL          string // public address of the pages; "" means unknown
	Contact            string // e-mail address or URL of the operator, for the pages; "" means none
	TrustedProxies     []netip.Prefix
	Conns              int           // maximum of open connections; 0 means ConnsDefault
	ConnsPerAddress    int           // maximum of open connections of one client; 0 means no limit
	DrainDelay         time.Duration // how long Close keeps answering, so that load balancers notice the stop
	Demo               bool          // pages say that the rates are simulated

	AccessLog io.Writer // gets a line of JSON for each response; may be nil
}

// TLS names the files of a certificate. If both names are "", the node speaks plain HTTP. Reload reads the files again.
type TLS struct {
	Certificate string // PEM chain, the node's own certificate first
	Key         string // private key; rejected if users outside of the file's owner and group can read it
}

// ACME configures a certificate that the node obtains and renews by itself, from an ACME authority. The data directory
// contains the certificate.
type ACME struct {
	Name             string       // DNS name of the certificate; "" means no certificate from ACME
	Authority        string       // URL of the authority's directory; "" means Let's Encrypt
	Redirect         string       // address for the authority's checks and redirects to HTTPS; "" means ":80"
	RedirectListener net.Listener // if not nil, it is used instead of Redirect; the node closes it
}

// Accounts configures the quotas of accounts and their API keys.
type Accounts struct {
	Unlimited bool                // no quota is enforced
	Quota     account.QuotaPolicy // zero means the quotas of the API specification
	KeyPrefix string              // beginning of new API keys; "" means account.KeyPrefixLive
}

// Collect configures how the node fetches rates from the institutions' sites.
type Collect struct {
	On       bool   // the node fetches rates
	Deferred bool   // fetching begins when the caller calls Node.Collect
	Contact  string // contact in the header User-Agent, for the operators of the sites; may be ""
	Secrets  string // directory with a file for each secret named by a definition; "" means none

	Archive  string              // directory for fetched documents; "" means none
	Schedule collectors.Schedule // 0 means some minutes after 08:00, 12:00 and 17:00 in Santo Domingo
	Pause    time.Duration       // minimum time between two requests to one host; 0 means the default of package fetch

	Dial  func(ctx context.Context, network, address string) (net.Conn, error) // connects to the sites; nil means net.Dialer
	Roots *x509.CertPool                                                       // trusted authorities; nil means those of the operating system
}

// Admin configures the operator's listeners: the socket of the management API, and the address for metrics.
type Admin struct {
	Off     bool
	Socket  string // "" means admin.SocketName in the data directory
	Metrics string // listen address for Prometheus; "" means none
}

// ConnsDefault is the default of HTTP.Conns.
const ConnsDefault = 16384

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
	if acme := &c.HTTP.ACME; acme.Name != "" {
		c.HTTP.Listen, c.HTTP.PublicURL = cmp.Or(c.HTTP.Listen, ":443"), cmp.Or(c.HTTP.PublicURL, "https://"+acme.Name)
		acme.Redirect = cmp.Or(acme.Redirect, ":80")
	}
	c.HTTP.Listen, c.HTTP.Conns = cmp.Or(c.HTTP.Listen, "127.0.0.1:0"), cmp.Or(c.HTTP.Conns, ConnsDefault)
	quota := &c.Accounts.Quota.DefaultQuota
	quota.Day, quota.Minute = cmp.Or(quota.Day, account.DayLimitDefault), cmp.Or(quota.Minute, account.MinuteLimitDefault)
	if c.Admin.Socket == "" {
		c.Admin.Socket = filepath.Join(c.Dir, admin.SocketName)
	}
	return c
}

// seed returns a random number, read from Config.Random.
func (c *Config) seed() uint64 {
	var bytes [8]byte
	_, _ = io.ReadFull(c.Random, bytes[:]) // crypto/rand.Reader does not fail
	return binary.LittleEndian.Uint64(bytes[:])
}

// Check returns all errors of Open, except those that depend on the data directory.
func (c Config) Check() error {
	c = c.withDefaults()
	_, err := c.readFiles()
	problems := []error{err, checkListen(c.HTTP.Listen, "HTTP.Listen")}
	if c.HTTP.ACME.Name != "" {
		problems = append(problems, checkListen(c.HTTP.ACME.Redirect, "HTTP.ACME.Redirect"))
	}
	if c.Admin.Metrics != "" {
		problems = append(problems, checkListen(c.Admin.Metrics, "Admin.Metrics"))
	}
	return errors.Join(append(problems, c.checkSocket())...)
}

// files holds the contents of the configured files.
type files struct {
	reference     ReferenceData
	sourceSecrets SourceSecrets
	mailConfig    mail.Config
	certificate   *certificate // nil for plain HTTP
}

// readFiles reads the configured files, and checks the process's limits. It joins all errors.
func (c *Config) readFiles() (f files, err error) {
	problems := []error{c.HTTP.checkDescriptors(), c.Cluster.check(c)}
	f.mailConfig, err = c.Mail.client(c)
	problems = append(problems, err)
	if f.reference, err = c.reference(); err == nil {
		f.sourceSecrets, err = c.ReadSourceSecrets(f.reference.Sources)
	}
	problems = append(problems, err)
	f.certificate, err = c.loadCertificate()
	return f, errors.Join(append(problems, err)...)
}

// checkSocket returns an error if the management socket's path is unusable.
func (c *Config) checkSocket() error {
	if c.Admin.Off {
		return nil
	}
	if err := admin.CheckSocket(c.Admin.Socket); err != nil {
		return &Error{BadFile, "Admin.Socket", err}
	}
	directory := filepath.Dir(c.Admin.Socket)
	if info, err := os.Stat(directory); directory != filepath.Clean(c.Dir) && (err != nil || !info.IsDir()) { // Open creates Dir
		return errorf(Unwritable, "Admin.Socket", "%s: no such directory; create it, or choose another place", directory)
	}
	return nil
}

func (c *Config) core(reference ReferenceData, mailer actors.Mailer) core.Config {
	h := &c.HTTP
	return core.Config{
		Actors: actors.Config{
			Dir: c.Dir, Catalogue: reference.Catalogue, Rules: engine.DefaultRules(), Clock: c.Clock, Monotonic: c.Monotonic, Random: c.Random, Logger: c.Logger,
			QuotaPolicy: c.Accounts.Quota, LimitsOff: c.Accounts.Unlimited, KeyPrefix: c.Accounts.KeyPrefix, Mailer: mailer,
		},
		HTTP: httpapi.Config{
			Limits:                 httpapi.Limits{ConnsMax: h.connsMax(), ConnsPerClient: cmp.Or(h.ConnsPerAddress, -1)},
			AllowUnknownParameters: h.AllowUnknown, AllowAuthorizationHeader: h.AllowAuthorization, FeeNotice: h.FeeNotice, TrustedProxies: h.TrustedProxies,
		},
		Seed: c.seed, Mail: c.Mail.MethodOrDefault(), PublicURL: h.PublicURL, Contact: h.Contact, Demo: h.Demo, AccessLog: h.AccessLog,
	}
}
