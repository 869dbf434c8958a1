//go:build !nocluster

package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	routePingInterval  = 3 * time.Second // the server closes a connection after two pings without a reply
	handshakeSeconds   = 5
	attemptsPerReport  = 600 // of these failed attempts to connect to a node, one a second, the first is logged
	clientConnsMax     = 64  // with those that inProcessOnly will reject
	listenTimeout      = 15 * time.Second
	listenPollInterval = 100 * time.Millisecond
	stopTimeout        = 30 * time.Second
	failedStopTimeout  = time.Second // short, because a server that cannot read its files may never stop
	jetStreamMemory    = 64 << 20
	jetStreamBytesMax  = 1 << 40 // no real limit; for 0 the server would compute a limit from the size of the disk
)

// embeddedServer is the NATS server in this process and the connection to it.
type embeddedServer struct {
	nats    *server.Server
	conn    *nats.Conn
	js      jetstream.JetStream
	gate    *gate // accepts the connections of other nodes
	running sync.WaitGroup

	certificate atomic.Pointer[x509.Certificate] // certificate of this node; nil without TLS
}

// inProcessOnly rejects all clients except those in this process. It is necessary because the server always listens on
// a port for clients.
type inProcessOnly struct{ server *embeddedServer }

// systemUser is the user name of a client in this process that uses the server's system account.
const systemUser = "system"

// Check implements server.Authentication.
func (a inProcessOnly) Check(c server.ClientAuthentication) bool {
	from := c.RemoteAddress()
	if from == nil || from.Network() != "pipe" {
		return false
	}
	if c.GetOpts().Username == systemUser {
		c.RegisterUser(&server.User{Username: systemUser, Account: a.server.nats.SystemAccount()})
	}
	return true
}

// serverLogger forwards the log of the NATS server to the node's logger. When the server reports a fatal error
// (Fatalf), the process does not exit. Instead, startServer returns an error.
type serverLogger struct {
	gate  *gate
	fatal chan string // gets the message of the first Fatalf
}

// Noticef implements server.Logger.
func (l serverLogger) Noticef(format string, v ...any) { l.write(slog.LevelDebug, format, v) }

// Warnf implements server.Logger.
func (l serverLogger) Warnf(format string, v ...any) { l.write(slog.LevelWarn, format, v) }

// Errorf implements server.Logger.
func (l serverLogger) Errorf(format string, v ...any) { l.write(slog.LevelWarn, format, v) }

// Debugf implements server.Logger.
func (l serverLogger) Debugf(string, ...any) {}

// Tracef implements server.Logger.
func (l serverLogger) Tracef(string, ...any) {}

// Fatalf implements server.Logger.
func (l serverLogger) Fatalf(format string, v ...any) {
	l.write(slog.LevelError, format, v)
	select {
	case l.fatal <- fmt.Sprintf(format, v...):
	default:
	}
}

func (l serverLogger) write(level slog.Level, format string, v []any) {
	message := fmt.Sprintf(format, v...)
	if address, rest, ok := strings.Cut(message, " - "); ok {
		message = l.gate.remoteAddress(address) + " - " + rest
	}
	l.gate.log.writeAs(message, level, "NATS server", "message", message)
}

// startServer starts the embedded server and connects to it. It does not wait for other nodes.
func startServer(c *Config) (*embeddedServer, error) {
	g, err := listen(c)
	if err != nil {
		return nil, fmt.Errorf("start the node's server: %w", err)
	}
	e := &embeddedServer{gate: g}
	tlsConfig, err := c.TLSConfig()
	if err == nil {
		shortenElections()
		e.nats, err = server.NewServer(e.options(c, tlsConfig))
	}
	if err != nil {
		g.close()
		return nil, fmt.Errorf("start the node's server: %w", err)
	}
	natsLog := serverLogger{g, make(chan string, 1)}
	e.nats.SetLoggerV2(natsLog, false, false, false)
	if c.TLS != (TLS{}) {
		e.certificate.Store(tlsConfig.Certificates[0].Leaf)
	}
	e.running.Go(e.nats.Start)
	if err := e.awaitListening(c, natsLog.fatal); err != nil {
		return nil, errors.Join(fmt.Errorf("start the node's server: %w", err), e.stop(failedStopTimeout))
	}
	g.start(e.nats.ClusterAddr())
	if err := e.connect(c); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the node's server: %w", err), e.stop(stopTimeout))
	}
	return e, nil
}

