package mail

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/tasard/tasard/engine/account"
)

const testCode = "01234567"

// protection is one TLS mode against one kind of server.
type protection struct {
	name   string
	mode   TLS
	server *tls.Config // nil = without TLS
	inside bool        // TLS from the first byte
	sent   bool
	detail string // part of the log
}

func protections(t *testing.T) (all []protection, trusted *x509.CertPool) {
	good, wrong, expired := goodCertificate(t), newCertificate(t, "mail.evil.example", year(2200)), newCertificate(t, serverName, year(1999))
	foreign, old := newCertificate(t, serverName, year(2201)), good.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	return []protection{
		{name: "off", mode: Off, sent: true},
		{name: "starttls", mode: StartTLS, server: good, sent: true},
		{name: "starttls is the default", mode: "", server: good, sent: true},
		{name: "starttls, wrong name", mode: StartTLS, server: wrong, detail: "not " + serverName},
		{name: "starttls, expired", mode: StartTLS, server: expired, detail: "expired"},
		{name: "starttls, foreign authority", mode: StartTLS, server: foreign, detail: "x509"},
		{name: "starttls, old version", mode: StartTLS, server: old, detail: "protocol version"},
		{name: "starttls, not offered", mode: StartTLS, detail: "does not support STARTTLS"},
		{name: "default, not offered", mode: "", detail: "does not support STARTTLS"},
		{name: "tls", mode: Implicit, server: good, inside: true, sent: true},
		{name: "tls, wrong name", mode: Implicit, server: wrong, inside: true, detail: "not " + serverName},
		{name: "tls, expired", mode: Implicit, server: expired, inside: true, detail: "expired"},
		{name: "tls, foreign authority", mode: Implicit, server: foreign, inside: true, detail: "x509"},
		{name: "tls, server speaks none", mode: Implicit, detail: "tls:"},
		{name: "starttls, server speaks tls at once", mode: StartTLS, server: good, inside: true},
	}, roots(good, wrong, expired)
}

// TestS9_Protection checks that an email is sent exactly when the configured protection holds, and that otherwise no
// part of it leaves; the rows that send are the control.
func TestS9_Protection(t *testing.T) {
	all, trusted := protections(t)
	for _, tt := range all {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkProtection(t, tt, trusted) })
		})
	}
}

func checkProtection(t *testing.T, tt protection, trusted *x509.CertPool) {
	server, lines, logs := &smtpServer{tls: tt.server}, newPipes(), &bytes.Buffer{}
	if tt.inside {
		server.tls = nil
		server.serve(t, tls.NewListener(lines, tt.server))
	} else {
		server.serve(t, lines)
	}
	m := openMailer(t, lines.dial, logs, func(c *Config) {
		c.TLS, c.rootCAs = tt.mode, trusted
	})
	m.mustSend(t, "ana@example.do")
	settleAfter(time.Minute)
	if stats := m.Stats(); (stats.Sent == 1) != tt.sent || len(server.receivedMails()) != int(stats.Sent) || (stats.Waiting == 0) != tt.sent {
		t.Errorf("sent %d, taken %d, want sent %v; %s", stats.Sent, len(server.receivedMails()), tt.sent, logs)
	}
	if readable := strings.Contains(lines.written(), "ana@"); readable != (tt.mode == Off) {
		t.Errorf("the address went over the wire readable: %v", readable)
	}
	if !strings.Contains(logs.String(), tt.detail) {
		t.Errorf("the log does not say %q: %s", tt.detail, logs)
	}
}

// TestMail_Loopback sends over real sockets.
func TestMail_Loopback(t *testing.T) {
	good := goodCertificate(t)
	for _, mode := range []TLS{Off, StartTLS, Implicit} {
		t.Run(string(mode), func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			addr := listener.Addr().String()
			server := &smtpServer{arrived: make(chan receivedMail, 1)}
			switch mode {
			case StartTLS:
				server.tls = good
			case Implicit:
				listener = tls.NewListener(listener, good)
			}
			server.serve(t, listener)
			m := openMailer(t, nil, io.Discard, func(c *Config) {
				c.Addr, c.TLS, c.rootCAs = addr, mode, roots(good)
			})
			m.mustSend(t, "ana@example.do")
			select {
			case mail := <-server.arrived:
				if problems := mailProblems(mail.text, "ana@example.do", testCode); len(problems) > 0 {
					t.Error(problems)
				}
			case <-t.Context().Done():
				t.Fatal("no email arrived")
			}
			if err := m.Close(t.Context()); err != nil || m.Stats().Sent != 1 {
				t.Errorf("close: %v, sent %d", err, m.Stats().Sent)
			}
		})
	}
}

