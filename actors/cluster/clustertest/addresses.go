package clustertest

import (
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"testing"
)

// Ports lie below 32,768, where Linux begins its ephemeral ports; other systems begin higher.
const (
	firstPort   = 20_000
	portCount   = 12_000
	attemptsMax = 1_000
	// Test processes that are started one after the other begin this far apart.
	processPortStep = 97
)

// tried counts the ports tried by this process. A port is reused last, because nodes of an earlier test may still
// dial it.
var tried atomic.Int64

// Addresses returns count loopback addresses, as host:port, that are reserved for the test until it ends, also while
// nothing listens there. Nodes use TCP; a UDP socket on the same port marks it as taken for tests in other processes.
// The test fails if there are not enough.
func Addresses(t testing.TB, count int) []string {
	t.Helper()
	var found []string
	for range attemptsMax {
		if len(found) == count {
			return found
		}
		next := int64(os.Getpid())*processPortStep + tried.Add(1)
		address := fmt.Sprintf("127.0.0.1:%d", firstPort+next%portCount)
		if reserve(t, address) {
			found = append(found, address)
		}
	}
	t.Fatalf("%d of %d free ports from %d to %d after %d tries", len(found), count, firstPort, firstPort+portCount-1, attemptsMax)
	return nil
}

// reserve marks an address as taken, unless it is in use or taken.
func reserve(t testing.TB, address string) bool {
	kept, err := net.ListenPacket("udp", address)
	if err != nil {
		return false
	}
	t.Cleanup(func() { _ = kept.Close() })
	listener, err := net.Listen("tcp", address)
	return err == nil && listener.Close() == nil
}
