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

// server connects to the mail server.
type server struct {
	config   Config
	password atomic.Pointer[account.Secret] // for the next login
	sender   *gomail.Client                 // sends an email on our connections; never connects itself
}

func newServer(config Config) (*server, error) {
	sender, err := gomail.NewClient(config.host(), gomail.WithoutNoop(), gomail.WithoutRset(), gomail.WithTimeout(config.emailTimeout))
	if err != nil {
		return nil, fmt.Errorf("prepare the mail client: %w", err)
	}
	s := &server{config: config, sender: sender}
	s.password.Store(&config.Password)
	return s, nil
}

// session is an authenticated connection to the server.
type session struct {
	*server
	conn   net.Conn // unencrypted; closing it ends any blocked call
	client *smtp.Client
	sent   int // number of emails
}

// failure is why an email was not sent, as far as it may be logged.
type failure struct {
	stage   stage
	code    int    // of SMTP; 0 = none
	detail  string // for the log; only from before the server could repeat a secret
	timeout bool
}

// stage is how far an attempt had come.
type stage string

const (
	stageConnect  stage = "connect"
	stageTLS      stage = "tls"
	stageGreeting stage = "greeting"
	stageLogin    stage = "login"
	stageEmail    stage = "email"
)

const detailBytesMax = 200

// permanent reports whether retrying this email is useless.
func (f *failure) permanent() bool { return f.stage == stageEmail && f.code >= 500 }

// isServerFailure reports whether the failure concerns all emails and counts for the breaker. Code 421 means that the
// server is closing the connection.
func (f *failure) isServerFailure() bool {
	return f.stage != stageEmail || f.code == 0 || f.code == 421
}

var (
	errNoStartTLS  = errors.New("the server offers no STARTTLS; use tls if it expects TLS from the first byte")
	errNoLogin     = errors.New("the server offers neither PLAIN nor LOGIN")
	errTooMuchData = errors.New("the server sent too much data")
)

// connect connects, makes the connection secure and authenticates, within connectTimeout. After a failure nothing
// stays open.
func (s *server) connect(ctx context.Context) (*session, *failure) {
	ctx, cancel := context.WithTimeout(ctx, s.config.connectTimeout)
	defer cancel()
	bare, err := s.config.dial(ctx, "tcp", s.config.Addr)
	if err != nil {
		return nil, newFailure(ctx, stageConnect, err)
	}
	opened := &session{server: s, conn: &boundedConn{Conn: bare, left: sessionReadBytesMax}}
	release := closeOnDone(ctx, opened.conn)
	failed := opened.handshake(ctx)
	release()
	if failed == nil && ctx.Err() != nil {
		failed = newFailure(ctx, stageLogin, ctx.Err())
	}
	if failed != nil {
		opened.abort()
		return nil, failed
	}
	return opened, nil
}

func (s *session) handshake(ctx context.Context) *failure {
	conn, config := s.conn, s.config
	if config.TLS == Implicit {
		protected := tls.Client(conn, config.tls())
		if err := protected.HandshakeContext(ctx); err != nil {
			return newFailure(ctx, stageTLS, err)
		}
		conn = protected
	}
	client, err := smtp.NewClient(conn, config.host())
	if err != nil {
		return newFailure(ctx, stageGreeting, err)
	}
	s.client = client
	client.SkipSMTPUTF8(true) // addresses are ASCII, and not every server supports SMTPUTF8
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

// login authenticates if there is a user, by PLAIN or else LOGIN. It rejects a connection without TLS, also to
// localhost, where the library would accept it.
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

// send sends one email within emailTimeout. After a failure the session must be ended with finish.
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

// finish ends a session after a failure, or after nil. If the server did not answer, the text of an email may be
// incomplete and QUIT would complete it, so that the connection is closed without QUIT.
func (s *session) finish(ctx context.Context, failed *failure) {
	if failed != nil && failed.code == 0 {
		s.abort()
		return
	}
	s.quit(ctx)
}

// quit sends QUIT and closes the connection.
func (s *session) quit(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, quitTimeout)
	defer cancel()
	release := closeOnDone(ctx, s.conn)
	_ = s.client.Quit() // the server has accepted the emails already
	release()
	_ = s.conn.Close()
}

// abort closes the connection without QUIT.
func (s *session) abort() { _ = s.conn.Close() }

// closeOnDone closes the connection when ctx ends, which bounds a whole dialog: the library's deadlines start again
// with each step. release undoes that and waits until it has no effect any more.
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

// newFailure keeps what may be logged of an error. The server's text is dropped, because it may repeat the address,
// code or password.
func newFailure(ctx context.Context, where stage, err error) *failure {
	f := &failure{stage: where, timeout: errors.Is(ctx.Err(), context.DeadlineExceeded)}
	var said *textproto.Error
	var sending *gomail.SendError
	var garbled textproto.ProtocolError
	var timing net.Error
	switch {
	case errors.As(err, &sending):
		f.code = sending.ErrorCode()
	case errors.As(err, &said):
		f.code = said.Code
	case errors.As(err, &garbled):
		f.detail = "the server does not speak SMTP"
	case where == stageConnect, where == stageTLS, errors.Is(err, errNoLogin):
		f.detail = err.Error()
		f.detail = f.detail[:min(len(f.detail), detailBytesMax)]
	}
	if errors.As(err, &timing) && timing.Timeout() {
		f.timeout = true
	}
	return f
}

// boundedConn limits the bytes read: the library would keep a opened of any length in memory.
type boundedConn struct {
	net.Conn
	left int
}

// Read implements io.Reader.
func (c *boundedConn) Read(into []byte) (int, error) {
	if c.left <= 0 {
		return 0, errTooMuchData
	}
	n, err := c.Conn.Read(into[:min(len(into), c.left)])
	c.left -= n
	return n, err
}