func TestMail_Login(t *testing.T) {
	trusted := goodCertificate(t)
	for _, tt := range []struct {
		name, password string
		mechanisms     []string
		sent           bool
		log            string
	}{
		{"plain", testPassword, []string{"PLAIN", "LOGIN"}, true, "email sent"},
		{"login", testPassword, []string{"LOGIN"}, true, "email sent"},
		{"wrong password", "not it", []string{"PLAIN"}, false, `at session: the server answers 535`},
		{"wrong password, login", "not it", []string{"LOGIN"}, false, `at session: the server answers 535`},
		{"no mechanism of ours", testPassword, []string{"GSSAPI"}, false, `at session`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &smtpServer{tls: trusted, mechanisms: tt.mechanisms}
				server.onLogin = func(user, password string) error {
					if user == testUser && password == testPassword {
						return nil
					}
					return refusal(535, "wrong password for "+user+": "+password)
				}
				b := newTestMailer(t, server, func(c *Config) {
					c.TLS, c.rootCAs = StartTLS, roots(trusted)
					c.User, c.Password = testUser, account.SecretOf(tt.password)
				})
				err := Check(t.Context(), b.config) // the same steps without an email
				if (err == nil) != tt.sent || len(b.server.receivedMails()) > 0 || err != nil && strings.Contains(err.Error(), tt.password) {
					t.Errorf("the check says %v", err)
				}
				if strings.HasPrefix(tt.name, "wrong") && err.Error() != "at session: the server answers 535" {
					t.Errorf("the check repeats what the server says: %v", err)
				}
				b.mustSend(t, "ana@example.do")
				settleAfter(time.Minute)
				stats := b.Stats()
				if (stats.Sent == 1) != tt.sent || (stats.Waiting == 1) == tt.sent {
					t.Errorf("got %+v, want sent %v", stats, tt.sent)
				}
				if !strings.Contains(b.logs.String(), tt.log) {
					t.Errorf("the log does not say %s: %s", tt.log, b.logs)
				}
			})
		})
	}
}

// TestCheck_Unreachable checks the step that the error names.
func TestCheck_Unreachable(t *testing.T) {
	lines := newPipes()
	lines.down.Store(true)
	config := Config{Addr: "127.0.0.1:1", TLS: Off, From: email(t, "no-reply@tasard.example"), Clock: clock, Random: seeded(1), dial: lines.dial}
	if err := Check(t.Context(), config); err == nil || !strings.HasPrefix(err.Error(), "at connect") {
		t.Errorf("got %v", err)
	}
}

// TestMail_LoginNeedsTLS checks that no password is sent without TLS, even with unchecked settings and a server on
// the same machine, where the library would allow it.
func TestMail_LoginNeedsTLS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said, lines := false, newPipes()
		onLogin := func(_, _ string) error { said = true; return nil }
		(&smtpServer{mechanisms: []string{"PLAIN"}, onLogin: onLogin}).serve(t, lines)
		config := Config{
			Addr: "localhost:25", TLS: Off, From: email(t, "no-reply@tasard.example"), User: testUser, Password: account.SecretOf(testPassword),
			dial: lines.dial,
		}
		if failed := config.send(t.Context(), gomail.NewMsg()); failed == nil || failed.stage != stageSession || said {
			t.Errorf("got %+v, the password was said: %v", failed, said)
		}
	})
}

// TestMail_Answers checks the outcome of an email for each answer of the server.
func TestMail_Answers(t *testing.T) {
	for _, tt := range []struct {
		name  string
		rcpts []int // answers to RCPT one after the other; then 250
		datas []int // the same to the text
		want  Stats
	}{
		{"taken", nil, nil, Stats{Sent: 1}},
		{"4xx then taken", []int{450}, nil, Stats{Sent: 1, Failures: 1}},
		{"421 is of the server, then taken", []int{421}, nil, Stats{Sent: 1, Failures: 1}},
		{"452 to the text, then taken", nil, []int{452, 451}, Stats{Sent: 1, Failures: 2}},
		{"5xx", []int{500}, nil, Stats{Refused: 1, Failures: 1}},
		{"5xx to the text", nil, []int{554}, Stats{Refused: 1, Failures: 1}},
		{"4xx then 5xx", []int{451, 553}, nil, Stats{Refused: 1, Failures: 2}},
		{"4xx three times, then taken", []int{450, 450, 450}, nil, Stats{Sent: 1, Failures: 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rcpts, datas := tt.rcpts, tt.datas
				server := &smtpServer{
					onRcpt: func(string) error { return answer(&rcpts) },
					onData: func([]byte, net.Conn) error { return answer(&datas) },
				}
				b := newTestMailer(t, server, nil)
				b.mustSend(t, "ana@example.do")
				settleAfter(5 * time.Minute)
				got := b.Stats()
				got.LastSent = time.Time{}
				if quits := strings.Count(b.pipes.written(), "QUIT\r\n"); quits != b.pipes.dialled() {
					t.Errorf("%d connections, %d farewells", b.pipes.dialled(), quits)
				}
				if got != tt.want || len(server.receivedMails()) != int(tt.want.Sent) || b.pipes.dialled() != int(got.Failures+got.Sent) {
					t.Errorf("got %+v with %d connections, want %+v", got, b.pipes.dialled(), tt.want)
				}
			})
		})
	}
}

