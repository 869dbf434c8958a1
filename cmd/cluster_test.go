package cmd

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/engine"
)

// TestCluster_Options: what is wrong with the settings of a cluster is named before anything is touched. The golden
// file of bad input has what is missing.
func TestCluster_Options(t *testing.T) {
	const members = "--cluster-members=1=127.0.0.1:6221,2=127.0.0.1:6222,3=127.0.0.1:6223"
	secret := "--cluster-secret-file=" + secretFile(t)
	for want, args := range map[string][]string{
		"the members lack this node": {"--cluster=a", "--cluster-node=4", secret, members},
		"want 3 or 5":                {"--cluster=a", "--cluster-node=1", secret, "--cluster-members=1=[::1]:1,2=[::1]:2"},
		"want a number from 1 to 64": {"--cluster=a", "--cluster-members=a=h:1"},
	} {
		if got := run(t, nil, nil, append(serveArgs(t.TempDir()), args...)...); got.code != exit.Usage || !strings.Contains(got.stderr, want) {
			t.Errorf("code %d, want %d with %q; it says\n%s", got.code, exit.Usage, want, got.stderr)
		}
	}
}

// secretFile returns a file with the secret of a cluster.
func secretFile(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "secret")
	noError(t, os.WriteFile(path, []byte("0123456789abcdef0123456789abcdef\n"), 0o600))
	return path
}

// TestCluster_SecretForAll: a secret that other users can read is refused.
func TestCluster_SecretForAll(t *testing.T) {
	path := secretFile(t)
	noError(t, os.Chmod(path, 0o644))
	args := append(serveArgs(t.TempDir()), "--cluster=a", "--cluster-node=1", "--cluster-secret-file="+path, "--cluster-members=1=[::1]:1,2=[::1]:2,3=[::1]:3")
	run(t, nil, nil, args...).fails(t, exit.BadData, "--cluster-secret-file: "+path, "chmod 640")
}

// TestCluster_StartWithoutOthers: a node that waits for the others says that it lives and what it waits for, and stops
// in order.
func TestCluster_StartWithoutOthers(t *testing.T) {
	t.Parallel()
	node := start(t, realNow, append(serveArgs(t.TempDir()), clusterArgs(1, clusterAddresses(t), secretFile(t))...)...)
	node.listening().mustGet("/livez")
	if status, body, err := node.get("/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, `"state":"joining"`) || !strings.Contains(body, `"state":"no_majority"`) {
		t.Errorf("readyz: %d %s, %v", status, body, err)
	}
	node.stop(syscall.SIGTERM)
}

// TestCluster_ForgottenSettings: a command without the cluster's settings does not change the directory of a node of a
// cluster, unless the node leaves for good.
func TestCluster_ForgottenSettings(t *testing.T) {
	data := importedData(t, observation(1, "59", "60"))
	identity, log := filepath.Join(data, "cluster.json"), filepath.Join(data, "00000000000000000001")
	write := func(path, text string) {
		noError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write(identity, `{"format": 1, "cluster": "rates", "stream": "1f", "name": "node-3", "node": 3}`)
	whole := readFile(t, log)
	write(log, whole[:len(whole)/2]+"damage"+whole[len(whole)/2+6:])
	run(t, nil, nil, "log", "repair", "--yes", "--data", data).fails(t, exit.BadData, log, "the other nodes of the cluster rates have these records")
	write(log, whole)
	for _, args := range [][]string{serveArgs(data), {"import", "--data", data, "-"}} {
		got := run(t, nil, strings.NewReader(""), args...)
		if got.code != exit.BadData || !strings.Contains(got.stderr, "belongs to node-3 of the cluster rates") {
			t.Errorf("%s: code %d, %s", args[0], got.code, got.stderr)
		}
	}
	oneLine(t, mustRun(t, "admin", "cluster", "leave", "--data", data), "node-3 has left the cluster rates", data)
	if _, err := os.Stat(identity); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory still belongs to the cluster: %v", err)
	}
	run(t, nil, nil, "admin", "cluster", "leave", "--data", data).fails(t, exit.BadData, "belongs to no cluster")
	start(t, realNow, serveArgs(data)...).listening()
}

// clusterAddresses returns six loopback addresses: of three nodes for each other, and for clients. Their ports are
// below those that systems choose, so a node that listens late, or starts again, finds its own free. A UDP socket
// reserves each of them among processes.
func clusterAddresses(t *testing.T) (at []string) {
	t.Helper()
	const first, count = 10_000, 6_000
	for port := os.Getpid() * 97; len(at) < 6; port++ {
		address := fmt.Sprintf("127.0.0.1:%d", first+port%count)
		reservation, err := net.ListenPacket("udp", address)
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = reservation.Close() })
		if l, err := net.Listen("tcp", address); err == nil {
			noError(t, l.Close())
			at = append(at, address)
		}
	}
	return at
}

