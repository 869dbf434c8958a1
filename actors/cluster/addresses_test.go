package cluster

import (
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"testing"
)

// All ports are below 32,768, which is the first port that Linux chooses for outgoing connections.
const (
	firstPort   = 20_000
	portCount   = 12_000
	attemptsMax = 1_000
	// processPortStep separates the ports that test processes with consecutive process IDs try first.
	processPortStep = 97
)

// triedPorts is the number of ports that this process has tried. It never decreases: nodes of an earlier test may still
// dial their old ports, so a port is tried again only after all others.
var triedPorts atomic.Int64

// freeAddresses returns count loopback addresses (host:port) for TCP. They are reserved until the end of the test, even
// while no node listens on them: a node that starts again must not find another process, or a node of another test, at
// its address. To reserve a port among test processes, it keeps a UDP socket open on the same port.
func freeAddresses(t testing.TB, count int) []string {
	t.Helper()
	var addresses []string
	for range attemptsMax {
		if len(addresses) == count {
			return addresses
		}
		n := int64(os.Getpid())*processPortStep + triedPorts.Add(1)
		address := fmt.Sprintf("127.0.0.1:%d", firstPort+n%portCount)
		if reserve(t, address) {
			addresses = append(addresses, address)
		}
	}
	t.Fatalf("%d of %d free ports from %d to %d after %d tries", len(addresses), count, firstPort, firstPort+portCount-1, attemptsMax)
	return nil
}

// reserve reserves an address. It returns false if another test or process uses the address.
func reserve(t testing.TB, address string) bool {
	reservation, err := net.ListenPacket("udp", address)
	if err != nil {
		return false
	}
	t.Cleanup(func() { _ = reservation.Close() })
	listener, err := net.Listen("tcp", address)
	return err == nil && listener.Close() == nil
}
