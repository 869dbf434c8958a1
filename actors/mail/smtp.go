package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"strconv"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"
)

const detailBytesMax = 200

// failure describes a failed attempt. All fields may be logged: they contain no text of the server's replies, which may
// repeat the address, the code or the password.
type failure struct {
	stage   stage
	code    int    // SMTP status; 0 = none
	detail  string // text of a local error; empty if it may contain a secret from the server
	timeout bool
}

type stage string

const (
	stageConnect stage = "connect"
	stageSession stage = "session" // greeting, TLS and login
	stageSender  stage = "sender"  // only in Check
	stageEmail   stage = "email"
)

func (f *failure) permanent() bool { return f.stage == stageEmail && f.code >= 500 }

// isServerFailure reports whether other emails would fail too. Status 421 means that the server closes the connection.
func (f *failure) isServerFailure() bool {
	return f.stage != stageEmail || f.code == 0 || f.code == 421
}

func (f *failure) Error() string {
	text := "at " + string(f.stage)
	if f.code != 0 {
		text += fmt.Sprintf(": the server answers %d", f.code)
	}
	if f.timeout {
		text += ": no answer in time"
	}
	if f.detail != "" {
		text += ": " + f.detail
	}
	return text
}

// Check connects to the mail server, logs in, asks whether it accepts the sender, and disconnects without an email. The
// error names the failed step. It contains no text of the server's SMTP replies.
func Check(ctx context.Context, config Config) error {
	fail := config.withDefaults().attempt(ctx, stageSender, func(_ *gomail.Client, client *smtp.Client) error {
		return client.Mail("<" + config.From.String() + ">")
	})
	if fail != nil {
		return fail
	}
	return nil
}

// send sends one email on its own connection, within attemptTimeout.
func (c Config) send(ctx context.Context, message *gomail.Msg) *failure {
	return c.attempt(ctx, stageEmail, func(sender *gomail.Client, client *smtp.Client) error {
		if err := sender.SendWithSMTPClient(client, message); !message.IsDelivered() {
			return err
		}
		return nil // a later error does not matter
	})
}

// attempt connects, logs in and runs do, which is the step last. It limits the time of the whole dialog and closes the
// connection, which the library would leave open after a failed TLS handshake or login.
func (c Config) attempt(ctx context.Context, last stage, do func(*gomail.Client, *smtp.Client) error) *failure {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	step := stageConnect
	dial := func(dialCtx context.Context, network, addr string) (net.Conn, error) {
		conn, err := c.dial(dialCtx, network, addr)
		if err != nil {
			return nil, err
		}
		step = stageSession
		context.AfterFunc(ctx, func() { _ = conn.Close() }) // the library limits only each step
		if c.TLS != Implicit {
			return conn, nil
		}
		encrypted := tls.Client(conn, c.tls())
		return encrypted, encrypted.HandshakeContext(ctx)
	}
	sender, err := gomail.NewClient(c.host(), c.clientOptions(dial)...)
	if err != nil {
		return newFailure(ctx, step, err)
	}
	client, err := sender.DialToSMTPClientWithContext(ctx)
	if err == nil {
		step, err = last, do(sender, client)
		_ = client.Quit() // an error does not matter after the server's answer
	}
	if err != nil {
		return newFailure(ctx, step, err)
	}
	return nil
}

func (c Config) clientOptions(dial gomail.DialContextFunc) []gomail.Option {
	_, port, _ := net.SplitHostPort(c.Addr)
	number, _ := strconv.Atoi(port) // the library refuses 0
	options := []gomail.Option{
		gomail.WithPort(number), gomail.WithTimeout(attemptTimeout), gomail.WithHELO(c.domain()), gomail.WithDialContextFunc(dial),
		gomail.WithoutNoop(), gomail.WithoutRset(), gomail.WithoutSMTPUTF8(), gomail.WithTLSPolicy(gomail.NoTLS),
	}
	if c.TLS == StartTLS {
		options = append(options, gomail.WithTLSConfig(c.tls()), gomail.WithTLSPolicy(gomail.TLSMandatory))
	}
	if c.User != "" {
		options = append(options, gomail.WithUsername(c.User), gomail.WithPassword(c.Password.Reveal()), gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover))
	}
	return options
}

// newFailure returns the failure for an error.
func newFailure(ctx context.Context, step stage, err error) *failure {
	f := &failure{stage: step, timeout: ctx.Err() != nil && !errors.Is(ctx.Err(), context.Canceled)}
	var replyErr *textproto.Error
	var sendErr *gomail.SendError
	var protocolErr textproto.ProtocolError
	var netErr net.Error
	switch {
	case errors.As(err, &sendErr):
		f.code = sendErr.ErrorCode()
	case errors.As(err, &replyErr):
		f.code = replyErr.Code
	case errors.As(err, &protocolErr):
		f.detail = "the server does not speak SMTP"
	case step == stageConnect, step == stageSession:
		f.detail = err.Error()
		f.detail = f.detail[:min(len(f.detail), detailBytesMax)]
	}
	if errors.As(err, &netErr) && netErr.Timeout() {
		f.timeout = true
	}
	return f
}
