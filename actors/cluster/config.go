package cluster

import (
	"cmp"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

// Config says who a node is and where it meets the others. Cluster, Name, Node, Members, Listen, Dir and Clock are required, and TLS or
// Insecure.
type Config struct {
	// Cluster is the name of the cluster, the same on all nodes.
	Cluster string
	// Name is the name of this node, for ever: letters, digits, '-' and '_'.
	Name string
	// Node is the number of this node, for ever; no two nodes have the same.
	Node engine.NodeID
	// Members are the three or five nodes that keep the stream, the same list on every node. A node that is not in it is a guest.
	Members []Member
	// Listen is host:port of the route, where other nodes come in.
	Listen string
	// Advertise is host:port that others dial. "" = this node's entry in Members, else Listen.
	Advertise string
	// Dir is the node's data directory.
	Dir string
	// Log says how the local log is kept. Its Clock and Logger are those of this Config.
	Log wal.Options
	// TLS names the files by which nodes prove to each other who they are.
	TLS TLS
	// Insecure allows a cluster without TLS, if every address is a loopback address.
	Insecure bool
	// SecretFile has a text that a node must know to come in, beside its certificate. "" = none.
	SecretFile string
	// Version is the version of the program, told to the others.
	Version string
	// StreamBytesMax is how long the stream becomes for a node that is away; then it is trimmed without it. 0 = 1 GiB.
	StreamBytesMax uint64
	// Clock tells the time, with a monotonic part as time.Now has.
	Clock func() time.Time
	// Random is where names of offers, the number of the stream and the seal come from. nil = the system's cryptographic source.
	Random io.Reader
	// Logger gets what an operator should know. nil discards.
	Logger *slog.Logger

	verifyTimeout time.Duration // 0 = confirmIn
}

// verifyTimeoutDefault: a leader that was cut off may say for so long what is no longer so.
const verifyTimeoutDefault = 30 * time.Second

// Member is one node that keeps the stream.
type Member struct {
	Name    string
	Address string // host:port of its route
}

// TLS names PEM files: the authority that signed every node's certificate, this node's certificate, good for both ends of a
// connection and for the host that others dial, and its key.
type TLS struct{ Authority, Certificate, Key string }

const (
	membersMin            = 3
	membersMax            = 5
	nameBytesMax          = 64
	streamBytesMaxDefault = 1 << 30
)

func (m Member) check() error {
	if err := checkName("name of a member", m.Name); err != nil {
		return err
	}
	if err := checkAddress(m.Address); err != nil {
		return fmt.Errorf("address of member %s: %w", m.Name, err)
	}
	return nil
}

// checkName keeps names fit for subjects, file names and logs.
func checkName(what, name string) error {
	fits := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_'
	}
	if name == "" || len(name) > nameBytesMax || strings.ContainsFunc(name, func(r rune) bool { return !fits(r) }) {
		return fmt.Errorf("%s is %q: want 1 to %d letters, digits, '-' or '_'", what, name, nameBytesMax)
	}
	return nil
}

func checkAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil || host == "" || port == "0" {
		return fmt.Errorf("%q: want HOST:PORT, as 10.0.0.1:6222", address)
	}
	return nil
}

// isLoopback reports whether an address can be reached from this machine alone, whatever a resolver says.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// Check is what is wrong with the configuration, nil when HasBackup would begin with it.
func (c Config) Check() error {
	_, err := c.complete()
	return err
}

// complete checks the configuration and fills in what is zero.
func (c Config) complete() (Config, error) {
	err := errors.Join(c.checkNames(), c.checkMembers(), c.checkSecurity())
	if c.Dir == "" {
		err = errors.Join(err, errors.New("no Dir: name the node's data directory"))
	}
	if c.Clock == nil {
		err = errors.Join(err, errors.New("no Clock"))
	}
	if err != nil {
		return c, fmt.Errorf("check configuration of the cluster: %w", err)
	}
	c.StreamBytesMax = cmp.Or(c.StreamBytesMax, streamBytesMaxDefault)
	c.verifyTimeout = cmp.Or(c.verifyTimeout, verifyTimeoutDefault)
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Advertise == "" {
		c.Advertise = c.Listen
		if at := slices.IndexFunc(c.Members, func(m Member) bool { return m.Name == c.Name }); at >= 0 {
			c.Advertise = c.Members[at].Address
		}
	}
	c.Log.Clock, c.Log.Logger = c.Clock, c.Logger
	return c, nil
}

func (c *Config) checkNames() error {
	err := errors.Join(checkName("name of the cluster", c.Cluster), checkName("name of this node", c.Name))
	if c.Node == 0 {
		err = errors.Join(err, errors.New("number of this node is 0: want 1 or more, another one for every node"))
	}
	if bad := checkAddress(c.Listen); bad != nil {
		err = errors.Join(err, fmt.Errorf("address to listen on: %w", bad))
	}
	if c.Advertise != "" {
		if bad := checkAddress(c.Advertise); bad != nil {
			err = errors.Join(err, fmt.Errorf("address that others dial: %w", bad))
		}
	}
	return err
}

func (c *Config) checkMembers() error {
	if n := len(c.Members); n != membersMin && n != membersMax {
		return fmt.Errorf("%d members: want %d or %d, this node among them unless it is a guest", n, membersMin, membersMax)
	}
	var err error
	names, addresses := map[string]bool{}, map[string]bool{}
	for _, m := range c.Members {
		err = errors.Join(err, m.check())
		if names[m.Name] || addresses[m.Address] {
			err = errors.Join(err, fmt.Errorf("member %s=%s: its name or address is there twice", m.Name, m.Address))
		}
		names[m.Name], addresses[m.Address] = true, true
	}
	return err
}

// checkSecurity wants both ends of every connection to prove themselves, but on one machine.
func (c *Config) checkSecurity() error {
	t := c.TLS
	if t != (TLS{}) {
		if t.Authority == "" || t.Certificate == "" || t.Key == "" {
			return errors.New("TLS is given in part: name the files of the authority, the certificate and the key")
		}
		return nil
	}
	if !c.Insecure {
		return errors.New("neither TLS nor insecure: name the files of the authority, the certificate and the key")
	}
	addresses := []string{c.Listen, cmp.Or(c.Advertise, c.Listen)}
	for _, m := range c.Members {
		addresses = append(addresses, m.Address)
	}
	if at := slices.IndexFunc(addresses, func(a string) bool { return !isLoopback(a) }); at >= 0 {
		return fmt.Errorf("insecure, and %s is no loopback address: name the files of the authority, the certificate and the key", addresses[at])
	}
	return nil
}

// selfIsMember reports whether this node keeps a copy of the stream.
func (c *Config) selfIsMember() bool { return c.isMember(c.Name) }

func (c *Config) isMember(name string) bool {
	return slices.ContainsFunc(c.Members, func(m Member) bool { return m.Name == name })
}

// Load makes of the files what both ends of a connection between two nodes use; nil without files. The first certificate is this node's.
func (t TLS) Load() (*tls.Config, error) {
	if t == (TLS{}) {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of this node: %w", err)
	}
	authority, err := os.ReadFile(t.Authority)
	if err != nil {
		return nil, fmt.Errorf("read the authority of the cluster: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("read the authority of the cluster: %s has no certificate", t.Authority)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, RootCAs: pool, ClientCAs: pool,
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	}, nil
}
