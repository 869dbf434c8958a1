//go:build faults

package cmd

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const (
	clusterPort = 6222 // for other nodes
	servePort   = 8080
	// clusterDay and clusterMinute are the limits of callers without an account, never reached. Accounts have smaller
	// ones, so that the headers of an answer show whether the node knew the key.
	clusterDay, clusterMinute = 50_000_000, 60_000
	// healMax is how long a cluster may take to be healthy again after the last fault.
	healMax = 60 * time.Second
	// lookPause is the interval between polls.
	lookPause = 20 * time.Millisecond
)

// nodeCluster is a cluster of real processes: members 1, 2 and 3, and more in tests of the members.
type nodeCluster struct {
	t       *testing.T
	program string
	network *virtualNetwork // nil: all nodes on local loopback addresses
	mail    *mailServer
	flags   []string
	nodes   []*clusterNode
	members []*clusterNode // of the next start of a node; nil: the first three
	spare   string         // an address for another node
}

// clusterNode is one node of a cluster over all its processes: directory and addresses stay.
type clusterNode struct {
	endpoint
	cluster *nodeCluster
	host    string
	data    string
	secret  string   // value of --cluster-secret-file
	prefix  []string // runs its program in its own network
	clock   *wallClock

	process atomic.Pointer[nodeProcess] // the newest
	up      atomic.Bool                 // it has been ready, and was not stopped since
	lives   []*life                     // its processes
}

// life is one process of a node.
type life struct {
	*nodeProcess
	clock  *wallClock
	until  time.Time      // when it was killed or asked to stop
	pauses [][2]time.Time // in which it was stopped with SIGSTOP
}

// newNodeCluster starts a cluster of three. On a virtual network each node has its own namespace.
func newNodeCluster(t *testing.T, program string, s *virtualNetwork, clocks ...*wallClock) *nodeCluster {
	t.Helper()
	r := prepareCluster(t, program, s, clocks...)
	r.startAll()
	return r
}

// prepareCluster is newNodeCluster without starting the nodes.
func prepareCluster(t *testing.T, program string, s *virtualNetwork, clocks ...*wallClock) *nodeCluster {
	t.Helper()
	r := &nodeCluster{t: t, program: program, network: s, mail: newPlainMailServer(t, s.bridge())}
	r.flags = []string{"--quota-day", fmt.Sprint(clusterDay), "--quota-minute", fmt.Sprint(clusterMinute)}
	hosts := freeHosts(t, 4)
	if s != nil {
		hosts = s.hosts
	}
	r.spare = hosts[len(hosts)-1]
	place := t.TempDir()
	for i, host := range hosts[:3] {
		r.nodes = append(r.nodes, r.newNode(place, i+1, host))
		if i < len(clocks) {
			r.nodes[i].clock = clocks[i]
		}
	}
	return r
}

// endpoints returns the nodes as clients see them.
func (r *nodeCluster) endpoints() (all []*endpoint) {
	for _, p := range r.nodes {
		all = append(all, &p.endpoint)
	}
	return all
}

// newNode prepares a node without starting it.
func (r *nodeCluster) newNode(place string, number int, host string) *clusterNode {
	p := &clusterNode{
		cluster: r, host: host, data: filepath.Join(place, fmt.Sprintf("node-%d", number)), secret: filepath.Join(place, "secret"),
		endpoint: endpoint{number: number, url: fmt.Sprintf("http://%s:%d", host, servePort)},
	}
	if r.network != nil {
		p.prefix = r.network.prefix(1 + slices.Index(r.network.hosts, host))
	}
	noError(r.t, os.MkdirAll(p.data, 0o700))
	noError(r.t, os.WriteFile(p.secret, []byte("the secret of nodes that run tests\n"), 0o600))
	p.admin = newAdminClient(filepath.Join(p.data, "admin.sock"))
	r.t.Cleanup(p.admin.close)
	return p
}

// randomPlace draws the addresses of a cluster, because other clusters may run at the same time.
func randomPlace() *rand.Rand {
	return rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), uint64(os.Getpid())))
}

