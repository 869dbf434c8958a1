package clustertest

import (
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"testing"
)

// Ports are below 32,768, the first ephemeral port of Linux. Other systems have higher ephemeral ports.
const (
	firstPort   = 20_000
	portCount   = 12_000
	attemptsMax = 1_000
	// processPortStep is the distance between the first ports of consecutive process IDs.
	processPortStep = 97
)

// triedPorts counts the ports tried by this process. All other ports are tried before one is reused, because nodes of
// an earlier test may still dial it.
var triedPorts atomic.Int64

// Addresses returns count loopback addresses (host:port) that are reserved until the end of the test, even while no
// node listens. Nodes use TCP; a UDP socket on the same port reserves it across test processes. The test fails if
// there are not enough free ports.
func Addresses(t testing.TB, count int) []string {
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

// reserve reserves an address. It returns false if the address is in use or reserved.
func reserve(t testing.TB, address string) bool {
	reservation, err := net.ListenPacket("udp", address)
	if err != nil {
		return false
	}
	t.Cleanup(func() { _ = reservation.Close() })
	listener, err := net.Listen("tcp", address)
	return err == nil && listener.Close() == nil
}
