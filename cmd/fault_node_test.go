//go:build faults

package cmd

// The fault tests run the program as users build it under crashes, power cuts, failing disks, clock steps and other
// planted faults. They take minutes, so their files, fault_*_test.go, have the build tag faults. make test-faults runs
// all of them; make test-faults FAULTS=W1 runs those with W1 in their name.
//
// A test is named after the ID of the guarantee that it checks, such as TestFaultsW1_..., and follows these rules:
//
//   - It counts the faults that took effect, prints their number in one line (function figure), and fails if there were
//     none.
//   - It has a control: the same test with a planted bug, which the test must find.
//   - An environment variable sets how often it repeats a fault: W1_KILLS, W2_CUTS, CLUSTER_KILLS.
//   - It calls need, needRoot or needFUSE if it needs programs such as strace, root or FUSE. On a machine without them
//     the test is skipped, and make test-faults reports that.
//
// Tests that mostly wait run in parallel (t.Parallel), after all others. None of them checks a time limit.
//
// A change is acknowledged when the first byte of a successful response has arrived in this process. One type,
// checker, serves single nodes, clusters and contents of backups. TestFaultsW1_ControlChecker is its control: without
// starting a process, it shows the checker each kind of violation.
//
// Tests of clusters cut networks in network namespaces (virtualNetwork). The environment sets their number of faults:
// CLUSTER_LEADERS, CLUSTER_KILLS, CLUSTER_CUTS, CLUSTER_PAUSES. TestFaultsCluster_Run mixes them with misuse and clocks
// that differ (CLUSTER_RUN).

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func init() { childPrograms[workloadChild] = workloadMain } //nolint:gochecknoinits // TestMain has no build tag

// plainProgram is the program as users build it. A test that runs inNamespace gets its path in an environment
// variable.
var plainProgram = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(programEnv); path != "" {
		return path, nil
	}
	return buildProgram("tasard", nil)
})

// builtProgram returns the path of the program, built once in a run.
func builtProgram(t *testing.T) string {
	t.Helper()
	path, err := plainProgram()
	noError(t, err)
	return path
}

// buildProgram builds it into the scratch directory; texts and flags are those of build.
func buildProgram(name string, texts map[string]string, flags ...string) (string, error) {
	path := filepath.Join(scratch, name)
	return path, build(path, texts, append(flags, "-trimpath")...)
}

// buildWith builds the program with planted bugs.
func buildWith(t *testing.T, name string, plants ...plant) string {
	t.Helper()
	texts := map[string]string{}
	for _, p := range plants {
		text, changed := texts[p.file]
		if !changed {
			source, err := os.ReadFile(p.file)
			noError(t, err)
			text = string(source)
		}
		if found := strings.Count(text, p.old); found != 1 {
			t.Fatalf("plant a bug in %s: want once, found %d times:\n%s", p.file, found, p.old)
		}
		texts[p.file] = strings.Replace(text, p.old, p.new, 1)
	}
	path, err := buildProgram(name, texts)
	noError(t, err)
	return path
}

// wantHalfDone fails a test that stopped early: it says how much of its work it did, and less than half proves nothing.
func wantHalfDone(t *testing.T, what string, done, planned int) {
	t.Helper()
	if done < planned {
		progress(t, "stopped early: %d of %d %s", done, planned, what)
	}
	if 2*done < planned {
		t.Errorf("stopped after %d of %d %s: too little to prove anything", done, planned, what)
	}
}

// nodeCommand describes how to start a node.
type nodeCommand struct {
	program string   // "" = the program as users build it
	wrapper []string // strace ..., prlimit ... . With strace -D it is not the parent, and pid is the node's
	args    []string // of the program
	env     []string // in addition to the test's
}

// nodeArgs are the arguments of a node on a free local port; the last value of a repeated flag counts.
func nodeArgs(data string, more ...string) []string {
	return append([]string{"serve", "--no-collect", "--listen", "127.0.0.1:0", "--log-format", "text", "--data", data}, more...)
}

// nodeProcess is the program in a process.
type nodeProcess struct {
	*program
	data   string // "" if the command names none
	socket string // management socket
}

// startBuilt starts a node on a data directory and waits until it answers.
func startBuilt(t *testing.T, data string, more ...string) *nodeProcess {
	t.Helper()
	return launch(t, nodeCommand{args: nodeArgs(data, more...)}).ready()
}

// startWithAccounts starts a node on a new directory with rates and accounts with one key each.
func startWithAccounts(t *testing.T, accounts int, more ...string) (*nodeProcess, []string) {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	keys := writeDataDir(t, data, accounts)
	return startBuilt(t, data, more...), keys
}

// launch starts a process, which is killed at the end of the test.
func launch(t *testing.T, c nodeCommand) *nodeProcess {
	t.Helper()
	if c.program == "" {
		c.program = builtProgram(t)
	}
	words := append(append(append([]string(nil), c.wrapper...), c.program), c.args...)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = append(os.Environ(), c.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that it is killed together with its tracer
	n := &nodeProcess{program: startChild(t, cmd)}
	for i, word := range c.args {
		if word == "--data" && i+1 < len(c.args) {
			n.data, n.socket = c.args[i+1], filepath.Join(c.args[i+1], "admin.sock")
		}
		if word == "--admin-socket" && i+1 < len(c.args) { // it comes after --data: see serveArgs
			n.socket = c.args[i+1]
		}
	}
	return n
}

// pid is the number of the started process: of the wrapper, unless that turns into the program.
func (n *nodeProcess) pid() int { return n.Cmd.Process.Pid }

// answers waits until the node has read its log and answers; false if it exits before.
func (n *nodeProcess) answers() bool {
	if !n.Listens() {
		return false
	}
	_, found := n.Find("recovered ")
	return found
}

// ready is answers for a node that must answer.
func (n *nodeProcess) ready() *nodeProcess {
	n.t.Helper()
	if !n.answers() {
		n.t.Fatalf("the node does not answer (%v):\n%s", n.Cmd.ProcessState, n.Tail(50))
	}
	return n
}

// kill kills it and waits.
func (n *nodeProcess) kill() {
	n.t.Helper()
	n.Send(syscall.SIGKILL)
	n.AwaitExit()
	n.Expected = true
}

// stop stops it in order, and wants exit code 0.
func (n *nodeProcess) stop() {
	n.t.Helper()
	n.Send(syscall.SIGTERM)
	if code := n.AwaitExit(); code != 0 {
		n.t.Errorf("the node ended with %d after SIGTERM:\n%s", code, n.Tail(50))
	}
	n.Expected = true
}

// admin makes a client of the node's management socket.
func (n *nodeProcess) admin() *httpClient { return newAdminClient(n.socket) }

// figure prints a result in the form that make test-faults collects.
func figure(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Logf("FIGURE %s", fmt.Sprintf(format, args...))
}

// progress prints how far a long test is.
func progress(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Logf("PROGRESS %s", fmt.Sprintf(format, args...))
}

// needRoot skips a test that mounts, makes devices or limits processes.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("NEEDS root: run make test-faults as root, in a machine of its own")
	}
}

// need skips a test whose programs are missing; install says how to install them.
func need(t *testing.T, install string, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("NEEDS %s: apt-get install %s", program, install)
		}
	}
}
