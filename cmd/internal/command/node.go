package command

import (
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/tasard/tasard/actors/mail"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/node"
)

const (
	// ListenDefault is the default of --listen.
	ListenDefault          = "127.0.0.1:8080"
	connsPerAddressDefault = 128 // connections of one client address; suits a public node
	connsLimit             = 1_000_000
	leaseMax               = 10_000
	feeNoticeMax           = 300 // number of characters
	smtpUserMax            = 254
	clusterNameMax         = 64
	clusterNodesMax        = 64
	drainDelayMax          = 10 * time.Minute
	accessOff              = "off" // values of --access-log
	accessAll              = "all"
	// CommonGroup is the heading of the flags that every node needs.
	CommonGroup = "Common flags"
	// NoMailNotice is logged by a node without a mail server.
	NoMailNotice = "login codes can't be sent: there is no mail server (--smtp-addr)"
)

// Serve is the settings of serve. Other commands use some of them.
type Serve struct {
	Config     node.Config
	Log        terminal.LogOptions
	ImportFile string // value of --import; "" means no file
	Limits     bool   // enforce quotas
	NoCollect  bool   // do not fetch rates
	strict     bool   // refuse unknown query parameters
	accessLog  string // accessOff or accessAll
}

// Default returns the default settings of serve.
func Default() *Serve {
	return &Serve{
		Config: node.Config{
			HTTP: node.HTTP{
				Listen: ListenDefault, FeeNotice: engine.FeeNotice, Conns: node.ConnsDefault, ConnsPerAddress: connsPerAddressDefault,
			},
			Accounts: node.Accounts{Quota: account.QuotaPolicy{
				DefaultQuota: account.Quota{Day: account.DayLimitDefault, Minute: account.MinuteLimitDefault}, LeaseSize: account.LeaseSizeDefault,
			}},
			Mail: node.Mail{TLS: mail.StartTLS},
		},
		Log: terminal.LogOptions{Format: "auto", Level: "info"}, Limits: true, strict: true, accessLog: accessOff,
	}
}

// ArchiveDir returns the directory of the archive of fetched documents in a data directory.
func ArchiveDir(data string) string { return filepath.Join(data, "archive") }

// ForData returns the default settings of commands that read or change a data directory.
func ForData() *Serve {
	return &Serve{Log: terminal.LogOptions{Format: "text", Level: "warn"}}
}

// NodeConfig returns the configuration of a node with the settings o in the process p.
func NodeConfig(p *process.Process, o *Serve, log *slog.Logger) node.Config {
	c := o.Config
	c.HTTP.AllowUnknown, c.Accounts.Unlimited, c.Collect.On = !o.strict, !o.Limits, !o.NoCollect
	c.Collect.Dial, c.Collect.Roots = p.Dial, p.Roots
	if c.Mail.Print = p.Stdout; c.Mail.Server == admin.MailLog {
		c.Mail.Method, c.Mail.Server = admin.MailLog, ""
	}
	if c.HTTP.ACME.Name != "" && c.HTTP.Listen == ListenDefault {
		c.HTTP.Listen = "" // the node chooses the port of HTTPS
	}
	if o.accessLog == accessAll {
		c.HTTP.AccessLog = p.Stderr
	}
	return p.CompleteConfig(c, log)
}

// row is a setting.
type row struct {
	group string // its heading in the help of serve
	name  string
	value pflag.Value
	usage string // a word in backquotes names the value
}

