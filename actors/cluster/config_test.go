package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const testSecret = "the secret of nodes that run tests"

// valid returns a configuration for one machine.
func valid() Config {
	return Config{
		Cluster: "c", Node: 1, Listen: "127.0.0.1:6222", Dir: "data", Insecure: true, Secret: testSecret, Clock: realClock,
		Members: []Member{{1, "127.0.0.1:6222"}, {2, "127.0.0.1:6223"}, {3, "127.0.0.1:6224"}},
	}
}

// TestConfig_Refused checks that each invalid setting is reported with a remedy.
func TestConfig_Refused(t *testing.T) {
	whole := TLS{"ca.pem", "node.pem", "node.key"}
	for _, tt := range []struct {
		name, words string
		change      func(*Config)
	}{
		{"no cluster", "name of the cluster", func(c *Config) { c.Cluster = "" }},
		{"a dot in a name", "name of the cluster", func(c *Config) { c.Cluster = "n.1" }},
		{"a long name", "name of the cluster", func(c *Config) { c.Cluster = strings.Repeat("n", 65) }},
		{"no number", "number of this node is 0", func(c *Config) { c.Node = 0 }},
		{"no address", "address to listen on", func(c *Config) { c.Listen = "" }},
		{"no port", "address to listen on", func(c *Config) { c.Listen = "127.0.0.1" }},
		{"any port", "address to listen on", func(c *Config) { c.Listen = "127.0.0.1:0" }},
		{"two members", "2 members: want 3 or 5", func(c *Config) { c.Members = c.Members[:2] }},
		{"a number twice", "is listed twice", func(c *Config) { c.Members[1].Node = 3 }},
		{"an address twice", "is listed twice", func(c *Config) { c.Members[1].Address = c.Members[0].Address }},
		{"a member without port", "address of node-3", func(c *Config) { c.Members[2].Address = "127.0.0.1" }},
		{"no TLS", "neither TLS nor insecure", func(c *Config) { c.Insecure = false }},
		{"half of TLS", "TLS is given in part", func(c *Config) { c.TLS, c.Insecure = TLS{"ca.pem", "node.pem", ""}, false }},
		{"TLS and insecure", "choose one", func(c *Config) { c.TLS = whole }},
		{"no secret", "no secret is given", func(c *Config) { c.Secret = "" }},
		{"a short secret", "has 9 characters: want 32", func(c *Config) { c.Secret = "swordfish" }},
		{"insecure and listening to all", "0.0.0.0:6222 is not a loopback address", func(c *Config) { c.Listen = "0.0.0.0:6222" }},
		{"insecure and far", "10.0.0.2:6222 is not a loopback address", func(c *Config) { c.Members[2].Address = "10.0.0.2:6222" }},
		{"insecure and a name", "db:6222 is not a loopback address", func(c *Config) { c.Listen = "db:6222" }},
		{"no directory", "missing Dir", func(c *Config) { c.Dir = "" }},
		{"no clock", "missing Clock", func(c *Config) { c.Clock = nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := valid()
			tt.change(&c)
			if err := c.Check(); err == nil || !strings.Contains(err.Error(), tt.words) {
				t.Errorf("got %v, want %q", err, tt.words)
			}
		})
	}
	c := valid()
	c.Insecure, c.Secret, c.TLS, c.Members[1].Address = false, "", whole, "db.example:6222"
	if err := c.Check(); err != nil {
		t.Errorf("with TLS: %v", err)
	}
	if err := valid().Check(); err != nil {
		t.Errorf("on one machine: %v", err)
	}
}

// TestFiles_Refused checks unusable certificate files.
func TestFiles_Refused(t *testing.T) {
	dir, good := t.TempDir(), newCertificate(t)
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, []byte(" \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for files, ok := range map[TLS]bool{good: true, {empty, empty, empty}: false, {empty, good.Certificate, good.Key}: false} {
		if _, err := files.Load(); (err == nil) != ok {
			t.Errorf("%+v: %v", files, err)
		}
	}
}
