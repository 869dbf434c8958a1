package cmd

import (
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/actors/mail"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/node"
)

const (
	listenDefault          = "127.0.0.1:8080"
	connsPerAddressDefault = 128 // for a node that anybody may reach
	connsLimit             = 1_000_000
	leaseMax               = 10_000
	feeNoticeMax           = 300 // characters
	smtpUserMax            = 254
	urlBytesMax            = 2000
	contactRunesMax        = 200
	clusterNodesMax        = 64
	drainDelayMax          = 10 * time.Minute
	spreadDefault          = 5 * time.Minute
	spreadMax              = time.Hour
	noMailNote             = "no mail server is named (--smtp-addr), so nobody can ask for a login code"
)

// What --access-log may say.
const (
	accessOff    = "off"
	accessErrors = "errors"
	accessAll    = "all"
)

// nodeOptions are the settings of a node, as flags say them.
type nodeOptions struct {
	config    node.Config
	strict    bool
	limits    bool
	noCollect bool
	access    string
}

// defaultNode is what serve does where nobody says otherwise.
func defaultNode() nodeOptions {
	return nodeOptions{
		config: node.Config{
			HTTP: node.HTTP{
				Listen: listenDefault, FeeNotice: engine.FeeNotice, AccountURL: node.AccountURLDefault, Conns: node.ConnsDefault, ConnsPerAddress: connsPerAddressDefault,
			},
			Accounts: node.Accounts{Terms: engine.Terms{
				Allowance: engine.Allowance{Day: engine.DayLimitDefault, Minute: engine.MinuteLimitDefault}, Lease: engine.LeaseDefault,
			}},
			Mail:    node.Mail{TLS: mail.StartTLS},
			Collect: node.Collect{Spread: spreadDefault},
		},
		strict: true, limits: true, access: accessOff,
	}
}

// settledNode is the configuration that the flags and the process make.
func (p *process) settledNode(o *nodeOptions, log *slog.Logger) node.Config {
	c := o.config
	c.HTTP.AllowUnknown, c.Accounts.Unlimited, c.Collect.On = !o.strict, !o.limits, !o.noCollect
	c.Collect.Dial, c.Collect.Roots = p.dial, p.roots
	c.Mail.Print = p.stdout
	switch o.access {
	case accessErrors:
		c.HTTP.AccessLog, c.HTTP.AccessFrom = p.stderr, http.StatusBadRequest
	case accessAll:
		c.HTTP.AccessLog = p.stderr
	}
	return p.within(c, log)
}

// addNode declares all settings of a node.
func addNode(cmd *cobra.Command, o *nodeOptions) {
	h, flags := &o.config.HTTP, cmd.Flags()
	addListen(cmd, &h.Listen)
	flags.Var(pathValue(&h.TLS.Certificate, "FILE"), "tls-cert", "answer over HTTPS with the PEM certificates in `FILE`, the node's own first; SIGHUP reads it again")
	flags.Var(pathValue(&h.TLS.Key, "FILE"), "tls-key", "a `FILE` with the private key of that certificate, which only its owner and group may read")
	flags.Var(countValue(&h.Conns, 1, connsLimit), "connections", "connections at once, each of which takes about 30 KiB; newcomers beyond get 503")
	flags.Var(countValue(&h.ConnsPerAddress, 0, connsLimit), "connections-per-address",
		"of them for one client address (IPv6: /64), at most a fifth of all; trusted proxies are exempt; 0 is any number")
	flags.Var(spanValue(&h.DrainDelay, 0, drainDelayMax), "drain-delay",
		"how long a node that was asked to stop answers on, so that balancers see it leave: /readyz says 503, every answer ends its connection")
	addDirectory(cmd, &o.config)
	addCluster(cmd, &o.config.Cluster)
	addWatch(cmd, o)
	addLimits(cmd, o)
	addAccounts(cmd, &o.config)
	plainSwitch(flags, &o.noCollect, "no-collect", "fetch nothing from the institutions")
	addContact(cmd, &o.config.Collect)
	flags.Var(spanValue(&o.config.Collect.Spread, 0, spreadMax), "collect-spread", "over how long after 08:00, 12:00 and 17:00 the sources are asked")
	flags.Var(switchValue(&o.strict), "strict", "refuse unknown query parameters")
	flags.Var(switchValue(&h.AllowAuthorization), "cors-authorization", "let browsers send the Authorization header")
	flags.Var(sentenceValue(&h.FeeNotice, feeNoticeMax), "fee-notice", "the sentence about fees in conversions")
	flags.Var(originValue(&h.PublicURL), "public-url", "the address under which people reach the pages, for links that search engines and integrators copy")
}