// rows returns all settings of serve, in the order of its help.
func rows(o *Serve) []row {
	c := &o.Config
	h, m, n, quota := &c.HTTP, &c.Mail, &c.Cluster, &c.Accounts.Quota
	return []row{
		{CommonGroup, "data", Path(&c.Dir, "DIR"), "data directory"},
		{CommonGroup, "listen", Address(&h.Listen), "address of the HTTP server; port 0 takes a free one"},
		{CommonGroup, "public-url", SiteURL(&h.PublicURL), "public address of the pages, for links to them"},
		{CommonGroup, "collect-contact", contactValue(&c.Collect.Contact), "contact for operators of collected sites, in the User-Agent"},
		{CommonGroup, "smtp-addr", mailServer(&m.Server), "mail server for login codes; log prints them instead, for development"},

		{"Data", "import", Path(&o.ImportFile, "FILE"), "import this `FILE` of observations after the start; - is stdin"},
		{"Data", "catalogue", Path(&c.Catalogue, "FILE"), "JSON `FILE` with additional institutions, currencies, sources"},
		{"Data", "admin-socket", Path(&c.Admin.Socket, "PATH"), "socket of tasard admin; default " + admin.SocketName + " in the data directory"},

		{"HTTP", "https", dnsName(&h.ACME.Name), "serve HTTPS for this `NAME`, on :443 and :80, with a certificate of Let's Encrypt, whose terms you accept"},
		{"HTTP", "tls-cert", Path(&h.TLS.Certificate, "FILE"), "serve HTTPS with the PEM certificate chain in `FILE`; SIGHUP reads it again"},
		{"HTTP", "tls-key", Path(&h.TLS.Key, "FILE"), "a `FILE` with its private key, readable only by owner and group"},
		{"HTTP", "trusted-proxy", prefixesValue(&h.TrustedProxies), "network of proxies whose X-Forwarded-For is trusted; repeatable"},
		{"HTTP", "drain-delay", Duration(&h.DrainDelay, 0, drainDelayMax), "keep answering for this time after a stop was requested"},
		{"HTTP", "strict", OnOff(&o.strict), "refuse unknown query parameters"},
		{"HTTP", "cors-authorization", OnOff(&h.AllowAuthorization), "let browsers send the Authorization header"},
		{"HTTP", "fee-notice", Line(&h.FeeNotice, "TEXT", feeNoticeMax), "sentence about fees in conversions"},
		{"HTTP", "contact", contactValue(&h.Contact), "contact of the operator, shown on the pages"},

		{"Limits", "limits", OnOff(&o.Limits), "enforce quotas; off does not change the limits of connections"},
		{"Limits", "quota-day", Count(&quota.DefaultQuota.Day, 1, admin.QuotaDayMax), "requests a day of each account, and of each address without a key"},
		{"Limits", "quota-minute", Count(&quota.DefaultQuota.Minute, 1, admin.QuotaMinuteMax), "requests in any 60 seconds, likewise"},
		{"Limits", "lease", Count(&quota.LeaseSize, 1, leaseMax), "requests of a day's quota written to the log at once"},
		{"Limits", "connections", Count(&h.Conns, 1, connsLimit), "maximum of open connections, 30 KiB each; others get 503"},
		{"Limits", "connections-per-address", Count(&h.ConnsPerAddress, 0, connsLimit), "maximum for one client address (IPv6: /64); more are closed; 0 means unlimited"},

		{"Collecting", "sources", Path(&c.Definitions, "DIR"), "directory of definitions that add, replace or disable sources"},
		{"Collecting", "source-secrets", Path(&c.Collect.Secrets, "DIR"), "directory with a file for each API key of a source, readable only by owner and group"},
		{"Collecting", "no-collect", onOff(&o.NoCollect, boolKind), "do not collect from the sources"},

		{"Mail", "mail-from", emailValue(&m.From), "sender of login codes"},
		{"Mail", "smtp-tls", Enum(&m.TLS, mail.Off, mail.StartTLS, mail.Implicit), "protection of the connection to the mail server"},
		{"Mail", "smtp-user", Line(&m.User, "NAME", smtpUserMax), "user name at the mail server"},
		{"Mail", "smtp-password-file", Path(&m.PasswordFile, "FILE"), "a `FILE` with the password, readable only by owner and group"},

		{"Logging", "log-format", Enum(&o.Log.Format, "auto", "text", "json"), "format of logs; auto is text on a terminal, else JSON"},
		{"Logging", "log-level", Enum(&o.Log.Level, "debug", "info", "warn", "error"), "lowest level to log"},
		{"Logging", "access-log", Enum(&o.accessLog, accessOff, accessAll), "log answers as JSON: id, route, status, time, bytes, network"},
		{"Logging", "metrics-listen", explicitAddress(&c.Admin.Metrics), "serve /metrics, /livez and /readyz to Prometheus here"},

		{"Cluster", "cluster", Line(&n.Name, "NAME", clusterNameMax), "`NAME` of the cluster, the same on each of its nodes"},
		{"Cluster", "cluster-node", Count(&n.Node, 0, clusterNodesMax), "number of this node, from 1; it never changes"},
		{"Cluster", "cluster-members", membersValue(&n.Members), "`LIST` of the nodes that keep the log: 1=10.0.0.1:6222,2=..."},
		{"Cluster", "cluster-listen", explicitAddress(&n.Listen), "address for other nodes; default its own among the members"},
		{"Cluster", "cluster-secret-file", Path(&n.Secret, "FILE"), "file with a line that only the nodes know, the same for each"},
	}
}

