package setting

import (
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tasard/tasard/actors/mail"
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
	urlBytesMax            = 2000
	contactRunesMax        = 200
	clusterNodesMax        = 64
	dnsNameBytesMax        = 253
	drainDelayMax          = 10 * time.Minute
	collectSpread          = 5 * time.Minute // the sources are fetched within this time after each slot
	// NoMailNotice is what a node without a mail server logs.
	NoMailNotice = "login codes can't be sent: there is no mail server (--smtp-addr)"
)

// Values of --access-log.
const (
	accessOff = "off"
	accessAll = "all"
)

// Node holds the settings of a node.
type Node struct {
	Config    node.Config
	strict    bool
	Limits    bool
	NoCollect bool
	archive   string // value of --archive; "" means the default
	accessLog string
}

// archiveOff is the value of --archive for no archive.
const archiveOff = "off"

// ArchiveDir returns the directory of the archive, or "" if there is none.
func (o *Node) ArchiveDir() string { return ArchiveDir(o.archive, o.Config.Dir) }

// ArchiveDir returns the directory of the archive of fetched documents that the values of --archive and --data name, or
// "" if they name none.
func ArchiveDir(archive, data string) string {
	switch {
	case archive == archiveOff || archive == "" && data == "":
		return ""
	case archive == "":
		return filepath.Join(data, "archive")
	}
	return archive
}

// AddArchive declares --archive.
func AddArchive(flags *pflag.FlagSet, archive *string) {
	flags.Var(Path(archive, "DIR"), "archive", "directory that keeps fetched documents, or off; default archive in the data directory")
}

// DefaultNode returns the default settings of a node.
func DefaultNode() Node {
	return Node{
		Config: node.Config{
			HTTP: node.HTTP{
				Listen: ListenDefault, FeeNotice: engine.FeeNotice, Conns: node.ConnsDefault, ConnsPerAddress: connsPerAddressDefault,
			},
			Accounts: node.Accounts{Quota: account.QuotaPolicy{
				DefaultQuota: account.Quota{Day: account.DayLimitDefault, Minute: account.MinuteLimitDefault}, LeaseSize: account.LeaseSizeDefault,
			}},
			Mail:    node.Mail{TLS: mail.StartTLS},
			Collect: node.Collect{Spread: collectSpread},
		},
		strict: true, Limits: true, accessLog: accessOff,
	}
}

// NodeConfig returns the configuration of a node that has the settings o and runs in the process p.
func NodeConfig(p *process.Process, o *Node, log *slog.Logger) node.Config {
	c := o.Config
	c.HTTP.AllowUnknown, c.Accounts.Unlimited, c.Collect.On = !o.strict, !o.Limits, !o.NoCollect
	c.Collect.Dial, c.Collect.Roots = p.Dial, p.Roots
	if p.CollectAtOnce {
		c.Collect.Spread = 0
	}
	c.Mail.Print = p.Stdout
	if c.HTTP.ACME.Name != "" && c.HTTP.Listen == ListenDefault {
		c.HTTP.Listen = "" // the node chooses the port of HTTPS
	}
	if o.accessLog == accessAll {
		c.HTTP.AccessLog = p.Stderr
	}
	return p.CompleteConfig(c, log)
}

