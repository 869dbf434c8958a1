package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tasard/tasard/actors/mail"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/admin"
)

// secretBytesMax is the maximum size of a file with a secret.
const secretBytesMax = 4 << 10

// Mail configures the sending of login codes.
type Mail struct {
	Method       string        // admin.MailSMTP, admin.MailLog or admin.MailOff; "" means MailSMTP with a Server, else MailOff
	Server       string        // HOST:PORT of the mail server
	TLS          mail.TLS      // protection of the connection; "" means mail.StartTLS
	User         string        // user name for the login to the mail server; "" means no login
	PasswordFile string        // file with the password on one line; "" means no password
	From         account.Email // address of the sender
	Print        io.Writer     // output of admin.MailLog with the login codes; not a log file, which would keep the codes
}

// MethodOrDefault returns Method or its default.
func (m *Mail) MethodOrDefault() string {
	switch {
	case m.Method != "":
		return m.Method
	case m.Server != "":
		return admin.MailSMTP
	}
	return admin.MailOff
}

// check returns an error for each missing field and each contradiction.
func (m *Mail) check() error {
	if m.MethodOrDefault() == admin.MailLog && m.Print == nil {
		return errorf(Invalid, "Mail.Print", "want a writer for login codes")
	}
	if m.MethodOrDefault() != admin.MailSMTP {
		return nil
	}
	hasUser := m.User != ""
	host, port, err := net.SplitHostPort(m.Server)
	number, portErr := strconv.ParseUint(port, 10, 16)
	badServer := errors.Join(err, portErr) != nil || host == "" || number == 0
	return errors.Join(
		invalid(m.Server == "", "Mail.Server", "no mail server; want HOST:PORT"),
		invalid(m.Server != "" && badServer, "Mail.Server", "want host and port of the mail server; its certificate must contain the host"),
		invalid(m.From.IsZero(), "Mail.From", "no sender; give the address from which login codes are sent"),
		invalid(hasUser != (m.PasswordFile != ""), "Mail.User", "one is missing; give both"),
		invalid(m.TLS == mail.Off && hasUser, "Mail.TLS", "off sends the password unprotected; use starttls or tls"),
	)
}

// client checks all fields and returns the configuration of the mail client.
func (m *Mail) client(c *Config) (mail.Config, error) {
	config := mail.Config{Addr: m.Server, TLS: m.TLS, User: m.User, From: m.From, Clock: c.Clock, Random: c.Random, Logger: c.Logger}
	if err := m.check(); err != nil || m.MethodOrDefault() != admin.MailSMTP || m.PasswordFile == "" {
		return config, err
	}
	password, err := ReadSecret(m.PasswordFile, c.Credentials)
	if err != nil {
		return config, &Error{BadFile, "Mail.PasswordFile", err}
	}
	config.Password = password
	return config, nil
}

// MailClient returns the node's mail configuration, for a check of the mail server.
func (c Config) MailClient() (mail.Config, error) {
	c = c.withDefaults()
	return c.Mail.client(&c)
}

// openMailer opens what sends login codes. It does not connect to the mail server, so a node can start without it.
func (n *Node) openMailer() {
	switch n.config.Mail.MethodOrDefault() {
	case admin.MailLog:
		n.sender = mail.NewLogMailer(n.config.Mail.Print)
	case admin.MailSMTP:
		n.mailer = mail.Open(n.mailConfig)
		n.sender = n.mailer
	}
}

// closeMailer sends the queued e-mails for up to shutdownMax. The rest is lost; users can request another code.
func (n *Node) closeMailer(ctx context.Context) {
	if n.mailer == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownMax)
	defer cancel()
	if err := n.mailer.Close(ctx); err != nil {
		n.config.Logger.Warn(err.Error())
	}
}

// ReadSecret reads a secret from a file of one line. It rejects a file with too wide access (checkSecretFile).
func ReadSecret(path, credentials string) (account.Secret, error) {
	if err := checkSecretFile(path, credentials, "secret"); err != nil {
		return account.Secret{}, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return account.Secret{}, fmt.Errorf("read secret: %w", err)
	}
	line := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if err := checkSecret(line); err != nil {
		return account.Secret{}, fmt.Errorf("%s: %w", path, err)
	}
	return account.SecretOf(line), nil
}

// secretModeForbidden are the forbidden permission bits of a file with a secret or private key. The group may read the
// file, as is usual for web servers and for secrets mounted by an orchestrator.
const secretModeForbidden = 0o026

// checkSecretFile returns an error for a file with a secret or private key if other users can read it or its group can
// change it. Files in the directory credentials are exempt: systemd protects that directory with access control lists,
// so the file modes there wrongly suggest that other users can read the files.
func checkSecretFile(path, credentials, kind string) error {
	info, err := checkRegular(path)
	if err != nil || credentials != "" && filepath.Dir(path) == filepath.Clean(credentials) {
		return err
	}
	if mode := info.Mode().Perm(); mode&secretModeForbidden != 0 {
		return fmt.Errorf("%s: other users can read or change this %s (mode %04o); run: chmod 640 %s", path, kind, mode, path)
	}
	return nil
}

// checkRegular returns an error if path is not a regular file. Opening a named pipe could block forever, and Reload
// could not read it again.
func checkRegular(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: no such file", path)
	case err == nil && !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: want a regular file, found a directory, pipe or device", path)
	}
	return info, err
}

// checkSecret checks a secret. Its errors never quote the secret.
func checkSecret(text string) error {
	switch {
	case text == "":
		return errors.New("want one line with the secret, found nothing")
	case len(text) > secretBytesMax:
		return fmt.Errorf("more than %d bytes; want a secret of one line", secretBytesMax)
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7F }):
		return errors.New("want one line with the secret, found several, or control characters")
	}
	return nil
}