// freeHosts returns loopback addresses with free ports. Clients use other source addresses, so that these stay free
// while a node is down.
func freeHosts(t *testing.T, count int) []string {
	t.Helper()
	chance := randomPlace()
	for range 100 {
		block, free := fmt.Sprintf("127.%d.%d.", 16+chance.IntN(200), chance.IntN(256)), 0
		var hosts []string
		for i := range count {
			hosts = append(hosts, block+fmt.Sprint(i+1))
			for _, port := range []int{clusterPort, servePort} {
				if listener, err := net.Listen("tcp", fmt.Sprintf("%s:%d", hosts[i], port)); err == nil {
					free++
					_ = listener.Close()
				}
			}
		}
		if free == 2*count {
			return hosts
		}
	}
	t.Fatal("no free loopback addresses")
	return nil
}

// launch starts the node's next process and does not wait.
func (p *clusterNode) launch() *nodeProcess {
	var list []string
	members := p.cluster.members
	if members == nil {
		members = p.cluster.nodes[:3]
	}
	for _, p := range members {
		list = append(list, fmt.Sprintf("%d=%s:%d", p.number, p.host, clusterPort))
	}
	args := []string{
		"--log-format", "json", "--listen", fmt.Sprintf("%s:%d", p.host, servePort), "--cluster", "rd", "--cluster-node", fmt.Sprint(p.number),
		"--cluster-members", strings.Join(list, ","),
	}
	if p.host != p.cluster.nodes[p.number-1].host {
		args = append(args, "--cluster-listen", fmt.Sprintf("%s:%d", p.host, clusterPort))
	}
	args = append(append(append(args, "--cluster-secret-file", p.secret), p.cluster.flags...), p.cluster.mail.args()...)
	n := launch(p.cluster.t, nodeCommand{program: p.cluster.program, wrapper: p.prefix, args: nodeArgs(p.data, args...), env: p.clock.env()})
	p.lives = append(p.lives, &life{nodeProcess: n, clock: p.clock})
	p.process.Store(n)
	p.up.Store(false)
	return n
}

// ready waits until the newest process answers /readyz with 200 or, unless all is true, has read its log.
func (p *clusterNode) ready(all bool) {
	p.cluster.t.Helper()
	n := p.process.Load().ready()
	p.up.Store(true)
	c := newHTTPClient("")
	defer c.close()
	if all && !comesTrue(healMax, func() bool { return sampleHealth(c, p.url+"/readyz").states["cluster"] == "ok" }) {
		p.cluster.t.Fatalf("node %d is not ready again:\n%s", p.number, n.Tail(30))
	}
}

// alive reports whether the node was started and not stopped.
func (p *clusterNode) alive() bool { return p.up.Load() }

// kill kills the process.
func (p *clusterNode) kill() { p.end((*nodeProcess).kill) }

// stop stops it in order.
func (p *clusterNode) stop() { p.end((*nodeProcess).stop) }

func (p *clusterNode) end(how func(*nodeProcess)) {
	p.cluster.t.Helper()
	p.up.Store(false)
	p.lives[len(p.lives)-1].until = time.Now()
	how(p.process.Load())
	p.admin.close()
}

// startAll starts every stopped node and waits until all are healthy.
func (r *nodeCluster) startAll() {
	r.t.Helper()
	for _, p := range r.nodes {
		if !p.alive() {
			p.launch()
		}
	}
	for _, p := range r.nodes {
		p.ready(true)
	}
}

// clusterHealth is a node's report of its cluster.
type clusterHealth struct {
	Majority bool
	Leader   string
	Nodes    []struct {
		Reachable, Current bool
		Record, Lag        uint64
	}
}

// health requests the cluster's state; false if the node does not answer or has no majority.
func (p *clusterNode) health() (s clusterHealth, ok bool) {
	got, err := p.admin.do(http.MethodGet, "http://node/cluster", "", nil)
	return s, err == nil && got.decode(&s) == nil && s.Majority
}

// awaitLeader waits for a leader on which two nodes agree.
func (r *nodeCluster) awaitLeader() (leader *clusterNode) {
	r.t.Helper()
	if !comesTrue(healMax, func() bool {
		voices := map[string]int{}
		for _, p := range r.nodes {
			if s, ok := p.health(); ok && p.alive() {
				voices[s.Leader]++
			}
		}
		for _, p := range r.nodes {
			if voices[fmt.Sprintf("node-%d", p.number)] >= 2 && p.alive() {
				leader = p
			}
		}
		return leader != nil
	}) {
		r.t.Fatal("the nodes agree on no leader")
	}
	return leader
}