// addAccounts declares how callers are counted and reached.
func addAccounts(cmd *cobra.Command, c *node.Config) {
	flags, terms, m := cmd.Flags(), &c.Accounts.Terms, &c.Mail
	flags.Var(countValue(&terms.Allowance.Day, 1, admin.QuotaDayMax), "quota-day", "requests a day for each account, and for each address without a key")
	flags.Var(countValue(&terms.Allowance.Minute, 1, admin.QuotaMinuteMax), "quota-minute", "requests in any 60 seconds, likewise")
	flags.Var(countValue(&terms.Lease, 1, leaseMax), "lease", "requests that are taken from a day's quota at once: as many a crash may cost an account")
	flags.Var(wordValue(&m.Way, admin.MailSMTP, admin.MailLog, admin.MailOff), "mail",
		"how login codes are sent; by default smtp with --smtp-addr, else off; log prints them, for development")
	flags.Var(addressValue(&m.Server), "smtp-addr", "the mail server")
	flags.Var(wordValue(&m.TLS, string(mail.Off), string(mail.StartTLS), string(mail.Implicit)), "smtp-tls",
		"how the connection to the mail server is protected; off only on one machine")
	flags.Var(lineValue(&m.User, "NAME", smtpUserMax), "smtp-user", "the name to log in with at the mail server")
	flags.Var(pathValue(&m.PasswordFile, "FILE"), "smtp-password-file", "a `FILE` with the password, which nobody but its owner may read")
	flags.Var(pathValue(&m.CAFile, "FILE"), "smtp-ca-file", "a `FILE` of PEM certificates that may sign the mail server's; by default the system's")
	flags.Var(emailValue(&m.From), "mail-from", "the sender of the letters")
	flags.Var(prefixesValue(&c.HTTP.Proxies), "trusted-proxy", "a network of proxies whose X-Forwarded-For is believed; may be repeated, or name several with commas")
	flags.Var(urlValue(&c.HTTP.AccountURL, urlBytesMax), "account-url", "the page that explains keys, to which answers link once keys are announced")
	addAdminSocket(cmd, &c.Admin.Socket)
}

// addCluster declares with which other nodes a node is one service.
func addCluster(cmd *cobra.Command, o *node.Cluster) {
	flags := cmd.Flags()
	flags.Var(lineValue(&o.Name, "NAME", 64), "cluster", "make several nodes one service: the `NAME` of it, the same on each of them")
	flags.Var(countValue(&o.Node, 0, clusterNodesMax), "cluster-node", "the number of this node in the cluster, from 1 on and for ever; no two have the same")
	flags.Var(membersValue(&o.Members), "cluster-members",
		"a `LIST` of the three or five nodes that keep the log, the same on each node, like 1=10.0.0.1:6222,2=10.0.0.2:6222,3=10.0.0.3:6222; others are guests")
	flags.Var(closedAddressValue(&o.Listen), "cluster-listen", "the address on which other nodes come in; without it the node's own among the members")
	flags.Var(pathValue(&o.TLS.Authority, "FILE"), "cluster-ca", "a PEM `FILE` with the authority that has signed the certificates of the nodes")
	flags.Var(pathValue(&o.TLS.Certificate, "FILE"), "cluster-cert", "a PEM `FILE` with this node's certificate, for the name under which others reach it")
	flags.Var(pathValue(&o.TLS.Key, "FILE"), "cluster-key", "a `FILE` with the private key of that certificate, which only its owner and group may read")
	plainSwitch(flags, &o.Insecure, "cluster-insecure", "let the nodes speak without certificates; only where all addresses are loopback ones")
}

