package clustertest_test

import (
	"net"
	"testing"

	"github.com/tasard/tasard/actors/cluster/clustertest"
)

// TestAddresses checks that reserved addresses are unique and usable, and free again after the test.
func TestAddresses(t *testing.T) {
	seen := map[string]bool{}
	var kept string
	t.Run("keeps some", func(t *testing.T) {
		for _, address := range append(clustertest.Addresses(t, 20), clustertest.Addresses(t, 20)...) {
			listener, err := net.Listen("tcp", address)
			if err != nil || seen[address] {
				t.Fatalf("%s: %v, given before: %v", address, err, seen[address])
			}
			listener.Close()
			seen[address], kept = true, address
		}
	})
	free, err := net.ListenPacket("udp", kept)
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
}
