package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/actors/mail"
	"github.com/tasard/tasard/engine"
)

const (
	quotaDayMax    = 100_000_000
	quotaMinuteMax = 60_000 // each request of the last minute is remembered
	leaseMax       = 10_000
	smtpUserMax    = 254
	urlBytesMax    = 2000
	secretBytesMax = 4 << 10
	// accountURLDefault is the page that the announcement of required keys links to (K7).
	accountURLDefault = "https://github.com/tasard/tasard#accounts-keys-quotas"
	// credentialsVariable names the directory in which a service manager hands secrets over. It guards them itself, by
	// access lists that look like a readable group.
	credentialsVariable = "CREDENTIALS_DIRECTORY"
)

// The ways in which letters leave a node.
const (
	mailSMTP = "smtp"
	mailLog  = "log"
	mailOff  = "off"
)

// accountOptions say how a node counts callers and how it reaches them.
type accountOptions struct {
	limits      bool
	quotaDay    int
	quotaMinute int
	lease       int

	mail             string // "" = smtp with smtpAddr, else off
	smtpAddr         string
	smtpTLS          string
	smtpUser         string
	smtpPasswordFile string
	smtpCAFile       string
	mailFrom         engine.Email

	proxies     []netip.Prefix
	accountURL  string
	adminSocket string // "" = in the data directory
	keyPrefix   string
}

// defaultAccounts are the quotas of the contract.
func defaultAccounts() accountOptions {
	return accountOptions{
		limits: true, quotaDay: engine.DayLimitDefault, quotaMinute: engine.MinuteLimitDefault, lease: engine.LeaseDefault,
		smtpTLS: string(mail.StartTLS), accountURL: accountURLDefault, keyPrefix: engine.KeyPrefixLive,
	}
}

// addAccounts declares the flags of accountOptions, with what o holds as defaults.
func addAccounts(cmd *cobra.Command, o *accountOptions) {
	flags := cmd.Flags()
	addLimits(cmd, o)
	flags.Var(countValue(&o.quotaDay, 1, quotaDayMax), "quota-day", "requests a day for each account, and for each address without a key")
	flags.Var(countValue(&o.quotaMinute, 1, quotaMinuteMax), "quota-minute", "requests in any 60 seconds, likewise")
	flags.Var(countValue(&o.lease, 1, leaseMax), "lease", "requests that are taken from a day's quota at once: as many a crash may cost an account")
	flags.Var(wordValue(&o.mail, mailSMTP, mailLog, mailOff), "mail",
		"how login codes are sent; by default smtp with --smtp-addr, else off; log prints them, for development")
	flags.Var(addressValue(&o.smtpAddr), "smtp-addr", "the mail server")
	flags.Var(wordValue(&o.smtpTLS, string(mail.Off), string(mail.StartTLS), string(mail.Implicit)), "smtp-tls",
		"how the connection to the mail server is protected; off only on one machine")
	flags.Var(lineValue(&o.smtpUser, "NAME", smtpUserMax), "smtp-user", "the name to log in with at the mail server")
	flags.Var(pathValue(&o.smtpPasswordFile, "FILE"), "smtp-password-file", "a `FILE` with the password, which nobody but its owner may read")
	flags.Var(pathValue(&o.smtpCAFile, "FILE"), "smtp-ca-file", "a `FILE` of PEM certificates that may sign the mail server's; by default the system's")
	flags.Var(emailValue(&o.mailFrom), "mail-from", "the sender of the letters")
	flags.Var(prefixesValue(&o.proxies), "trusted-proxy", "a network of proxies whose X-Forwarded-For is believed; may be repeated, or name several with commas")
	flags.Var(urlValue(&o.accountURL, urlBytesMax), "account-url", "the page that explains keys, to which answers link once keys are announced")
	addAdminSocket(cmd, &o.adminSocket)
}

// addLimits declares --limits.
func addLimits(cmd *cobra.Command, o *accountOptions) {
	cmd.Flags().Var(switchValue(&o.limits), "limits", "hold callers to the quotas")
}

// terms are the quotas of the node.
func (o *accountOptions) terms() engine.Terms {
	return engine.Terms{Allowance: engine.Allowance{Day: o.quotaDay, Minute: o.quotaMinute}, Lease: o.lease}
}

// way is how letters leave the node.
func (o *accountOptions) way() string {
	switch {
	case o.mail != "":
		return o.mail
	case o.smtpAddr != "":
		return mailSMTP
	}
	return mailOff
}

// socket is where the management listener is found.
func (o *accountOptions) socket(data string) string {
	if o.adminSocket != "" {
		return o.adminSocket
	}
	return filepath.Join(data, adminSocketName)
}

