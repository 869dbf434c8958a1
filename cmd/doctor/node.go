package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tasard/tasard/actors/mail"
	"github.com/tasard/tasard/cmd/internal/setting"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/node"
)

const (
	mailTimeout   = 15 * time.Second
	sourceTimeout = 10 * time.Second
	// certificateWarnBefore is how long before the expiry of a certificate the doctor warns.
	certificateWarnBefore = 14 * 24 * time.Hour
)

// config returns the configuration with which serve would open the node.
func (d *doctor) config() node.Config {
	return setting.NodeConfig(d.Process, &d.o.Node, slog.New(slog.DiscardHandler))
}

func (d *doctor) descriptors(context.Context) {
	conns := d.o.Config.HTTP.Conns
	needed, limit := node.Descriptors(conns)
	if limit < needed {
		d.add(findingWarn, "descriptors", "raise the limit of open files (LimitNOFILE, ulimit -n), or lower --connections",
			"the limit is %s, %s connections need %s", terminal.Thousands(limit), terminal.Thousands(conns), terminal.Thousands(needed))
		return
	}
	d.add(findingOK, "descriptors", "", "the limit is %s, enough for %s connections", terminal.Thousands(limit), terminal.Thousands(conns))
}

func (d *doctor) address(context.Context) {
	fields := []string{"HTTP.Listen", "HTTP.ACME.Redirect"}
	for i, address := range d.config().Addresses() {
		d.checkAddress("address", address, fields[i])
	}
}

// checkAddress checks that an address is free or in use by the running node. field is the name of the field in
// node.Config that has the address; an error about the address shows the flag of this field.
func (d *doctor) checkAddress(check, address, field string) {
	listener, err := node.Listen(address, field)
	switch {
	case err == nil:
		_ = listener.Close() // no connection was accepted
		d.add(findingOK, check, "", "%s is free", address)
	case errors.Is(err, syscall.EADDRINUSE) && d.node != nil:
		d.add(findingOK, check, "", "%s is in use by the running node", address)
	default:
		d.add(findingFail, check, "", "%v", setting.Explain(err))
	}
}

// certificate checks how long the certificate of the HTTP server is valid.
func (d *doctor) certificate(context.Context) {
	c, err := d.config().LoadTLS()
	switch {
	case err != nil: // the method settings reports the error
	case c == nil && d.o.Config.HTTP.ACME.Name != "":
		d.add(findingWarn, "certificate", "the node asks for one when it runs; port 80 of the name must lead to it", "none yet for %s", d.o.Config.HTTP.ACME.Name)
	case c == nil:
		d.plainHTTP()
	default:
		d.certificateExpiry(c)
	}
}

// plainHTTP reports whether the session cookies of a node without a certificate are Secure.
func (d *doctor) plainHTTP() {
	c := &d.o.Config.HTTP
	const plain = "none: the node serves plain HTTP"
	host, _, err := net.SplitHostPort(c.Listen)
	address, addressErr := netip.ParseAddr(host)
	switch local := err != nil || host == "localhost" || addressErr == nil && address.IsLoopback(); {
	case strings.HasPrefix(c.PublicURL, "https:"):
		d.add(findingOK, "certificate", "", "%s behind %s; session cookies are Secure", plain, c.PublicURL)
	case len(c.TrustedProxies) > 0:
		d.add(findingOK, "certificate", "", "%s; session cookies are Secure when the proxy sends X-Forwarded-Proto: https", plain)
	case local:
		d.add(findingOK, "certificate", "", "%s; put a proxy with HTTPS in front, or use --https or --tls-cert", plain)
	default:
		d.add(findingWarn, "certificate", "use --https or --tls-cert, or name the proxy with HTTPS with --trusted-proxy, or its address with --public-url",
			"%s on %s, so session cookies are not Secure and can be read on the network", plain, c.Listen)
	}
}

func (d *doctor) certificateExpiry(pair *tls.Certificate) {
	now, hint := d.Clock(), "renew it, then send SIGHUP to the node"
	warnBefore := certificateWarnBefore
	if d.o.Config.HTTP.ACME.Name != "" { // renewal begins when a third of the lifetime is left
		hint = "the log of the node says why it is not renewed"
		warnBefore = min(warnBefore, pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore)/4)
	}
	switch problem := node.CertificateProblem(pair.Leaf, now); {
	case problem != "":
		d.add(findingFail, "certificate", hint, "%s", problem)
	case pair.Leaf.NotAfter.Sub(now) < warnBefore:
		d.add(findingWarn, "certificate", hint, "it expires in %s", terminal.FormatDays(pair.Leaf.NotAfter.Sub(now)))
	default:
		d.add(findingOK, "certificate", "", "for %s, valid until %s", strings.Join(certificateNames(pair), ", "), terminal.FormatInstant(pair.Leaf.NotAfter))
	}
}

