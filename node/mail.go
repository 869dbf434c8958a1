package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tasard/tasard/actors"
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

// method returns Method or its default.
func (m *Mail) method() string {
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
	if m.method() == admin.MailLog && m.Print == nil {
		return errorf(Invalid, "Mail.Print", "want a writer for login codes")
	}
	if m.method() != admin.MailSMTP {
		return nil
	}
	hasUser := m.User != ""
	host, port, err := net.SplitHostPort(m.Server)
	number, portErr := strconv.ParseUint(port, 10, 16)
	var problems []error
	for _, rule := range []struct {
		broken         bool
		field, message string
	}{
		{m.Server == "", "Mail.Server", "no mail server; want HOST:PORT"},
		{m.Server != "" && (errors.Join(err, portErr) != nil || host == "" || number == 0), "Mail.Server",
			"want host and port of the mail server; its certificate must contain the host"},
		{m.From.IsZero(), "Mail.From", "no sender; give the address from which login codes are sent"},
		{hasUser != (m.PasswordFile != ""), "Mail.User", "one is missing; give both"},
		{m.TLS == mail.Off && hasUser, "Mail.TLS", "off sends the password unprotected; use starttls or tls"},
	} {
		if rule.broken {
			problems = append(problems, errorf(Invalid, rule.field, "%s", rule.message))
		}
	}
	return errors.Join(problems...)
}

// client checks all fields and returns the configuration of the mail client.
func (m *Mail) client(c *Config) (mail.Config, error) {
	config := mail.Config{Addr: m.Server, TLS: cmp.Or(m.TLS, mail.StartTLS), User: m.User, From: m.From, Clock: c.Clock, Random: c.Random, Logger: c.Logger}
	if err := m.check(); err != nil || m.method() != admin.MailSMTP || m.PasswordFile == "" {
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

// MailMethod returns Mail.Method or its default.
func (c *Config) MailMethod() string { return c.Mail.method() }

// codeMailer sends login codes.
type codeMailer struct {
	sender actors.Mailer // nil if Mail.Method is MailOff
	smtp   *mail.Mailer  // nil if Mail.Method is not MailSMTP
	log    *slog.Logger
}

// openMailer opens the configured mailer. It does not connect to the mail server, so a node can start without it.
func openMailer(c *Config) (*codeMailer, error) {
	config, err := c.Mail.client(c)
	if err != nil {
		return nil, err
	}
	switch c.Mail.method() {
	case admin.MailOff:
		return &codeMailer{}, nil
	case admin.MailLog:
		return &codeMailer{sender: mail.NewLogMailer(c.Mail.Print)}, nil
	}
	mailer := mail.Open(config)
	return &codeMailer{mailer, mailer, c.Logger}, nil
}

// close sends the queued e-mails for up to shutdownMax. The rest is lost; users can request another code.
func (p *codeMailer) close(ctx context.Context) {
	if p.smtp == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownMax)
	defer cancel()
	if err := p.smtp.Close(ctx); err != nil {
		p.log.Warn(err.Error())
	}
}

// ReadSecret reads a secret from a file of one line. It rejects a file with too wide access (checkSecretMode).
func ReadSecret(path, credentials string) (account.Secret, error) {
	if err := checkRegular(path); err != nil {
		return account.Secret{}, err
	}
	file, err := os.Open(path)
	if err != nil {
		return account.Secret{}, fmt.Errorf("read secret: %w", err)
	}
	defer func() { _ = file.Close() }() // nothing was written
	info, err := file.Stat()
	if err != nil {
		return account.Secret{}, fmt.Errorf("read secret: %w", err)
	}
	if err := checkSecretMode(path, info, credentials, "secret"); err != nil {
		return account.Secret{}, err
	}
	bytes, err := io.ReadAll(io.LimitReader(file, secretBytesMax+1))
	if err != nil {
		return account.Secret{}, fmt.Errorf("read secret: %w", err)
	}
	text := strings.TrimSuffix(strings.TrimSuffix(string(bytes), "\n"), "\r")
	if err := checkSecret(text); err != nil {
		return account.Secret{}, fmt.Errorf("%s: %w", path, err)
	}
	return account.SecretOf(text), nil
}

// checkRegular returns an error if path is not a regular file. Opening a named pipe could block forever, and Reload
// could not read it again.
func checkRegular(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: no such file", path)
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: want a regular file, found a directory, pipe or device", path)
	}
	return nil
}

// isCredential reports whether a file is in the directory credentials. systemd protects it with access control lists,
// so the file modes there wrongly suggest that other users can read the files.
func isCredential(path, credentials string) bool {
	return credentials != "" && filepath.Dir(path) == filepath.Clean(credentials)
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
