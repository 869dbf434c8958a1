//go:build faults && linux

package main

import (
	"testing"

	"github.com/tasard/tasard/bench/load"
)

const (
	tightMemory   = 128 << 20
	tightAccounts = 100_000
	// tightConnections is the limit that an operator would set for so little memory.
	tightConnections = "1024"
)

// TestFaultsO8_LittleMemory puts three times its capacity on a node with a hundred thousand accounts in a control
// group of 128 MB. The control is a group too small for the accounts themselves.
func TestFaultsO8_LittleMemory(t *testing.T) {
	needLimits(t)
	f := smallFixture(t, tightAccounts)
	path := buildNode(t, "")
	t.Run("node", func(t *testing.T) {
		o := startOverloaded(t, path, f, tightMemory, "--connections", tightConnections)
		over := &clients{
			name: "many clients", Clients: load.Clients{Requests: asking(nil), Connections: 1000, Rate: 3 * capacityOf(o.base(t)), Subnet: 2, PerAddress: clientsPerAddress},
		}
		runClients(t, o.address, controlSpan, overloadPatience, over)
		kills := o.cage.oomKills(t)
		figure(t, "%d accounts in %d MB at 3C: %d killed for memory, peak %d MiB; %s", len(f.keys), tightMemory>>20, kills,
			peakMemory(t, o.server), over)
		if kills > 0 || over.answeredOK() == 0 || over.Dropped == 0 {
			t.Errorf("%d killed, or no overload: %s", kills, over)
		}
		checkRefusals(t, over)
	})
	t.Run("control", func(t *testing.T) {
		c := newCgroup(t, tightMemory/8)
		if node, err := startNode(t.Context(), c.wrap(path), f, serverCore); err == nil {
			node.kill()
		}
		kills := c.oomKills(t)
		figure(t, "control, %d MB: %d killed for memory", tightMemory>>23, kills)
		if kills == 0 {
			t.Error("nothing was killed in a group that is too small: the test sees nothing")
		}
	})
}