// certificateNames returns the host names and addresses for which a certificate is valid.
func certificateNames(pair *tls.Certificate) []string {
	names := slices.Clone(pair.Leaf.DNSNames)
	for _, address := range pair.Leaf.IPAddresses {
		names = append(names, address.String())
	}
	return names
}

// mail connects and logs in to the mail server. It sends no e-mail.
func (d *doctor) mail(ctx context.Context) {
	nodeConfig := d.config()
	switch nodeConfig.MailMethod() {
	case admin.MailOff:
		d.add(findingWarn, "mail", "set --smtp-addr and --mail-from before keys are required", "%s", setting.NoMailNotice)
		return
	case admin.MailLog:
		d.add(findingWarn, "mail", "set a mail server with --smtp-addr", "login codes are printed (--mail=log); use this only for development")
		return
	}
	config, err := nodeConfig.MailClient()
	if err != nil {
		return // the method settings reports the error
	}
	ctx, cancel := context.WithTimeout(ctx, mailTimeout)
	defer cancel()
	if err := mail.Check(ctx, config); err != nil {
		d.add(findingFail, "mail", "check the server and the --smtp settings; login codes can't be sent", "%s accepts no e-mail: %v", config.Addr, err)
		return
	}
	login := ""
	if config.User != "" {
		login = ", login as " + config.User
	}
	d.add(findingOK, "mail", "", "%s accepts e-mail (%s)%s; none was sent", config.Addr, config.TLS, login)
}

// sources lists the hosts from which the node fetches rates. With --network it connects to each.
func (d *doctor) sources(ctx context.Context) {
	reference, err := node.LoadReferenceData(d.o.Config.Catalogue, d.o.Config.Definitions)
	if err != nil {
		return // the method settings reports the error
	}
	secrets, err := d.config().ReadSourceSecrets(reference.Sources)
	if err != nil {
		return // likewise
	}
	set := secrets.Apply(reference.Sources)
	hosts, disabled := hostsOf(set)
	switch {
	case d.o.NoCollect:
		d.add(findingOK, "sources", "", "collecting is off (--no-collect)")
		return
	case !d.o.network:
		d.add(findingOK, "sources", "", "%s at %s, %d disabled%s; not tried (--network): %s", terminal.Plural(len(set.Definitions())-disabled, "source"),
			terminal.Plural(len(hosts), "host"), disabled, withoutSecret(reference.Sources, set), strings.Join(hosts, ", "))
		return
	}
	if d.o.Config.Collect.Contact == "" {
		d.add(findingWarn, "sources", "set --collect-contact", "operators of collected sites find no contact in the User-Agent")
	}
	for _, host := range hosts {
		if ctx.Err() != nil {
			return
		}
		d.checkHost(ctx, host)
	}
}

// withoutSecret names the sources that are disabled in set because their secret is missing. It returns "" if there are
// none.
func withoutSecret(all, set *source.Set) string {
	var ids []string
	for i, d := range set.Definitions() { // both are sorted by id and have the same sources
		if d.Disabled != "" && all.Definitions()[i].Disabled == "" {
			ids = append(ids, d.ID)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return " (without their secret, --source-secrets: " + strings.Join(ids, ", ") + ")"
}

// hostsOf returns HOST:PORT of the first page of each enabled source, and the number of disabled sources.
func hostsOf(set *source.Set) (hosts []string, disabled int) {
	for _, d := range set.Definitions() {
		if d.Disabled != "" {
			disabled++
			continue
		}
		address, err := url.Parse(d.Pages[0].Requests[0].URL)
		if err != nil {
			continue // impossible: LoadReferenceData has checked the URL
		}
		port := cmp.Or(address.Port(), map[string]string{"http": "80"}[address.Scheme], "443")
		hosts = append(hosts, net.JoinHostPort(address.Hostname(), port))
	}
	slices.Sort(hosts)
	return slices.Compact(hosts), disabled
}

// checkHost connects to a host and disconnects without a request. It uses TLS unless the port is 80.
func (d *doctor) checkHost(ctx context.Context, host string) {
	ctx, cancel := context.WithTimeout(ctx, sourceTimeout)
	defer cancel()
	conn, err := d.connect(ctx, host)
	if err == nil {
		defer func() { _ = conn.Close() }() // nothing was sent
		if name, port, _ := net.SplitHostPort(host); port != "80" {
			err = tls.Client(conn, &tls.Config{ServerName: name, RootCAs: d.Roots, MinVersion: tls.VersionTLS12}).HandshakeContext(ctx)
		}
	}
	if err != nil {
		d.add(findingWarn, "source", "check DNS, routes and certificates of this machine; tasard sources check fetches like the node",
			"%s is not reachable: %v", host, err)
		return
	}
	d.add(findingOK, "source", "", "%s is reachable", host)
}

func (d *doctor) connect(ctx context.Context, address string) (net.Conn, error) {
	if d.Dial != nil {
		return d.Dial(ctx, "tcp", address)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}