func (e *embeddedServer) awaitListening(c *Config, fatal <-chan string) error {
	for range listenTimeout / listenPollInterval {
		if e.nats.ReadyForConnections(listenPollInterval) {
			return nil
		}
		select {
		case message := <-fatal:
			return fmt.Errorf("%s: %s", message, hintMoveStream(c))
		default:
		}
	}
	return fmt.Errorf("not listening on %s after %s: %s", c.Listen, listenTimeout, hintMoveStream(c))
}

// hintMoveStream says what an operator should do if the server's files on one node are damaged.
func hintMoveStream(c *Config) string {
	return fmt.Sprintf("if its files are damaged, and the status of the other nodes shows that they lack no records, move %s away and "+
		"start again: this node copies its part of the stream from them. Never do so at two nodes at once", filepath.Join(c.Dir, streamDirName))
}

func (e *embeddedServer) connect(c *Config) (err error) {
	e.conn, err = nats.Connect("", nats.InProcessServer(e.nats), nats.Name(c.Name), nats.MaxReconnects(-1),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			c.Logger.Debug("cluster connection", "cause", err.Error())
		}))
	if err == nil {
		e.js, err = jetstream.New(e.conn)
	}
	return err
}

// stop transfers the leadership of the stream and stops the server. If the server still runs after the timeout, stop
// returns an error. No committed message is lost then, because all of them are already on disk.
func (e *embeddedServer) stop(timeout time.Duration) error {
	if e.conn != nil {
		e.conn.Close()
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		e.nats.Shutdown()
		e.nats.WaitForShutdown()
		e.running.Wait()
		e.gate.close() // last, because the leadership is transferred through it
	}()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-stopped:
		return nil
	case <-timer.C:
		return fmt.Errorf("the node's server has not stopped after %s", timeout)
	}
}

// setTLS changes the certificate and the authority for new connections.
func (e *embeddedServer) setTLS(c *Config, tlsConfig *tls.Config) error {
	if err := e.nats.ReloadOptions(e.options(c, tlsConfig)); err != nil {
		return fmt.Errorf("change the certificate of the node's server: %w", err)
	}
	e.certificate.Store(tlsConfig.Certificates[0].Leaf)
	return nil
}

func (e *embeddedServer) options(c *Config, tlsConfig *tls.Config) *server.Options {
	o := &server.Options{
		ServerName: c.Name, CustomRouterAuthentication: e.gate,
		Host: "127.0.0.1", Port: server.RANDOM_PORT, CustomClientAuthentication: inProcessOnly{e}, MaxConn: clientConnsMax,
		NoSigs: true, NoLog: true, DisableJetStreamBanner: true, MaxPayload: payloadBytesMax,
		ConnectErrorReports: attemptsPerReport, ReconnectErrorReports: attemptsPerReport,
		JetStream: c.selfIsMember(), StoreDir: filepath.Join(c.Dir, streamDirName), SyncAlways: true,
		JetStreamMaxMemory: jetStreamMemory, JetStreamMaxStore: jetStreamBytesMax,
		Cluster: server.ClusterOpts{
			Name: c.Cluster, Host: "127.0.0.1", Port: server.RANDOM_PORT, Advertise: c.advertise, NoAdvertise: true, PoolSize: 1,
			PingInterval: routePingInterval, TLSConfig: tlsConfig, TLSTimeout: handshakeSeconds,
			Username: routeUser, Password: e.gate.password, // so that the server closes connections that do not authenticate themselves
		},
	}
	for _, m := range c.Members { // with this node too: the size of the raft group is derived from the routes
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats-route", User: url.UserPassword(routeUser, e.gate.password), Host: m.Address})
	}
	return o
}

// payloadBytesMax is the size of the largest message: a frame (a record with its checksums) and the headers that the
// server adds.
const payloadBytesMax = frameBytesMax + 64<<10
