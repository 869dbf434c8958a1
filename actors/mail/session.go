package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"slices"
	"strings"
	"sync/atomic"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"github.com/tasard/tasard/engine/account"
)

// dialer opens sessions with the mail server.
type dialer struct {
	config   Config
	password atomic.Pointer[account.Secret]
	sender   *gomail.Client // sends emails on connections of the dialer; opens no connections itself
}

func newDialer(config Config) (*dialer, error) {
	sender, err := gomail.NewClient(config.host(), gomail.WithoutNoop(), gomail.WithoutRset(), gomail.WithTimeout(config.emailTimeout))
	if err != nil {
		return nil, fmt.Errorf("prepare the mail client: %w", err)
	}
	s := &dialer{config: config, sender: sender}
	s.password.Store(&config.Password)
	return s, nil
}

// session is a connection to the server, after the login.
type session struct {
	*dialer
	conn   net.Conn // the TCP connection, without TLS; closing it unblocks any call on client
	client *smtp.Client
	sent   int // number of emails sent
}

// failure describes why an attempt failed. It contains no secrets, so all fields may be logged.
type failure struct {
	stage   stage
	code    int    // SMTP status; 0 = none
	detail  string // text of the error; empty if the server may have included a secret in the text
	timeout bool
	// ofSender means that the server rejected the sender of the email.
	ofSender bool
}

type stage string

const (
	stageConnect  stage = "connect"
	stageTLS      stage = "tls"
	stageGreeting stage = "greeting"
	stageLogin    stage = "login"
	stageSender   stage = "sender" // only in Check
	stageEmail    stage = "email"
)

const detailBytesMax = 200

func (f *failure) permanent() bool { return f.stage == stageEmail && f.code >= 500 }

// isServerFailure reports whether other emails would fail too, so that the circuit breaker counts the failure. Status
// 421 means that the server is closing the connection.
func (f *failure) isServerFailure() bool {
	return f.stage != stageEmail || f.code == 0 || f.code == 421
}

var (
	errNoStartTLS  = errors.New("the server offers no STARTTLS; use tls if it expects TLS from the first byte")
	errNoLogin     = errors.New("the server offers neither PLAIN nor LOGIN")
	errTooMuchData = errors.New("the server sent too much data")
)

// connect opens a session within connectTimeout: it connects, starts TLS and logs in. After a failure it closes the
// connection.
func (s *dialer) connect(ctx context.Context) (*session, *failure) {
	ctx, cancel := context.WithTimeout(ctx, s.config.connectTimeout)
	defer cancel()
	tcpConn, err := s.config.dial(ctx, "tcp", s.config.Addr)
	if err != nil {
		return nil, newFailure(ctx, stageConnect, err)
	}
	sess := &session{dialer: s, conn: &boundedConn{Conn: tcpConn, bytesLeft: sessionReadBytesMax}}
	release := closeOnDone(ctx, sess.conn)
	fail := sess.handshake(ctx)
	release()
	if fail == nil && ctx.Err() != nil {
		fail = newFailure(ctx, stageLogin, ctx.Err())
	}
	if fail != nil {
		sess.abort()
		return nil, fail
	}
	return sess, nil
}

func (s *session) handshake(ctx context.Context) *failure {
	conn, config := s.conn, s.config
	if config.TLS == Implicit {
		tlsConn := tls.Client(conn, config.tls())
		if err := tlsConn.HandshakeContext(ctx); err != nil {
			return newFailure(ctx, stageTLS, err)
		}
		conn = tlsConn
	}
	client, err := smtp.NewClient(conn, config.host())
	if err != nil {
		return newFailure(ctx, stageGreeting, err)
	}
	s.client = client
	client.SkipSMTPUTF8(true) // not needed, because all addresses are ASCII
	if err := client.Hello(config.domain()); err != nil {
		return newFailure(ctx, stageGreeting, err)
	}
	if config.TLS == StartTLS {
		if offered, _ := client.Extension("STARTTLS"); !offered {
			return newFailure(ctx, stageTLS, errNoStartTLS)
		}
		if err := client.StartTLS(config.tls()); err != nil {
			return newFailure(ctx, stageTLS, err)
		}
	}
	if err := s.login(); err != nil {
		return newFailure(ctx, stageLogin, err)
	}
	return nil
}