func addNode(flags *pflag.FlagSet, o *Node) {
	h := &o.Config.HTTP
	AddListen(flags, &h.Listen)
	flags.Var(Path(&h.TLS.Certificate, "FILE"), "tls-cert", "serve HTTPS with the PEM certificate chain in `FILE`; SIGHUP reads it again")
	flags.Var(Path(&h.TLS.Key, "FILE"), "tls-key", "a `FILE` with its private key, readable only by owner and group")
	flags.Var(dnsName(&h.ACME.Name), "https", "serve HTTPS for this `NAME`, by default on :443, with a certificate of an ACME authority, whose terms you accept")
	flags.Var(URL(&h.ACME.Authority), "https-authority", "directory of the ACME authority; default Let's Encrypt")
	flags.Var(Address(&h.ACME.Redirect), "https-redirect", "address for the authority's checks and redirects to HTTPS; default :80 with --https")
	flags.Var(Count(&h.Conns, 1, connsLimit), "connections", "maximum of open connections, 30 KiB each; others get 503")
	flags.Var(Count(&h.ConnsPerAddress, 0, connsLimit), "connections-per-address", "maximum for one client address (IPv6: /64); more are closed; 0 means unlimited")
	flags.Var(Duration(&h.DrainDelay, 0, drainDelayMax), "drain-delay", "keep answering for this time after a stop was requested")
	AddDirectory(flags, &o.Config)
	addCluster(flags, &o.Config.Cluster)
	AddMonitoring(flags, o)
	AddLimits(flags, o)
	addAccounts(flags, &o.Config)
	BoolFlag(flags, &o.NoCollect, "no-collect", "do not collect from the sources")
	AddContact(flags, &o.Config.Collect)
	AddSourceSecrets(flags, &o.Config.Collect)
	AddArchive(flags, &o.archive)
	flags.Var(OnOff(&o.strict), "strict", "refuse unknown query parameters")
	flags.Var(OnOff(&h.AllowAuthorization), "cors-authorization", "let browsers send the Authorization header")
	flags.Var(Line(&h.FeeNotice, "TEXT", feeNoticeMax), "fee-notice", "sentence about fees in conversions")
	flags.Var(SiteURL(&h.PublicURL), "public-url", "public address of the pages, for links to them")
}

// addAccounts declares the settings of quotas, login codes, proxies and the operator of the node.
func addAccounts(flags *pflag.FlagSet, c *node.Config) {
	quota, m := &c.Accounts.Quota, &c.Mail
	flags.Var(Count(&quota.DefaultQuota.Day, 1, admin.QuotaDayMax), "quota-day", "requests a day of each account, and of each address without a key")
	flags.Var(Count(&quota.DefaultQuota.Minute, 1, admin.QuotaMinuteMax), "quota-minute", "requests in any 60 seconds, likewise")
	flags.Var(Count(&quota.LeaseSize, 1, leaseMax), "lease", "requests of a day's quota written to the log at once")
	flags.Var(Enum(&m.Method, admin.MailSMTP, admin.MailLog, admin.MailOff), "mail", "how login codes are sent; default smtp with --smtp-addr, else off")
	flags.Var(Address(&m.Server), "smtp-addr", "mail server for login codes")
	flags.Var(Enum(&m.TLS, string(mail.Off), string(mail.StartTLS), string(mail.Implicit)), "smtp-tls", "protection of the connection to the mail server")
	flags.Var(Line(&m.User, "NAME", smtpUserMax), "smtp-user", "user name at the mail server")
	flags.Var(Path(&m.PasswordFile, "FILE"), "smtp-password-file", "a `FILE` with the password, readable only by owner and group")
	flags.Var(Path(&m.CAFile, "FILE"), "smtp-ca-file", "PEM `FILE` of the mail server's authorities; default the system's")
	flags.Var(emailValue(&m.From), "mail-from", "sender of login codes")
	flags.Var(prefixesValue(&c.HTTP.TrustedProxies), "trusted-proxy", "network of proxies whose X-Forwarded-For is trusted; repeatable")
	flags.Var(contactValue(&c.HTTP.Contact), "contact", "contact of the operator, shown on the pages")
	AddAdminSocket(flags, &c.Admin.Socket)
}

func addCluster(flags *pflag.FlagSet, o *node.Cluster) {
	flags.Var(Line(&o.Name, "NAME", 64), "cluster", "`NAME` of the cluster, the same on each of its nodes")
	flags.Var(Count(&o.Node, 0, clusterNodesMax), "cluster-node", "number of this node, from 1; it never changes")
	flags.Var(membersValue(&o.Members), "cluster-members", "`LIST` of the nodes that keep the log: 1=10.0.0.1:6222,2=...")
	flags.Var(explicitAddress(&o.Listen), "cluster-listen", "address for other nodes; default its own among the members")
	flags.Var(Path(&o.TLS.Authority, "FILE"), "cluster-ca", "PEM `FILE` with the authority of the nodes' certificates")
	flags.Var(Path(&o.TLS.Certificate, "FILE"), "cluster-cert", "PEM `FILE` with this node's certificate")
	flags.Var(Path(&o.TLS.Key, "FILE"), "cluster-key", "a `FILE` with its private key, readable only by owner and group")
	flags.Var(hostsValue(&o.Guests), "cluster-guests", "`LIST` of the hosts of guests; only certificates for these and members count")
	flags.Var(Path(&o.SecretFile, "FILE"), "cluster-secret-file", "a `FILE` with a secret of all nodes, readable only by owner and group")
	BoolFlag(flags, &o.Insecure, "cluster-insecure", "no certificates, only the secret; only with loopback addresses")
	BoolFlag(flags, &o.Leave, "cluster-leave", "leave the cluster for good: its records stay, the cluster never takes them back")
}

