package clustertest_test

import (
	"net"
	"testing"

	"github.com/tasard/tasard/actors/cluster/clustertest"
)

// TestAddresses_AreNobodyElses goes round the whole range and comes to its own ports again: none is given twice, and each can be
// listened at.
func TestAddresses_AreNobodyElses(t *testing.T) {
	const each, tests = 3, 120
	seen := map[string]bool{}
	for i := range tests {
		if i == tests/2 {
			clustertest.SkipAlmostAll()
		}
		for _, address := range clustertest.Addresses(t, each) {
			if seen[address] {
				t.Fatalf("%s was given twice", address)
			}
			seen[address] = true
		}
	}
	for address := range seen {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatalf("an address that nobody uses: %v", err)
		}
		listener.Close()
	}
}

// TestAddresses_ComeBack says that what a test kept is free when it ends.
func TestAddresses_ComeBack(t *testing.T) {
	var kept string
	t.Run("keeps one", func(t *testing.T) { kept = clustertest.Addresses(t, 1)[0] })
	free, err := net.ListenPacket("udp", kept)
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
}