// answer takes the next code off the list.
func answer(codes *[]int) error {
	if len(*codes) == 0 {
		return nil
	}
	code := (*codes)[0]
	*codes = (*codes)[1:]
	return refusal(code, "so it is")
}

// TestMail_Cut checks that a connection closed in the middle of the text delivers nothing, and that the next attempt
// has the same Message-ID.
func TestMail_Cut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen [][]byte
		server := &smtpServer{onData: func(text []byte, conn net.Conn) error {
			if seen = append(seen, text); len(seen) == 1 {
				_ = conn.Close() // after the text, before the answer
			}
			return nil
		}}
		cut := 2 // the first connections die after so many bytes, in the text
		lines := newPipes()
		server.serve(t, lines)
		m := openMailer(t, func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := lines.dial(ctx, network, addr)
			if cut > 0 && err == nil {
				cut--
				return &failingConn{Conn: conn, left: 700}, nil
			}
			return conn, err
		}, io.Discard, nil)
		m.mustSend(t, "ana@example.do")
		settleAfter(5 * time.Minute)
		stats := m.Stats()
		if stats.Sent != 1 || stats.Failures != 3 || len(seen) != 2 {
			t.Fatalf("got %+v, text seen %d times; want three cuts, the last after the text, then sent", stats, len(seen))
		}
		if string(seen[0]) != string(seen[1]) {
			t.Error("the second try differs from the first")
		}
		for _, text := range seen {
			if problems := mailProblems(text, "ana@example.do", testCode); len(problems) > 0 {
				t.Error(problems)
			}
		}
	})
}

// failingConn is a connection that fails after a number of bytes written.
type failingConn struct {
	net.Conn
	left int
}

func (m *failingConn) Write(text []byte) (int, error) {
	if len(text) <= m.left {
		m.left -= len(text)
		return m.Conn.Write(text)
	}
	n, _ := m.Conn.Write(text[:m.left])
	m.left = 0
	_ = m.Conn.Close()
	return n, io.ErrClosedPipe
}

// TestMail_Silence checks that a server which stops answering, at any step, blocks the worker no longer than the
// timeouts.
func TestMail_Silence(t *testing.T) {
	greeting := "220 " + serverName + " ESMTP\r\n"
	hello := greeting + "250 " + serverName + "\r\n"
	for _, tt := range []struct {
		name, says string
		stage      string
		within     time.Duration
	}{
		{"accepts and says nothing", "", "session", attemptTimeout},
		{"greets and hangs", greeting, "session", attemptTimeout},
		{"hangs at MAIL", hello, "email", attemptTimeout},
		{"hangs at RCPT", hello + "250 ok\r\n", "email", attemptTimeout},
		{"hangs at DATA", hello + "250 ok\r\n250 ok\r\n", "email", attemptTimeout},
		{"hangs in the text", hello + "250 ok\r\n250 ok\r\n354 go on\r\n", "email", attemptTimeout},
		{"speaks another tongue", "HTTP/1.1 400 Bad Request\r\n", "session", time.Second},
		{"is cut at once", "221", "session", attemptTimeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newTestMailer(t, script(tt.says), nil)
				m.mustSend(t, "ana@example.do")
				settleAfter(tt.within + time.Second)
				if stats := m.Stats(); stats.Failures != 1 {
					t.Errorf("got %+v, want the try over within %s", stats, tt.within)
				}
				if !strings.Contains(m.logs.String(), "at "+tt.stage) {
					t.Errorf("want stage %s: %s", tt.stage, m.logs)
				}
			})
		})
	}
}

// script is a server that sends a text on each connection and then only reads.
type script string

func (s script) serve(t testing.TB, listener net.Listener) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.WriteString(conn, string(s)) }()
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-ended
	})
}