// login authenticates with PLAIN or LOGIN, if Config.User is set. Without TLS it returns an error and does not send the
// password. The library go-mail has no such rule for a server on localhost: it would send the password.
func (s *session) login() error {
	if s.config.User == "" {
		return nil
	}
	if _, err := s.client.GetTLSConnectionState(); err != nil {
		return err
	}
	user, password, host := s.config.User, s.password.Load().Reveal(), s.config.host()
	_, offered := s.client.Extension("AUTH")
	switch mechanisms := strings.Fields(offered); {
	case slices.Contains(mechanisms, "PLAIN"):
		return s.client.Auth(smtp.PlainAuth("", user, password, host, false))
	case slices.Contains(mechanisms, "LOGIN"):
		return s.client.Auth(smtp.LoginAuth(user, password, host, false))
	}
	return errNoLogin
}

// send sends one email within emailTimeout. After a failure the caller must call finish with this failure.
func (s *session) send(ctx context.Context, message *gomail.Msg) *failure {
	ctx, cancel := context.WithTimeout(ctx, s.config.emailTimeout)
	defer cancel()
	defer closeOnDone(ctx, s.conn)()
	err := s.sender.SendWithSMTPClient(s.client, message)
	if message.IsDelivered() {
		s.sent++
		return nil
	}
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return newFailure(ctx, stageEmail, err)
}

// finish ends a session. fail is the failure that ended it, or nil. If the server did not reply, perhaps only a part of
// an email was written. QUIT would then end the DATA section, and the server would accept a truncated email. Therefore
// finish sends QUIT only if the server replied.
func (s *session) finish(ctx context.Context, fail *failure) {
	if fail != nil && fail.code == 0 {
		s.abort()
		return
	}
	s.quit(ctx)
}

func (s *session) quit(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, quitTimeout)
	defer cancel()
	release := closeOnDone(ctx, s.conn)
	_ = s.client.Quit() // errors are irrelevant: the server has accepted the emails
	release()
	_ = s.conn.Close()
}

func (s *session) abort() { _ = s.conn.Close() }

// closeOnDone closes the connection when ctx ends. So ctx limits the time of several calls together. The library
// go-mail only limits the time of each step. After release returns, closeOnDone no longer closes the connection.
func closeOnDone(ctx context.Context, conn net.Conn) (release func()) {
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		_ = conn.Close()
	})
	return func() {
		if !stop() {
			<-closed
		}
	}
}

// newFailure returns the failure for an error. It omits the text of the server's reply, which may contain the address,
// the code or the password.
func newFailure(ctx context.Context, step stage, err error) *failure {
	f := &failure{stage: step, timeout: errors.Is(ctx.Err(), context.DeadlineExceeded)}
	var replyErr *textproto.Error
	var sendErr *gomail.SendError
	var protocolErr textproto.ProtocolError
	var netErr net.Error
	switch {
	case errors.As(err, &sendErr):
		f.code, f.ofSender = sendErr.ErrorCode(), sendErr.Reason == gomail.ErrSMTPMailFrom && sendErr.ErrorCode() != 0
	case errors.As(err, &replyErr):
		f.code = replyErr.Code
	case errors.As(err, &protocolErr):
		f.detail = "the server does not speak SMTP"
	case step == stageConnect, step == stageTLS, errors.Is(err, errNoLogin):
		f.detail = err.Error()
		f.detail = f.detail[:min(len(f.detail), detailBytesMax)]
	}
	if errors.As(err, &netErr) && netErr.Timeout() {
		f.timeout = true
	}
	return f
}

// boundedConn limits the number of bytes that can be read, because the library go-mail buffers a line of any length.
type boundedConn struct {
	net.Conn
	bytesLeft int
}

// Read implements io.Reader.
func (c *boundedConn) Read(p []byte) (int, error) {
	if c.bytesLeft <= 0 {
		return 0, errTooMuchData
	}
	n, err := c.Conn.Read(p[:min(len(p), c.bytesLeft)])
	c.bytesLeft -= n
	return n, err
}
