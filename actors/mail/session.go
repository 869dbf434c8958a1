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

// server is the way to the mail server.
type server struct {
	config   Config
	password atomic.Pointer[account.Secret] // of the next login
	sender   *gomail.Client                 // never connects: it puts a letter through a connection of ours
}

func newServer(config Config) (*server, error) {
	sender, err := gomail.NewClient(config.host(), gomail.WithoutNoop(), gomail.WithoutRset(), gomail.WithTimeout(config.Timeouts.Email))
	if err != nil {
		return nil, fmt.Errorf("prepare the mail client: %w", err)
	}
	s := &server{config: config, sender: sender}
	s.password.Store(&config.Password)
	return s, nil
}

// session is one connection to the server, ready for letters.
type session struct {
	*server
	conn   net.Conn // the bare one: closing it ends whatever waits
	client *smtp.Client
	sent   int // sent over it
}

// A failure is why a letter was not sent: where it happened and what may be told of it.
type failure struct {
	stage   stage
	code    int    // of SMTP; 0 = the server gave none
	detail  string // for the log; only from before the first word of the server that could repeat a secret
	timeout bool
}

// stage is how far a try had come.
type stage string

const (
	stageConnect  stage = "connect"
	stageTLS      stage = "tls"
	stageGreeting stage = "greeting"
	stageLogin    stage = "login"
	stageEmail    stage = "letter"
)

const detailBytesMax = 200

// permanent failures concern this letter and will not pass.
func (f *failure) permanent() bool { return f.stage == stageEmail && f.code >= 500 }

// isServerFailure failures concern every letter: the breaker counts them. 421 is the server's way to say that it goes away.
func (f *failure) isServerFailure() bool {
	return f.stage != stageEmail || f.code == 0 || f.code == 421
}

var (
	errNoStartTLS  = errors.New("the server offers no STARTTLS; use tls if it expects TLS from the first byte")
	errNoLogin     = errors.New("the server offers neither PLAIN nor LOGIN")
	errTooMuchData = errors.New("the server said too much")
)

// connect connects, protects and logs in, within Timeouts.Connect. After a failure nothing is left open.
func (s *server) connect(ctx context.Context) (*session, *failure) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeouts.Connect)
	defer cancel()
	bare, err := s.config.Dial(ctx, "tcp", s.config.Addr)
	if err != nil {
		return nil, newFailure(ctx, stageConnect, err)
	}
	line := &session{server: s, conn: &boundedConn{Conn: bare, left: sessionReadBytesMax}}
	release := closeOnDone(ctx, line.conn)
	failed := line.handshake(ctx)
	release()
	if failed == nil && ctx.Err() != nil {
		failed = newFailure(ctx, stageLogin, ctx.Err())
	}
	if failed != nil {
		line.abort()
		return nil, failed
	}
	return line, nil
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
	client.SkipSMTPUTF8(true) // addresses are ASCII, and not every server passes such letters on
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

// login logs in where there is a user, by PLAIN or, where that is not offered, LOGIN. It refuses a connection without TLS, also to
// localhost, where the library would not.
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

// send sends one letter within Timeouts.Email. After a failure the session must be dropped.
func (s *session) send(ctx context.Context, message *gomail.Msg) *failure {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeouts.Email)
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

// finish is the end of a session after a failure, or nil. Without an answer of the server the text of the letter may be half said,
// and QUIT would end it properly: the server would keep half a letter. Then the connection is closed without a word.
func (s *session) finish(ctx context.Context, failed *failure) {
	if failed != nil && failed.code == 0 {
		s.abort()
		return
	}
	s.quit(ctx)
}

// quit takes leave and closes.
func (s *session) quit(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, quitTimeout)
	defer cancel()
	release := closeOnDone(ctx, s.conn)
	_ = s.client.Quit() // the letters are with the server, whatever it answers
	release()
	_ = s.conn.Close()
}

// abort closes without a word.
func (s *session) abort() { _ = s.conn.Close() }

// closeOnDone closes the connection when ctx ends, which is what bounds a dialog: deadlines of the library begin anew with
// each step. release takes that back and waits until nothing of it runs any more.
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

// newFailure keeps of an error what a log may hold. The text of the server is dropped: it may repeat address, code or password.
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

// boundedConn reads so many bytes and no more: the library would keep a line of any length in memory.
type boundedConn struct {
	net.Conn
	left int
}

// Read reads what is left of the bound.
func (c *boundedConn) Read(into []byte) (int, error) {
	if c.left <= 0 {
		return 0, errTooMuchData
	}
	n, err := c.Conn.Read(into[:min(len(into), c.left)])
	c.left -= n
	return n, err
}