// clusterArgs make a node one of three at the given addresses.
func clusterArgs(node int, at []string, secret string) []string {
	return []string{
		"--cluster", "test", "--cluster-node", fmt.Sprint(node), "--cluster-members", fmt.Sprintf("1=%s,2=%s,3=%s", at[0], at[1], at[2]),
		"--cluster-secret-file", secret, "--listen", at[2+node],
	}
}

// clusterNodes starts three nodes that are one service, and waits until each has read the log.
func clusterNodes(t *testing.T, box *mailServer) (nodes []caller, directories []string) {
	t.Helper()
	at, secret := clusterAddresses(t), secretFile(t)
	for i := range 3 {
		data := t.TempDir()
		p := start(t, realNow, limitedArgs(data, box, clusterArgs(i+1, at, secret)...)...)
		nodes, directories = append(nodes, caller{t: t, node: p}), append(directories, data)
	}
	for _, one := range nodes {
		one.node.listening().Await("recovered")
	}
	return nodes, directories
}

// has tells whether a node has so many records.
func has(t *testing.T, data string, records uint64) bool {
	t.Helper()
	seen := asJSON[engine.Cluster](t, runAdmin(t, data, "cluster", "status", "--json"))
	return slices.ContainsFunc(seen.Nodes, func(n engine.ClusterNode) bool { return n.Self && n.Record >= records })
}

// TestCluster_ThreeNodes: a code asked for at one node opens a session at another, its key counts at the third; a
// rate is everywhere; the operator sees all three; what one of them has promised holds when it is killed, and when it
// comes back.
func TestCluster_ThreeNodes(t *testing.T) {
	t.Parallel()
	box := newMailServer(t)
	nodes, directories := clusterNodes(t, box)
	runAdmin(t, directories[0], "rates", "set", "bhd", "USD", "--buy", "58.10", "--sell", "59.30", "--by", "ana")

	const email = "ana@example.com"
	nodes[0].must("POST", codesPath, `{"email":"`+email+`"}`, http.StatusAccepted, "")
	code := box.code(email)
	eventually(t, "the second node has the rate and the code", func() bool { return has(t, directories[1], 2) })
	session := nodes[1].must("POST", sessionsPath, fmt.Sprintf(`{"email":%q,"code":%q}`, email, code), http.StatusOK, "")
	token := session.field(t, "token")
	var key string
	eventually(t, "the third node knows the session", func() bool {
		made := nodes[2].with(token).send("POST", keysPath, `{"name":"everywhere"}`)
		if made.status != http.StatusCreated {
			return false
		}
		key = made.field(t, "secret")
		return true
	})
	for i, one := range nodes {
		eventually(t, fmt.Sprintf("node %d knows the key", i+1), func() bool { return one.with(key).send("GET", usagePath, "").status == http.StatusOK })
		one.with(key).must("GET", countedPath, "", http.StatusOK, "")
		if status := runAdmin(t, directories[i], "cluster", "status"); strings.Count(status, "reachable")+1 < 3 || !strings.Contains(status, "leads") {
			t.Errorf("node %d sees\n%s", i+1, status)
		}
	}
	eventually(t, "the first node knows of the requests at the others", func() bool {
		_, rest, _ := strings.Cut(nodes[0].with(key).must("GET", usagePath, "", http.StatusOK, "").body, `"day":{"limit":1000,"remaining":`)
		left, err := strconv.Atoi(strings.TrimRight(rest[:4], ",}"))
		return err == nil && left <= 997
	})

	nodes[1].node.signal(syscall.SIGKILL)
	old := copyDirectory(t, directories[1])
	eventually(t, "the two that are left write", func() bool {
		return run(t, nil, nil, "admin", "rates", "set", "bhd", "USD", "--buy", "58.20", "--sell", "59.40", "--data", directories[0]).code == exit.OK
	})
	again := startReady(t, nodes[1].node.Cmd.Args[1:]...)
	eventually(t, "the killed node has caught up", func() bool {
		_, body, err := again.get("/v1/rates/best?currency=USD&operation=buy")
		return err == nil && strings.Contains(body, "59.40")
	})
	nodes[1].node = again
	eventually(t, "the node that came back has a majority for its leases", func() bool {
		return nodes[1].with(key).send("GET", countedPath, "").status == http.StatusOK
	})
	again.stop(syscall.SIGTERM)
	restoredOldCopy(t, again.Cmd.Args[1:], directories[1], old)
	withoutOthers(t, []caller{nodes[0], nodes[2]}, directories[0])
}

