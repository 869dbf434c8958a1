package cluster

import (
	"cmp"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"regexp"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

// Config configures a node of a cluster. Only Listen, Log and Version may be zero.
type Config struct {
	// Cluster is the name of the cluster. It is the same on all nodes.
	Cluster string
	// Node is the number of this node. It must be unique in the cluster and never change.
	Node engine.NodeID
	// Members are the three or five nodes that vote on the shared log, this one among them. The list is the same on all
	// nodes.
	Members []Member
	// Listen is the host:port on which this node accepts connections from other nodes. "" = its address in Members.
	Listen string

	// Dir is the node's data directory.
	Dir string
	// Log configures the local log: this node's own copy of the stream, in Dir. Open replaces Log.Clock and Log.Logger
	// by Clock and Logger of this Config.
	Log wal.Options
	// Secret is known only to the nodes: secretBytesMin or more random characters. With it they authenticate each other
	// and encrypt their connections.
	Secret string

	// Version is the version of the program. Other nodes show it in their Status.
	Version string

	// Clock returns the present time with a monotonic reading, like time.Now.
	Clock func() time.Time
	// Random is the source of the process ID, the raft ID, the stream ID and the secret key for hashes of login codes.
	Random io.Reader
	Logger *slog.Logger

	advertise         string // address that other nodes dial; "" = this node's address in Members
	checkpointEntries uint64 // entries after which raft's log is compacted; 0 = checkpointEntriesDefault
}

// Member is a node that votes on the log of the cluster.
type Member struct {
	Node    engine.NodeID
	Address string // host:port for other nodes
}

// Name returns the name of the node within the cluster.
func (m Member) Name() string { return NodeName(m.Node) }

// NodeName returns the name of a node within the cluster.
func NodeName(node engine.NodeID) string { return fmt.Sprintf("node-%d", node) }

const (
	membersMin = 3
	membersMax = 5

	// checkpointEntriesDefault is the number of entries after which the store writes a checkpoint. The newer half of
	// them stays in memory for nodes that are behind. A node that needs older ones copies another node's state.
	checkpointEntriesDefault = 20_000
)

// validName is what a cluster may be named: it is safe in logs and metrics.
var validName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

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

// Check returns an error that lists all problems of the configuration.
func (c Config) Check() error {
	_, err := c.complete()
	return err
}

// complete checks the configuration and sets defaults.
func (c Config) complete() (Config, error) {
	err := c.checkMembers()
	if !validName.MatchString(c.Cluster) {
		err = errors.Join(fmt.Errorf("name of the cluster is %q: want 1 to 64 letters, digits, '-' or '_'", c.Cluster), err)
	}
	if c.Listen != "" {
		if addrErr := checkAddress(c.Listen); addrErr != nil {
			err = errors.Join(err, fmt.Errorf("address to listen on: %w", addrErr))
		}
	}
	if n := len(c.Secret); n < secretBytesMin {
		err = errors.Join(err, fmt.Errorf("the secret has %d characters: want %d or more, as openssl rand -base64 32 makes them", n, secretBytesMin))
	}
	if err != nil {
		return c, fmt.Errorf("check configuration of the cluster: %w", err)
	}
	c.checkpointEntries = cmp.Or(c.checkpointEntries, checkpointEntriesDefault)
	own := c.memberAddresses()[c.name()]
	c.advertise, c.Listen = cmp.Or(c.advertise, own), cmp.Or(c.Listen, own)
	c.Log.Clock, c.Log.Logger = c.Clock, c.Logger
	return c, nil
}

func (c *Config) checkMembers() error {
	if n := len(c.Members); n != membersMin && n != membersMax {
		return fmt.Errorf("%d members: want %d or %d, this node among them", n, membersMin, membersMax)
	}
	var err error
	nodes, addresses := map[engine.NodeID]bool{}, map[string]bool{}
	for _, m := range c.Members {
		if addrErr := checkAddress(m.Address); addrErr != nil {
			err = errors.Join(err, fmt.Errorf("address of %s: %w", m.Name(), addrErr))
		}
		if m.Node == 0 || nodes[m.Node] || addresses[m.Address] {
			err = errors.Join(err, fmt.Errorf("member %d=%s: its number is 0, or its number or address is listed twice", m.Node, m.Address))
		}
		nodes[m.Node], addresses[m.Address] = true, true
	}
	if !nodes[c.Node] {
		err = errors.Join(err, fmt.Errorf("the members lack this node: want %d=HOST:PORT among them", c.Node))
	}
	return err
}

// memberAddresses returns the addresses of the members by name.
func (c *Config) memberAddresses() map[string]string {
	addresses := map[string]string{}
	for _, m := range c.Members {
		addresses[m.Name()] = m.Address
	}
	return addresses
}

func (c *Config) name() string { return NodeName(c.Node) }

func (c *Config) isMember(name string) bool {
	return slices.ContainsFunc(c.Members, func(m Member) bool { return m.Name() == name })
}

const (
	secretBytesMin = 32
	// serverName is the name in the certificates of all nodes. Which node has answered is in its hello.
	serverName = "tasard"
)

// tlsConfig returns the configuration of connections in both directions: as client and as server. All nodes derive the
// same private key from the secret, so only a program that knows the secret can be at either end of a connection. The
// secret itself is never sent: another program could listen on the port of a stopped node and read it.
func (c *Config) tlsConfig() (*tls.Config, error) {
	seed, err := hkdf.Key(sha256.New, []byte(c.Secret), nil, "tasard cluster key", ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	private := ed25519.NewKeyFromSeed(seed)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tasard cluster"}, DNSNames: []string{serverName},
		NotBefore: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private, Leaf: leaf}}, RootCAs: pool, ClientCAs: pool,
		ServerName: serverName, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	}, nil
}