// Group is a group of flags in the help.
type Group struct {
	Title string
	Flags []string
}

// Groups returns the groups into which the help of serve divides the flags. The first group has the flags that every
// node needs.
func Groups() []Group {
	return []Group{
		{"Common flags", []string{"data", "config", "listen", "public-url", "collect-contact", "smtp-addr"}},
		{"Data", []string{"import", "catalogue", "admin-socket"}},
		{"HTTP", []string{"https", "https-redirect", "https-authority", "tls-cert", "tls-key", "trusted-proxy", "drain-delay", "strict", "cors-authorization", "fee-notice", "contact"}},
		{"Limits", []string{"limits", "quota-day", "quota-minute", "lease", "connections", "connections-per-address"}},
		{"Collecting", []string{"sources", "source-secrets", "archive", "no-collect"}},
		{"Mail", []string{"mail", "mail-from", "smtp-tls", "smtp-user", "smtp-password-file", "smtp-ca-file"}},
		{"Logging", []string{"log-format", "log-level", "access-log", "metrics-listen"}},
		{"Cluster", []string{
			"cluster", "cluster-node", "cluster-members", "cluster-listen", "cluster-ca", "cluster-cert", "cluster-key", "cluster-guests",
			"cluster-secret-file", "cluster-insecure", "cluster-leave",
		}},
	}
}

// AddMonitoring declares --metrics-listen and --access-log.
func AddMonitoring(flags *pflag.FlagSet, o *Node) {
	o.accessLog = accessOff
	flags.Var(explicitAddress(&o.Config.Admin.Metrics), "metrics-listen", "serve /metrics, /livez and /readyz to Prometheus here")
	flags.Var(Enum(&o.accessLog, accessOff, accessAll), "access-log", "log answers as JSON: id, route, status, time, bytes, network")
}

// AddDirectory declares --data, --catalogue and --sources.
func AddDirectory(flags *pflag.FlagSet, c *node.Config) {
	AddData(flags, &c.Dir)
	AddCatalogue(flags, &c.Catalogue)
	AddSources(flags, &c.Definitions)
}

// AddData declares --data.
func AddData(flags *pflag.FlagSet, data *string) {
	flags.Var(Path(data, "DIR"), "data", "data directory")
}

// AddCatalogue declares --catalogue.
func AddCatalogue(flags *pflag.FlagSet, file *string) {
	flags.Var(Path(file, "FILE"), "catalogue", "JSON `FILE` with additional institutions, currencies, sources")
}

// AddSources declares --sources.
func AddSources(flags *pflag.FlagSet, directory *string) {
	flags.Var(Path(directory, "DIR"), "sources", "directory of definitions that add, replace or disable sources")
}

// AddSourceSecrets declares --source-secrets.
func AddSourceSecrets(flags *pflag.FlagSet, o *node.Collect) {
	flags.Var(Path(&o.Secrets, "DIR"), "source-secrets", "directory with a file for each API key of a source, readable only by owner and group")
}

// AddContact declares --collect-contact.
func AddContact(flags *pflag.FlagSet, o *node.Collect) {
	flags.Var(contactValue(&o.Contact), "collect-contact", "contact for operators of collected sites, in the User-Agent")
}

// AddListen declares --listen.
func AddListen(flags *pflag.FlagSet, address *string) {
	flags.Var(Address(address), "listen", "address of the HTTP server; port 0 takes a free one")
}