// addWatch declares what lets others watch the node.
func addWatch(cmd *cobra.Command, o *nodeOptions) {
	o.access = accessOff
	flags := cmd.Flags()
	flags.Var(closedAddressValue(&o.config.Admin.Metrics), "metrics-listen",
		"an address for Prometheus: /metrics, /livez and /readyz, without a key; by default they are at the socket of tasard admin alone")
	flags.Var(wordValue(&o.access, accessOff, accessErrors, accessAll), "access-log",
		"write a line of JSON to stderr for each answer, or for errors: request id, route, status, time, bytes, network; no path, query or key")
}

// addDirectory declares where data are and what is known.
func addDirectory(cmd *cobra.Command, c *node.Config) {
	addData(cmd, &c.Dir)
	addCatalogue(cmd, &c.Catalogue)
	addSources(cmd, &c.Definitions)
}

// addData declares --data.
func addData(cmd *cobra.Command, data *string) {
	cmd.Flags().Var(pathValue(data, "DIR"), "data", "work on the data directory `DIR`")
}

// addCatalogue declares --catalogue.
func addCatalogue(cmd *cobra.Command, file *string) {
	cmd.Flags().Var(pathValue(file, "FILE"), "catalogue", "add institutions, currencies and sources of a JSON `FILE` to the built-in ones")
}

// addSources declares --sources.
func addSources(cmd *cobra.Command, directory *string) {
	cmd.Flags().Var(pathValue(directory, "DIR"), "sources", "add, replace or turn off sources by the definitions in `DIR`")
}

// addContact declares --collect-contact.
func addContact(cmd *cobra.Command, o *node.Collect) {
	cmd.Flags().Var(contactValue(&o.Contact), "collect-contact",
		"an e-mail address or page for whoever runs a site that is asked: it goes into the User-Agent")
}

// addListen declares --listen.
func addListen(cmd *cobra.Command, address *string) {
	cmd.Flags().Var(addressValue(address), "listen", "the address to answer on; port 0 takes a free one")
}

// addLimits declares --limits.
func addLimits(cmd *cobra.Command, o *nodeOptions) {
	cmd.Flags().Var(switchValue(&o.limits), "limits", "hold callers to the quotas")
}

// addLog declares the flags of logOptions, with what o holds as defaults.
func addLog(cmd *cobra.Command, o *logOptions) {
	cmd.Flags().Var(wordValue(&o.format, "auto", "text", "json"), "log-format", "log as text or as JSON; auto is text on a terminal")
	cmd.Flags().Var(wordValue(&o.level, "debug", "info", "warn", "error"), "log-level", "log this and what is worse")
}

// addAdminSocket declares --admin-socket.
func addAdminSocket(cmd *cobra.Command, socket *string) {
	cmd.Flags().Var(pathValue(socket, "PATH"), "admin-socket", "the socket of tasard admin; by default "+admin.SocketName+" in the data directory")
}

// membersValue is a list like 1=10.0.0.1:6222,2=10.0.0.2:6222,3=10.0.0.3:6222.
func membersValue(into *[]node.Member) pflag.Value {
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
	show := func(members []node.Member) string {
		var parts []string
		for _, m := range members {
			parts = append(parts, fmt.Sprintf("%d=%s", m.Node, m.Address))
		}
		return strings.Join(parts, ",")
	}
	return &value[[]node.Member]{into, "members", parse, show}
}

// contactValue is one line that fits into the comment of a User-Agent.
func contactValue(into *string) *value[string] {
	parse := func(text string) (string, error) {
		if text == "" || len(text) > contactRunesMax || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`()\;`, r) }) {
			return "", fmt.Errorf("%q: want an e-mail address or the address of a page", text)
		}
		return text, nil
	}
	return &value[string]{into, "TEXT", parse, func(text string) string { return text }}
}