// copyDirectory copies the data directory of a node that was killed.
func copyDirectory(t *testing.T, data string) string {
	t.Helper()
	if err := os.Remove(filepath.Join(data, "admin.sock")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	old := filepath.Join(t.TempDir(), "old")
	if output, err := exec.Command("cp", "-a", data, old).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return old
}

// restoredOldCopy puts an old copy of a node's directory in place of the newer one: the node must not go on with it,
// because it has confirmed records to the others that the copy lacks.
func restoredOldCopy(t *testing.T, args []string, data, old string) {
	t.Helper()
	noError(t, errors.Join(os.RemoveAll(data), os.Rename(old, data)))
	if got := run(t, nil, nil, args...); got.code != exit.FailStop || !strings.Contains(got.stderr, "older than what this node has confirmed") {
		t.Errorf("with an old copy: code %d, %s", got.code, got.stderr)
	}
}

// withoutOthers leaves the first of three nodes without the others: it serves its data, refuses changes with a
// reason, and stops in order.
func withoutOthers(t *testing.T, nodes []caller, data string) {
	t.Helper()
	for _, one := range nodes[1:] {
		one.node.signal(syscall.SIGKILL)
	}
	eventually(t, "the node says that the others are missing", func() bool {
		_, body, err := nodes[0].node.get("/readyz")
		return err == nil && strings.Contains(body, `"name":"cluster","state":"no_majority"`)
	})
	if body := nodes[0].node.mustGet("/v1/rates/best?currency=USD&operation=buy"); !strings.Contains(body, "59.40") {
		t.Errorf("without the others it answers %s", body)
	}
	nodes[0].must("POST", codesPath, `{"email":"luis@example.com"}`, http.StatusServiceUnavailable, "no_majority")
	const lost, found = `"msg":"node not reachable","node":"node-3"`, `"msg":"node reachable again","node":"node-3"`
	nodes[0].node.Await(lost)
	// On a slow machine it may have been lost for a moment before.
	if said := nodes[0].node.Output(); strings.Contains(said, "(attempt 2)") || strings.Count(said, lost)-strings.Count(said, found) != 1 {
		t.Errorf("the loss of a node is not logged once:\n%s", said)
	}
	const cause = "no majority of the cluster's members is reachable"
	if status := run(t, nil, nil, "admin", "cluster", "status", "--data", data); status.code != exit.Unavailable || !strings.Contains(status.stderr, cause) {
		t.Errorf("status: code %d, %s", status.code, status.stderr)
	}
	run(t, nil, nil, "admin", "rates", "set", "bhd", "USD", "--buy", "58.10", "--sell", "59.30", "--data", data).fails(t, exit.Unavailable, cause)
	nodes[0].node.stop(syscall.SIGTERM)
}

// TestContract_Cluster: a node of a cluster that follows keeps the contract, with rates that another one had before the
// cluster was formed, and with some that it took in later.
func TestContract_Cluster(t *testing.T) {
	t.Parallel()
	at, secret, first := clusterAddresses(t), secretFile(t), t.TempDir()
	var lines []string
	for i, institution := range []string{"popular", "bhd", "scotiabank", "banreservas"} {
		lines = append(lines, fmt.Sprintf("2026-06-30T14:%02d:00Z,%s,USD,,,58.%d0,59.%d0,%s-site,,\n", i, institution, i, i/2, institution))
	}
	mustRun(t, "import", "--data", first, observationsFile(t, lines[:2]...))
	var nodes []*program
	for i, data := range []string{first, t.TempDir(), t.TempDir()} {
		nodes = append(nodes, start(t, realNow, serveArgs(data, clusterArgs(i+1, at, secret)...)...))
	}
	for _, one := range nodes {
		one.listening().Await("recovered")
	}
	nodes[2].Await(`msg="state copied from another node"`)
	nodes[0].Await(`msg="problem ended" condition=cluster`)
	mustRun(t, "import", "--data", first, observationsFile(t, lines[2:]...))
	eventually(t, "the third node has the rates", func() bool {
		status, _ := nodes[2].ask(http.MethodGet, "/v1/rates")
		return status == http.StatusOK && strings.Contains(nodes[2].mustGet("/v1/rates"), `"total":4`)
	})
	checkContract(t, caller{t: t, node: nodes[2]}, false)
}