// check tells everything that does not go together, in the names of the flags.
func (o *accountOptions) check() error {
	if o.way() != mailSMTP {
		return nil
	}
	off, hasUser := o.smtpTLS == string(mail.Off), o.smtpUser != ""
	var problems []error
	for _, rule := range []struct {
		broken bool
		say    string
	}{
		{o.smtpAddr == "", "--mail=smtp: no mail server; name it with --smtp-addr HOST:PORT"},
		{strings.HasPrefix(o.smtpAddr, ":") || strings.HasSuffix(o.smtpAddr, ":0"),
			"--smtp-addr: want the host of the mail server, which its certificate must bear, and its port"},
		{o.mailFrom.IsZero(), "--mail=smtp: no sender; give the address that letters come from with --mail-from"},
		{hasUser != (o.smtpPasswordFile != ""), "--smtp-user and --smtp-password-file belong together; one is missing"},
		{off && hasUser, "--smtp-tls=off: the password would be readable on the way; use starttls or tls"},
		{off && o.smtpCAFile != "", "--smtp-tls=off: --smtp-ca-file means nothing without TLS; leave it out, or use starttls or tls"},
	} {
		if rule.broken {
			problems = append(problems, errors.New(rule.say))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return &failure{exitUsage, errors.Join(problems...)}
}

// mailProbe is how often a mail server is looked for that can't be reached: /readyz says within five seconds that it is back.
const mailProbe = 2 * time.Second

// post is how letters leave a node.
type post struct {
	letters actors.Mailer // nil: they don't
	smtp    *mail.Mailer  // to be closed; nil without a mail server
	log     *slog.Logger

	password engine.Secret // that of the mail server
}

// openPost opens what the options say. It connects to nothing: a mail server that is down keeps no node from starting.
func (p *process) openPost(o *accountOptions, logger *slog.Logger) (*post, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	switch o.way() {
	case mailOff:
		return &post{}, nil
	case mailLog:
		return &post{letters: mail.NewLog(p.stdout)}, nil // never where logs go: they are kept
	}
	config, err := p.mailConfig(o, logger)
	if err != nil {
		return nil, err
	}
	mailer, err := mail.Open(config)
	if err != nil {
		return nil, fail(exitBadData, "%w", err)
	}
	return &post{mailer, mailer, logger, config.Password}, nil
}

// mailConfig is how to reach the mail server that the options name.
func (p *process) mailConfig(o *accountOptions, logger *slog.Logger) (mail.Config, error) {
	config := mail.Config{
		Addr: o.smtpAddr, TLS: mail.TLS(o.smtpTLS), User: o.smtpUser, From: o.mailFrom, CAFile: o.smtpCAFile,
		Clock: p.clock, Random: p.random, Logger: logger, Probe: mailProbe,
	}
	if o.smtpPasswordFile == "" {
		return config, nil
	}
	password, err := readSecret(o.smtpPasswordFile, p.variable(credentialsVariable))
	config.Password = password
	return config, err
}

// close sends what waits, if that does not take long. Letters that are given up are no failure of the stop: whoever waits
// for one asks again.
func (p *post) close(ctx context.Context) {
	if p.smtp == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownMax)
	defer cancel()
	if err := p.smtp.Close(ctx); err != nil {
		p.log.Warn(err.Error())
	}
}

// readSecret reads a file of one line that is secret. Whoever may read the file has the secret, so only its owner may; files
// in the directory of credentials are guarded by the service manager.
func readSecret(path, credentials string) (engine.Secret, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return engine.Secret{}, fail(exitBadData, "%s: there is no such file", path)
	}
	if err != nil {
		return engine.Secret{}, fail(exitBadData, "read secret: %w", err)
	}
	defer func() { _ = file.Close() }() // nothing was written
	info, err := file.Stat()
	if err != nil {
		return engine.Secret{}, fail(exitBadData, "read secret: %w", err)
	}
	guarded := credentials != "" && filepath.Dir(path) == filepath.Clean(credentials)
	if mode := info.Mode().Perm(); mode&0o066 != 0 && !guarded {
		return engine.Secret{}, fail(exitBadData, "%s: others may read or change this secret (mode %04o); do: chmod 600 %s", path, mode, path)
	}
	bytes, err := io.ReadAll(io.LimitReader(file, secretBytesMax+1))
	if err != nil {
		return engine.Secret{}, fail(exitBadData, "read secret: %w", err)
	}
	text := strings.TrimSuffix(strings.TrimSuffix(string(bytes), "\n"), "\r")
	if err := checkSecret(text); err != nil {
		return engine.Secret{}, fail(exitBadData, "%s: %w", path, err)
	}
	return engine.SecretOf(text), nil
}

// checkSecret never repeats the text.
func checkSecret(text string) error {
	switch {
	case text == "":
		return errors.New("want one line with the secret, found nothing")
	case len(text) > secretBytesMax:
		return fmt.Errorf("more than %d bytes are no secret of this kind", secretBytesMax)
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7F }):
		return errors.New("want one line with the secret, found several, or control characters")
	}
	return nil
}