// awaitSameRecords waits until every node has the same records and reports no lag, while nothing is written.
func (r *nodeCluster) awaitSameRecords() bool {
	r.t.Helper()
	return comesTrue(healMax, func() bool {
		records := map[uint64]bool{}
		for _, p := range r.nodes {
			s, ok := p.health()
			if !ok {
				return false
			}
			for _, n := range s.Nodes {
				if !n.Reachable || n.Lag > 0 {
					return false
				}
				records[n.Record] = true
			}
		}
		return len(records) == 1
	})
}

// virtualNetwork gives every node of a cluster its own network namespace, connected to a bridge on which this process
// is the client of all nodes. To drop what one node sends to another, the sender's neighbour entry gets the address
// of a card that does not exist: each direction can be dropped by itself, and clients reach all nodes all the time.
type virtualNetwork struct {
	t      *testing.T
	name   string
	subnet string // of all addresses
	hosts  []string
}

// macUnused is a hardware address that no card has.
const macUnused = "02:00:5e:ff:ff:ff"

// newVirtualNetwork builds a network for a number of nodes; the test removes it.
func newVirtualNetwork(t *testing.T, count int) *virtualNetwork {
	t.Helper()
	needRoot(t)
	need(t, "iproute2", "ip")
	block := randomPlace().IntN(1 << 14)
	s := &virtualNetwork{t: t, name: fmt.Sprintf("ts%04x", block)}
	s.subnet = fmt.Sprintf("10.%d.%d", 64+block>>8, block&255)
	t.Cleanup(s.remove)
	s.ip("link", "add", s.name, "type", "bridge")
	s.ip("addr", "add", s.bridge()+"/24", "dev", s.name)
	s.ip("link", "set", s.name, "up")
	for number := 1; number <= count; number++ {
		s.hosts = append(s.hosts, fmt.Sprintf("%s.%d", s.subnet, number))
		s.addNode(number)
	}
	for from := range count {
		for to := range count {
			if from != to {
				s.restore(from+1, to+1)
			}
		}
	}
	return s
}

// bridge is this process's address on the network, or of the loopback interface without one.
func (s *virtualNetwork) bridge() string {
	if s == nil {
		return "127.0.0.1"
	}
	return s.subnet + ".254"
}

// addNode makes the namespace of a node and its link.
func (s *virtualNetwork) addNode(number int) {
	space, wire := s.namespace(number), fmt.Sprintf("%sv%d", s.name, number)
	s.ip("netns", "add", space)
	s.ip("link", "add", wire, "type", "veth", "peer", "name", "eth0", "netns", space, "address", s.macAddress(number))
	s.ip("link", "set", wire, "master", s.name, "up")
	s.ip("-n", space, "addr", "add", s.hosts[number-1]+"/24", "dev", "eth0")
	s.ip("-n", space, "link", "set", "lo", "up")
	s.ip("-n", space, "link", "set", "eth0", "up")
}

func (s *virtualNetwork) namespace(number int) string { return fmt.Sprintf("%sn%d", s.name, number) }

// macAddress is the hardware address of a node.
func (s *virtualNetwork) macAddress(number int) string {
	return fmt.Sprintf("02:00:5e:00:%02x:01", number)
}

// prefix runs a program in the namespace of a node.
func (s *virtualNetwork) prefix(number int) []string {
	return []string{"ip", "netns", "exec", s.namespace(number)}
}

// drop drops everything that one node sends to another.
func (s *virtualNetwork) drop(from, to int) { s.setNeighbour(from, to, macUnused) }

// restore ends that.
func (s *virtualNetwork) restore(from, to int) { s.setNeighbour(from, to, s.macAddress(to)) }

func (s *virtualNetwork) setNeighbour(from, to int, card string) {
	s.ip("-n", s.namespace(from), "neigh", "replace", s.hosts[to-1], "lladdr", card, "dev", "eth0", "nud", "permanent")
}

func (s *virtualNetwork) ip(args ...string) { mustExec(s.t, "ip", args...) }

// remove removes the network. Links go with their namespaces.
func (s *virtualNetwork) remove() {
	for number := range s.hosts {
		_ = exec.Command("ip", "netns", "del", s.namespace(number+1)).Run()
	}
	_ = exec.Command("ip", "link", "del", s.name).Run()
}
