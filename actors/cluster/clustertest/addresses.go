package clustertest

import (
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"testing"
)

// Ports lie from firstPort on, below 32,768, where Linux begins to give them to connections; other systems begin higher.
const (
	firstPort   = 20_000
	portCount   = 12_000
	attemptsMax = 1_000
	// Programs that are started one after the other begin this far from each other.
	processPortStep = 97
)

// tried counts the ports that this program looked at: one that has just come back is the last to be given again, because the nodes of
// the test before may still be called there.
var tried atomic.Int64

// Addresses are count addresses of the loopback interface, as host:port, that are this test's until it ends, also while nobody listens
// there. Nodes use TCP: a UDP socket of the same number, kept open, tells other tests that it is taken, and ends with its process.
// The test fails if there are none.
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

// reserve keeps an address for the test, unless somebody uses or keeps it.
func reserve(t testing.TB, address string) bool {
	kept, err := net.ListenPacket("udp", address)
	if err != nil {
		return false
	}
	t.Cleanup(func() { _ = kept.Close() }) // nothing was ever written
	listener, err := net.Listen("tcp", address)
	return err == nil && listener.Close() == nil
}
