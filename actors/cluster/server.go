//go:build !nocluster

package cluster

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	streamDirName      = "stream"
	routePingInterval  = 3 * time.Second // a route that is cut without a word is given up after two of them
	handshakeSeconds   = 5
	listenTimeout      = 15 * time.Second
	listenPollInterval = 100 * time.Millisecond
	stopTimeout        = 30 * time.Second
	failedStopTimeout  = time.Second // over damaged files the server may have lost itself, and takes more memory while it has
	jetStreamMemory    = 64 << 20
	jetStreamBytesMax  = 1 << 40 // the disk ends before; zero would reserve a part of it
	secretBytesMax     = 1 << 10
	routeUser          = "node"
)

// embeddedServer is the server in this process and the connection to it.
type embeddedServer struct {
	nats    *server.Server
	conn    *nats.Conn
	js      jetstream.JetStream
	running sync.WaitGroup

	certificate *x509.Certificate // shown to other nodes; nil without TLS
}

// inProcessOnly refuses every client but the one in this process. The server insists on a client port; it is on the loopback address.
type inProcessOnly struct{}

// Check is server.Authentication.
func (inProcessOnly) Check(c server.ClientAuthentication) bool {
	from := c.RemoteAddress()
	return from != nil && from.Network() == "pipe"
}

// serverLogger hands the server's lines to the logger of the node. What it calls fatal ends the start, not the process.
type serverLogger struct {
	logger *slog.Logger
	fatal  chan string // the first of those
}

// Noticef is server.Logger.
func (l serverLogger) Noticef(format string, v ...any) { l.log(slog.LevelDebug, format, v) }

// Warnf is server.Logger.
func (l serverLogger) Warnf(format string, v ...any) { l.log(slog.LevelWarn, format, v) }

// Errorf is server.Logger.
func (l serverLogger) Errorf(format string, v ...any) { l.log(slog.LevelWarn, format, v) }

// Fatalf is server.Logger.
func (l serverLogger) Fatalf(format string, v ...any) {
	l.log(slog.LevelError, format, v)
	select {
	case l.fatal <- fmt.Sprintf(format, v...):
	default:
	}
}

// Debugf is server.Logger.
func (l serverLogger) Debugf(string, ...any) {}

// Tracef is server.Logger.
func (l serverLogger) Tracef(string, ...any) {}

func (l serverLogger) log(level slog.Level, format string, v []any) {
	l.logger.Log(context.Background(), level, "cluster", "says", fmt.Sprintf(format, v...))
}

// startServer starts the embedded server and connects to it. It doesn't wait for other nodes.
func startServer(c *Config) (*embeddedServer, error) {
	options, err := serverOptions(c)
	if err != nil {
		return nil, err
	}
	if err := checkPortFree(c.Listen); err != nil {
		return nil, fmt.Errorf("start the node's server: %w", err)
	}
	s, err := server.NewServer(options)
	if err != nil {
		return nil, fmt.Errorf("start the node's server: %w", err)
	}
	log := serverLogger{c.Logger, make(chan string, 1)}
	s.SetLoggerV2(log, false, false, false)
	e := &embeddedServer{nats: s}
	if security := options.Cluster.TLSConfig; security != nil {
		e.certificate = security.Certificates[0].Leaf
	}
	e.running.Go(s.Start)
	if err := e.awaitListening(c, log.fatal); err != nil {
		return nil, errors.Join(fmt.Errorf("start the node's server: %w", err), e.stop(failedStopTimeout))
	}
	if err := e.connect(c); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the node's server: %w", err), e.stop(stopTimeout))
	}
	return e, nil
}

// awaitListening waits until the server does, or has said why it can't.
func (e *embeddedServer) awaitListening(c *Config, fatal <-chan string) error {
	for range listenTimeout / listenPollInterval {
		if e.nats.ReadyForConnections(listenPollInterval) {
			return nil
		}
		select {
		case says := <-fatal:
			return fmt.Errorf("%s: %s", says, hintMoveStream(c))
		default:
		}
	}
	return fmt.Errorf("it does not listen on %s after %s: %s", c.Listen, listenTimeout, hintMoveStream(c))
}

// hintMoveStream is the way out when what the server of one node keeps is damaged.
func hintMoveStream(c *Config) string {
	return fmt.Sprintf("if that is about its files, and the status of the other nodes shows no lack, move %s away and start again: "+
		"this node gets its part of the stream from them. Never do so at two nodes at once", filepath.Join(c.Dir, streamDirName))
}

// checkPortFree is nil when a node can listen there. The server itself would only say so to its log.
func checkPortFree(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return l.Close()
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

// stop hands leadership to others, closes the files and waits for that, though not for ever: every message that counts is on disk already.
func (e *embeddedServer) stop(longest time.Duration) error {
	if e.conn != nil {
		e.conn.Close()
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.nats.Shutdown()
		e.nats.WaitForShutdown()
		e.running.Wait()
	}()
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case <-ended:
		return nil
	case <-timer.C:
		return fmt.Errorf("the node's server has not stopped after %s", longest)
	}
}

func serverOptions(c *Config) (*server.Options, error) {
	host, port, err := splitAddress(c.Listen)
	if err != nil {
		return nil, err
	}
	secret, err := readSecret(c.SecretFile)
	if err != nil {
		return nil, err
	}
	security, err := c.TLS.Load()
	if err != nil {
		return nil, err
	}
	o := &server.Options{
		ServerName: c.Name, Host: "127.0.0.1", Port: server.RANDOM_PORT, CustomClientAuthentication: inProcessOnly{},
		NoSigs: true, NoLog: true, DisableJetStreamBanner: true, MaxPayload: payloadBytesMax,
		JetStream: c.selfIsMember(), StoreDir: filepath.Join(c.Dir, streamDirName), SyncAlways: true,
		JetStreamMaxMemory: jetStreamMemory, JetStreamMaxStore: jetStreamBytesMax,
		Cluster: server.ClusterOpts{
			Name: c.Cluster, Host: host, Port: port, Advertise: c.Advertise, NoAdvertise: true, PoolSize: 1,
			PingInterval: routePingInterval, TLSConfig: security, TLSTimeout: handshakeSeconds,
		},
	}
	if secret != "" {
		o.Cluster.Username, o.Cluster.Password = routeUser, secret
	}
	for _, m := range c.Members { // all of them, this node too: their number is the size of the group that forms
		route := &url.URL{Scheme: "nats-route", Host: m.Address}
		if secret != "" {
			route.User = url.UserPassword(routeUser, secret)
		}
		o.Routes = append(o.Routes, route)
	}
	return o, nil
}

// payloadBytesMax leaves room for what the server adds.
const payloadBytesMax = frameBytesMax + 64<<10

func splitAddress(address string) (string, int, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	number, err := strconv.Atoi(port)
	return host, number, err
}

// readSecret reads the text that nodes know, "" without a file.
func readSecret(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("read the secret of the cluster: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" || len(secret) > secretBytesMax {
		return "", fmt.Errorf("read the secret of the cluster: %s has %d bytes, want 1 to %d", name, len(secret), secretBytesMax)
	}
	return secret, nil
}