// AddLimits declares --limits.
func AddLimits(flags *pflag.FlagSet, o *Node) {
	flags.Var(OnOff(&o.Limits), "limits", "enforce quotas; off does not change the limits of connections")
}

// AddLog declares --log-format and --log-level. The values in o become the defaults.
func AddLog(flags *pflag.FlagSet, o *terminal.LogOptions) {
	flags.Var(Enum(&o.Format, "auto", "text", "json"), "log-format", "format of logs; auto is text on a terminal, else JSON")
	flags.Var(Enum(&o.Level, "debug", "info", "warn", "error"), "log-level", "lowest level to log")
}

// AddAdminSocket declares --admin-socket.
func AddAdminSocket(flags *pflag.FlagSet, socket *string) {
	flags.Var(Path(socket, "PATH"), "admin-socket", "socket of tasard admin; default "+admin.SocketName+" in the data directory")
}

// membersValue returns the value of --cluster-members. It accepts a list of numbers and addresses of nodes, such as
// 1=10.0.0.1:6222,2=10.0.0.2:6222,3=10.0.0.3:6222.
func membersValue(target *[]node.Member) pflag.Value {
	parse := func(text string) (members []node.Member, err error) {
		for part := range strings.SplitSeq(text, ",") {
			number, address, ok := strings.Cut(strings.TrimSpace(part), "=")
			m := node.Member{Address: address}
			if m.Node, err = strconv.Atoi(number); !ok || err != nil || m.Node < 1 || m.Node > clusterNodesMax {
				return nil, fmt.Errorf("%q: want a number from 1 to %d, '=' and HOST:PORT, like 1=10.0.0.1:6222", part, clusterNodesMax)
			}
			if _, err := hostOfAddress(address); err != nil {
				return nil, err
			}
			members = append(members, m)
		}
		return members, nil
	}
	format := func(members []node.Member) string {
		var parts []string
		for _, m := range members {
			parts = append(parts, fmt.Sprintf("%d=%s", m.Node, m.Address))
		}
		return strings.Join(parts, ",")
	}
	return &listValue[[]node.Member]{value[[]node.Member]{target, "members", parse, format}}
}

// hostsValue returns a value that accepts a list of host names and IP addresses.
func hostsValue(target *[]string) pflag.Value {
	parse := func(text string) ([]string, error) {
		hosts := strings.Split(text, ",")
		if slices.ContainsFunc(hosts, func(host string) bool {
			return host == "" || strings.ContainsAny(host, " \t/[]") || strings.Contains(host, ":") && net.ParseIP(host) == nil
		}) {
			return nil, fmt.Errorf("%q: want host names or IP addresses without ports, separated by commas", text)
		}
		return hosts, nil
	}
	return &listValue[[]string]{value[[]string]{target, "hosts", parse, func(hosts []string) string { return strings.Join(hosts, ",") }}}
}

// contactValue returns a value that accepts an e-mail address or the address of a page. The text can be part of a
// comment in the header field User-Agent.
func contactValue(target *string) *value[string] {
	parse := func(text string) (string, error) {
		if text == "" || len(text) > contactRunesMax || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`()\;`, r) }) {
			return "", fmt.Errorf("%q: want an e-mail address or the address of a page", text)
		}
		return text, nil
	}
	return &value[string]{target, "TEXT", parse, func(text string) string { return text }}
}

// Serve holds the settings of serve.
type Serve struct {
	Node
	Log        terminal.LogOptions
	ImportFile string // value of --import; "" means no file
}

// DefaultServe returns the default settings of serve.
func DefaultServe() *Serve {
	return &Serve{Node: DefaultNode(), Log: terminal.LogOptions{Format: "auto", Level: "info"}}
}

// AddServe declares the settings of serve. Commands that check or show these settings use AddServe too.
func AddServe(flags *pflag.FlagSet, o *Serve) {
	addNode(flags, &o.Node)
	AddLog(flags, &o.Log)
	flags.Var(Path(&o.ImportFile, "FILE"), "import", "import this `FILE` of observations after the start; - is stdin")
}