// Add declares settings of serve as flags: the named ones, or all. The values in o are the defaults.
func Add(flags *pflag.FlagSet, o *Serve, names ...string) {
	for _, r := range rows(o) {
		if len(names) == 0 || slices.Contains(names, r.name) {
			declare(flags, r.value, r.name, r.usage).Annotations = map[string][]string{groupAnnotation: {r.group}}
		}
	}
}

// CheckServe returns all errors that would prevent serve from starting, except errors of the data directory.
func CheckServe(p *process.Process, o *Serve) error {
	c := NodeConfig(p, o, slog.New(slog.DiscardHandler))
	return errors.Join(checkImport(p, o.ImportFile), Explain(c.Check()), checkListeners(&c))
}

// checkListeners returns an error if two listeners have the same address.
func checkListeners(c *node.Config) error {
	isAny := func(host string) bool { return host == "" || host == "0.0.0.0" || host == "::" }
	all := [][2]string{{"--listen", c.HTTP.Listen}, {"--metrics-listen", c.Admin.Metrics}, {"--cluster-listen", c.Cluster.Listen}}
	for i, l := range all {
		host, port, _ := net.SplitHostPort(l[1]) // one that is not set has no port
		for _, other := range all[:i] {
			otherHost, otherPort, _ := net.SplitHostPort(other[1])
			if port == otherPort && port != "" && port != "0" && (host == otherHost || isAny(host) || isAny(otherHost)) {
				return exit.Errorf(exit.Usage, "%s: %s is the address of %s too; choose another port", l[0], l[1], other[0])
			}
		}
	}
	return nil
}

// checkImport checks that the file of --import can be opened. It does not open a pipe, which would block until the pipe
// has a writer.
func checkImport(p *process.Process, name string) error {
	if name == "" {
		return nil
	}
	file, err := p.OpenInput(name)
	if err != nil || file.Blocking {
		return err
	}
	return file.Close()
}

// flagForField returns the flags that set a field of node.Config, or "".
func flagForField(field string) string {
	return map[string]string{
		"Dir": "--data", "Catalogue": "--catalogue", "Definitions": "--sources", "Collect.Secrets": "--source-secrets",
		"HTTP.Listen": "--listen", "HTTP.ACME": "--https", "HTTP.ACME.Name": "--https", "HTTP.ACME.Redirect": "--https",
		"HTTP.TLS": "--tls-cert and --tls-key", "HTTP.TLS.Certificate": "--tls-cert", "HTTP.TLS.Key": "--tls-key",
		"Mail.Server": "--smtp-addr", "Mail.From": "--mail-from", "Mail.TLS": "--smtp-tls",
		"Mail.User": "--smtp-user and --smtp-password-file", "Mail.PasswordFile": "--smtp-password-file",
		"Admin.Socket": "--admin-socket", "Admin.Metrics": "--metrics-listen",
		"Cluster": "--cluster", "Cluster.Name": "--cluster", "Cluster.Node": "--cluster-node", "Cluster.Members": "--cluster-members",
		"Cluster.Listen": "--cluster-listen", "Cluster.Secret": "--cluster-secret-file",
	}[field]
}

// Explain adds an exit code to an error of package node, and the flag of the wrong field of node.Config. For joined
// errors it explains each of them.
func Explain(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok && len(joined.Unwrap()) > 0 {
		var explained []error
		for _, item := range joined.Unwrap() {
			explained = append(explained, Explain(item))
		}
		return errors.Join(explained...)
	}
	var nodeErr *node.Error
	if !errors.As(err, &nodeErr) {
		return err
	}
	if coded := (*exit.Error)(nil); errors.As(err, &coded) {
		return exit.Wrap(exit.Code(coded), Explain(coded.Unwrap()))
	}
	code := map[node.Kind]int{
		node.Invalid: exit.Usage, node.BadFile: exit.BadData, node.Busy: exit.Busy, node.Unwritable: exit.CannotWrite,
		node.Failed: exit.FailStop, node.Interrupted: exit.Interrupted,
	}[nodeErr.Kind]
	if flag := flagForField(nodeErr.Field); flag != "" {
		return exit.Errorf(code, "%s: %w", flag, nodeErr.Err)
	}
	return exit.Wrap(code, nodeErr.Err)
}
