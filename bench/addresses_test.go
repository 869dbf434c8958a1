//go:build faults && linux

package main

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// networkEnv is the environment variable that makes the test binary run the test inside its own network namespace.
const networkEnv = "TASARD_BENCH_ADDRESSES"

// TestFaultsO5_OneAddress checks that no client address has more than 128 connections, nor more than a fifth of the
// limit of all; IPv6 addresses count by /64. The test runs again in its own network namespace, where it may use any
// address. The control is a node without the limit.
func TestFaultsO5_OneAddress(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NEEDS root: run make test-faults as root, in a machine of its own")
	}
	if os.Getenv(networkEnv) == "" {
		if _, err := exec.LookPath("unshare"); err != nil {
			t.Skip("NEEDS unshare: apt-get install util-linux")
		}
		script := "ip link set lo up && ip -6 addr add 2001:db8:1::1/128 dev lo nodad && ip -6 addr add 2001:db8:1::2/128 dev lo nodad && " +
			"ip -6 addr add 2001:db8:2::1/128 dev lo nodad && exec \"$@\""
		again := exec.CommandContext(t.Context(), "unshare", "-n", "sh", "-c", script, "sh", os.Args[0], "-test.run=^TestFaultsO5_OneAddress$", "-test.v")
		again.Env = append(os.Environ(), networkEnv+"=1")
		output, err := again.CombinedOutput()
		for line := range strings.SplitSeq(string(output), "\n") {
			if _, found, is := strings.Cut(line, "FIGURE "); is {
				figure(t, "%s", found)
			}
		}
		if err != nil || !strings.Contains(string(output), "FIGURE") {
			t.Fatalf("%v\n%s", err, output)
		}
		return
	}
	f := smallFixture(t, 1)
	path := buildNode(t, "")
	for _, one := range []struct {
		name    string
		flags   []string
		sources []string // each tries 200 connections
		most    int      // of all together
	}{
		{"IPv4, two addresses", nil, []string{"127.0.0.2", "127.0.0.3"}, 2 * 128},
		{"IPv4, a fifth of 200", []string{"--connections", "200"}, []string{"127.0.0.2"}, 40},
		{"IPv6, two addresses of one /64", nil, []string{"2001:db8:1::1", "2001:db8:1::2"}, 128},
		{"IPv6, two networks", nil, []string{"2001:db8:1::1", "2001:db8:2::1"}, 2 * 128},
		{"a trusted proxy", []string{"--trusted-proxy", "127.0.0.2"}, []string{"127.0.0.2"}, 200},
		{"control, no limit", []string{"--connections-per-address", "0"}, []string{"127.0.0.2", "127.0.0.3"}, 400},
	} {
		t.Run(one.name, func(t *testing.T) {
			taken := keptConnections(t, path, f, one.flags, one.sources)
			figure(t, "%s: %d of %d connections stay open", one.name, taken, 200*len(one.sources))
			if taken != one.most {
				t.Errorf("%d connections stay open, want %d", taken, one.most)
			}
		})
	}
}

// keptConnections returns how many connections of some addresses a node keeps.
func keptConnections(t *testing.T, path string, f *fixture, flags, sources []string) int {
	t.Helper()
	found := running(t, path, f, anyCore, append([]string{"--connections-per-address", "128", "--listen", "[::]:0"}, flags...)...)
	_, port, err := net.SplitHostPort(found.address)
	if err != nil {
		t.Fatal(err)
	}
	taken := 0
	for _, source := range sources {
		host := "127.0.0.1"
		if strings.Contains(source, ":") {
			host = source
		}
		for range 200 {
			conn, answered := connectFrom(t, net.ParseIP(source), net.JoinHostPort(host, port))
			defer conn.Close()
			if answered {
				taken++
			}
		}
	}
	return taken
}
