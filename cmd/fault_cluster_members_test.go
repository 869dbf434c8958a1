//go:build faults

package cmd

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestFaultsCluster_Members changes the members of a cluster under load, as docs/cluster.md says: from three to five,
// where two nodes may be lost at once, and to three others, where one may be lost. The checker finds every lost change,
// every stale read and every request beyond a quota.
func TestFaultsCluster_Members(t *testing.T) {
	g := newClusterTest(t, builtProgram(t), nil)
	g.stopLoad()
	place := t.TempDir()
	for i, host := range freeHosts(t, 2) {
		g.cluster.nodes = append(g.cluster.nodes, g.cluster.newNode(place, i+4, host))
	}
	all := g.cluster.nodes
	g.stop = make(chan struct{})
	g.over.Store(false)
	g.load()

	g.restart(all, all[:3])
	for _, p := range all[3:] {
		p.launch()
	}
	g.awaitCopies(all)
	g.kill(all[:2])
	g.awaitCopies(all)

	g.restart(all[2:], all[2:])
	for _, p := range all[:2] {
		p.stop()
	}
	removed := func() int { return strings.Count(all[2].process.Load().Output(), "ConfChangeRemoveNode") }
	if !comesTrue(healMax, func() bool { return removed() == 2 }) {
		t.Errorf("%d of two members were removed", removed())
	}
	g.kill(all[4:])
	g.stopLoad()
	g.cluster.nodes = all[2:]
	g.finish()
	figure(t, "three members, five, three others: %d restarts and kills; changes went on within %s after a kill; %v", g.faults, quantiles(g.writeGaps), g.checker)
}

// restart restarts nodes one after the other with a list of members.
func (g *clusterTest) restart(members, nodes []*clusterNode) {
	g.t.Helper()
	g.cluster.members = members
	for _, p := range nodes {
		p.stop()
		p.launch()
		p.ready(true)
		g.faults++
		g.awaitCopies(nil)
	}
}

// awaitCopies waits until some members, or all reachable nodes, have complete copies of the log.
func (g *clusterTest) awaitCopies(members []*clusterNode) {
	g.t.Helper()
	for _, p := range members {
		p.ready(true)
	}
	if !comesTrue(healMax, func() bool {
		s, ok := g.cluster.nodes[2].health()
		current, reachable := 0, 0
		for _, n := range s.Nodes {
			if n.Reachable {
				reachable++
			}
			if n.Current {
				current++
			}
		}
		return ok && current == reachable && current >= len(members)
	}) {
		g.t.Fatal("the nodes do not have complete copies of the log")
	}
}

// kill kills nodes at once, waits until changes go on without them, and starts them again.
func (g *clusterTest) kill(nodes []*clusterNode) {
	g.t.Helper()
	for _, p := range nodes {
		p.kill()
		g.faults++
	}
	g.awaitWrite(g.checker.now())
	for _, p := range nodes {
		p.launch()
		p.ready(true)
	}
}

// TestFaultsCluster_FullDisk fills the disk of one member. It reports disk=read_only and a majority, however
// long that lasts, and goes on when there is space, also if there was no space at all.
func TestFaultsCluster_FullDisk(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	r := prepareCluster(t, builtProgram(t), nil)
	p, c, number := r.nodes[2], newHTTPClient(""), 0
	noError(t, unix.Mount("tmpfs", p.data, "tmpfs", 0, "size=256m"))
	t.Cleanup(func() { _ = unix.Unmount(p.data, unix.MNT_DETACH) })
	r.startAll()
	set := func(p *clusterNode) (answer, error) {
		number++
		return p.admin.do(http.MethodPost, "http://node/rates", "", map[string]string{
			"institution": "bhd", "currency": "USD", "buy": fmt.Sprintf("58.%d", 10+number%80), "sell": "59.9",
		})
	}
	shows := func(state string) func() bool {
		return func() bool { return sampleHealth(c, p.url+"/readyz").states["disk"] == state }
	}
	fill(t, p.data, reservedBytes/2)
	if !comesTrue(healMax, shows("read_only")) {
		t.Fatal("the full disk is not shown")
	}
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); wait(lookPause) {
		if got, err := set(r.nodes[0]); err != nil || !got.good() {
			t.Fatal(got.failure("a change at another node", err))
		}
		if got, _ := set(p); got.code != "read_only" || !strings.Contains(got.body, "disk") {
			t.Fatalf("a change at the node: %d %s", got.status, got.body)
		}
		if states := sampleHealth(c, p.url+"/readyz").states; states["cluster"] != "ok" || states["disk"] != "read_only" {
			t.Fatalf("conditions %v", states)
		}
	}
	freeSpace(t, p.data)
	if !comesTrue(healMax, func() bool { got, err := set(p); return err == nil && got.good() && shows("ok")() }) {
		t.Fatal("with space the node does not go on")
	}

	fill(t, p.data, 0) // not even raft can write
	for range 5 {
		if !comesTrue(healMax, func() bool { got, err := set(r.nodes[0]); return err == nil && got.good() }) {
			t.Fatal("the others do not go on")
		}
	}
	freeSpace(t, p.data)
	if !comesTrue(healMax, func() bool { got, err := set(p); return err == nil && got.good() && shows("ok")() }) {
		t.Fatal("with space the node does not go on a second time")
	}
	if !r.awaitSameRecords() {
		t.Error("the nodes do not come to the same record")
	}
}
