//go:build faults

package faults

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// street is a network in which every node of a cluster lives alone: a namespace for each, one wire from it to a bridge, and this process on
// the bridge as everybody's caller. What a node sends to another one is lost without a word when its neighbour has the address of a
// card that is nowhere (cut): so each direction between two nodes can be cut alone, and callers reach them all the time.
type street struct {
	t      *testing.T
	name   string
	part   string // of all addresses
	hosts  []string
	papers []string // flags of the certificate
}

// nowhere is a hardware address that no card has.
const nowhere = "02:00:5e:ff:ff:ff"

// newStreet builds one for so many nodes; the test takes it down.
func newStreet(t *testing.T, count int) *street {
	t.Helper()
	needRoot(t)
	need(t, "iproute2", "ip")
	block := placeChance().IntN(1 << 14)
	s := &street{t: t, name: fmt.Sprintf("ts%04x", block)}
	s.part = fmt.Sprintf("10.%d.%d", 64+block>>8, block&255)
	t.Cleanup(s.clear)
	s.ip("link", "add", s.name, "type", "bridge")
	s.ip("addr", "add", s.bridge()+"/24", "dev", s.name)
	s.ip("link", "set", s.name, "up")
	for number := 1; number <= count; number++ {
		s.hosts = append(s.hosts, fmt.Sprintf("%s.%d", s.part, number))
		s.house(number)
	}
	for from := range count {
		for to := range count {
			if from != to {
				s.heal(from+1, to+1)
			}
		}
	}
	s.certify()
	return s
}

// bridge is the address of this process there; without a street that of loopback.
func (s *street) bridge() string {
	if s == nil {
		return "127.0.0.1"
	}
	return s.part + ".254"
}

// house makes the namespace of a node and its wire.
func (s *street) house(number int) {
	space, wire := s.space(number), fmt.Sprintf("%sv%d", s.name, number)
	s.ip("netns", "add", space)
	s.ip("link", "add", wire, "type", "veth", "peer", "name", "eth0", "netns", space, "address", s.card(number))
	s.ip("link", "set", wire, "master", s.name, "up")
	s.ip("-n", space, "addr", "add", s.hosts[number-1]+"/24", "dev", "eth0")
	s.ip("-n", space, "link", "set", "lo", "up")
	s.ip("-n", space, "link", "set", "eth0", "up")
}

func (s *street) space(number int) string { return fmt.Sprintf("%sn%d", s.name, number) }

// card is the hardware address of a node.
func (s *street) card(number int) string { return fmt.Sprintf("02:00:5e:00:%02x:01", number) }

// starter starts a program in the network of a node.
func (s *street) starter(number int) []string {
	return []string{"ip", "netns", "exec", s.space(number)}
}

// cut loses all that one node sends to another.
func (s *street) cut(from, to int) { s.neighbour(from, to, nowhere) }

// heal ends that.
func (s *street) heal(from, to int) { s.neighbour(from, to, s.card(to)) }

func (s *street) neighbour(from, to int, card string) {
	s.ip("-n", s.space(from), "neigh", "replace", s.hosts[to-1], "lladdr", card, "dev", "eth0", "nud", "permanent")
}

// ip runs the program of that name, which must succeed.
func (s *street) ip(args ...string) {
	if output, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		s.t.Fatalf("ip %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

// clear takes everything down. The wires go with their namespaces.
func (s *street) clear() {
	for number := range s.hosts {
		_ = exec.Command("ip", "netns", "del", s.space(number+1)).Run()
	}
	_ = exec.Command("ip", "link", "del", s.name).Run()
}

// certify writes one certificate for all nodes, which is its own authority: beyond one machine a cluster wants them.
func (s *street) certify() {
	s.t.Helper()
	now, key := time.Now(), must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	wanted := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "tasard " + s.name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, host := range s.hosts {
		wanted.IPAddresses = append(wanted.IPAddresses, net.ParseIP(host))
	}
	dir := s.t.TempDir()
	certificate, secret := filepath.Join(dir, "node.pem"), filepath.Join(dir, "node.key")
	for path, block := range map[string]*pem.Block{
		certificate: {Type: "CERTIFICATE", Bytes: must(x509.CreateCertificate(rand.Reader, wanted, wanted, &key.PublicKey, key))},
		secret:      {Type: "EC PRIVATE KEY", Bytes: must(x509.MarshalECPrivateKey(key))},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	s.papers = []string{"--cluster-ca", certificate, "--cluster-cert", certificate, "--cluster-key", secret}
}

// must is for what cannot fail.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