// TestMail_Drip checks that a server is disconnected which sends a little now and then, so that no single read is slow.
func TestMail_Drip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines, ended := newPipes(), make(chan struct{})
		go func() {
			defer close(ended)
			for conn, err := lines.Accept(); err == nil; {
				<-time.NewTimer(time.Second).C
				_, err = io.WriteString(conn, "220-wait\r\n")
			}
		}()
		m := openMailer(t, lines.dial, io.Discard, nil)
		m.mustSend(t, "ana@example.do")
		<-ended
		synctest.Wait()
		if stats := m.Stats(); stats.Failures != 1 {
			t.Errorf("got %+v, want it cut off", stats)
		}
	})
}

// pipes is a listener in memory; dial returns the other ends, which record what is written to them.
type pipes struct {
	conns chan net.Conn
	ended chan struct{}
	end   func()
	down  atomic.Bool // connections are refused
	began time.Time

	mu        sync.Mutex
	wire      bytes.Buffer    // everything that the client wrote
	dials     []time.Duration // times of all attempts to connect
	connected int
}

func newPipes() *pipes {
	ended := make(chan struct{})
	return &pipes{conns: make(chan net.Conn), ended: ended, end: sync.OnceFunc(func() { close(ended) }), began: clock()}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.end()
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	p.mu.Lock()
	p.dials = append(p.dials, clock().Sub(p.began))
	if p.down.Load() {
		p.mu.Unlock()
		return nil, refused
	}
	p.connected++
	p.mu.Unlock()
	ours, theirs := newMemoryConns(func(text []byte) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.wire.Write(text)
	})
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.ended:
		return nil, refused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) written() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wire.String()
}

func (p *pipes) dialled() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.connected
}

func (p *pipes) tried() []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.dials)
}

// pipeWritesMax is how many writes are buffered.
const pipeWritesMax = 16

// memoryConn is one end of a connection in memory. Unlike net.Pipe it buffers some writes, as a socket does: with TLS
// both sides may write at once. Its deadlines have no effect: nothing may depend on them.
type memoryConn struct {
	net.Conn
	in, out chan []byte
	unread  []byte
	ended   <-chan struct{} // of both ends
	end     func()
	record  func(text []byte)
}

// newMemoryConns returns both ends.
func newMemoryConns(record func([]byte)) (client, server *memoryConn) {
	a, b := net.Pipe()
	there, back := make(chan []byte, pipeWritesMax), make(chan []byte, pipeWritesMax)
	ctx, end := context.WithCancel(context.Background())
	client = &memoryConn{Conn: a, in: back, out: there, ended: ctx.Done(), end: end, record: record}
	return client, &memoryConn{Conn: b, in: there, out: back, ended: ctx.Done(), end: end, record: func([]byte) {}}
}

func (c *memoryConn) Read(into []byte) (int, error) {
	if len(c.unread) == 0 {
		select {
		case c.unread = <-c.in:
		case <-c.ended:
			select {
			case c.unread = <-c.in:
			default:
				return 0, io.EOF
			}
		}
	}
	n := copy(into, c.unread)
	c.unread = c.unread[n:]
	return n, nil
}

func (c *memoryConn) Write(text []byte) (int, error) {
	c.record(text)
	select {
	case <-c.ended:
		return 0, io.ErrClosedPipe
	default:
	}
	select {
	case c.out <- bytes.Clone(text):
		return len(text), nil
	case <-c.ended:
		return 0, io.ErrClosedPipe
	}
}

func (c *memoryConn) Close() error {
	c.end()
	return c.Conn.Close()
}

// TestMail_Greylist checks that an email is delivered before its code expires if the server accepts it only five
// minutes after the first attempt, and that it delays no other email.
func TestMail_Greylist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := map[string]time.Time{}
		server := &smtpServer{onRcpt: func(to string) error {
			if _, seen := first[to]; !seen {
				first[to] = clock()
			}
			if strings.HasPrefix(to, "grey") && clock().Sub(first[to]) < 5*time.Minute {
				return refusal(450, "greylisted, come back later")
			}
			return nil
		}}
		b := newTestMailer(t, server, nil)
		b.mustSend(t, "grey@example.do")
		b.mustSend(t, "ana@example.do")
		settleAfter(time.Second)
		if got := server.receivedMails(); len(got) != 1 || got[0].to[0] != "ana@example.do" {
			t.Errorf("got %d emails, want ana's at once", len(got))
		}
		settleAfter(10 * time.Minute)
		stats := b.Stats()
		if stats.Sent != 2 {
			t.Errorf("got %+v, want both sent", stats)
		}
		mails := server.receivedMails()
		if last := mails[len(mails)-1]; last.to[0] != "grey@example.do" || !strings.Contains(string(last.text), "Message-ID: <") {
			t.Errorf("got %q last", last.to)
		}
	})
}
