//go:build faults

package faults

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tasard/tasard/cmd/cmdtest"
)

const (
	// waitTimeout bounds every wait for another process.
	waitTimeout = 60 * time.Second
	// root is the module's directory, relative to this package.
	root = "../.."
	// childEnv makes the test binary run as one of childPrograms instead of running tests.
	childEnv = "FAULTS_CHILD"
)

// childPrograms are the programs that the test binary can be; each returns its exit code.
func childPrograms() map[string]func(args []string) int {
	return map[string]func(args []string) int{workloadChild: workloadMain}
}

func TestMain(m *testing.M) {
	if name, is := os.LookupEnv(childEnv); is {
		os.Exit(childPrograms()[name](os.Args[1:]))
	}
	code := m.Run()
	if dir, err := scratch(); err == nil {
		_ = os.RemoveAll(dir) // the rest is in the directory for temporary files
	}
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// scratch is one directory for all tests of a run, for programs that are built once.
var scratch = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "tasard-faults-") })

// plainProgram is the program as users build it. A test that runs inNamespace gets its path in an environment
// variable.
var plainProgram = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(programEnv); path != "" {
		return path, nil
	}
	return buildProgram("tasard", nil)
})

// program returns the path of the program, built once in a run.
func program(t *testing.T) string {
	t.Helper()
	path, err := plainProgram()
	noError(t, err)
	return path
}

// buildProgram builds it into the scratch directory; texts and flags are those of cmdtest.Build.
func buildProgram(name string, texts map[string]string, flags ...string) (string, error) {
	dir, err := scratch()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	return path, cmdtest.Build(root, path, texts, append(flags, "-trimpath")...)
}

// buildWith builds the program with planted bugs.
func buildWith(t *testing.T, name string, plants ...plant) string {
	t.Helper()
	texts := map[string]string{}
	for _, p := range plants {
		text, changed := texts[p.file]
		if !changed {
			path := p.file
			if !filepath.IsAbs(path) {
				path = filepath.Join(root, path)
			}
			source, err := os.ReadFile(path)
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

// command describes how to start a node.
type command struct {
	program string   // "" = the program as users build it
	wrapper []string // strace ..., prlimit ... . With strace -D it is not the parent, and pid is the node's
	args    []string // of the program
	env     []string // in addition to the test's
}

// serveArgs are the arguments of a node on a free local port; the last value of a repeated flag counts.
func serveArgs(data string, more ...string) []string {
	return append([]string{"serve", "--no-collect", "--listen", "127.0.0.1:0", "--log-format", "text", "--data", data}, more...)
}

// node is the program in a process.
type node struct {
	*cmdtest.Process
	t      *testing.T
	data   string // "" if the command names none
	socket string // management socket
}

// start starts a node on a data directory and waits until it answers.
func start(t *testing.T, data string, more ...string) *node {
	t.Helper()
	return launch(t, command{args: serveArgs(data, more...)}).ready()
}

// startWithAccounts starts a node on a new directory with rates and accounts with one key each.
func startWithAccounts(t *testing.T, accounts int, more ...string) (*node, []string) {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	keys := writeDataDir(t, data, accounts)
	return start(t, data, more...), keys
}

// launch starts a process, which is killed at the end of the test.
func launch(t *testing.T, c command) *node {
	t.Helper()
	if c.program == "" {
		c.program = program(t)
	}
	words := append(append(append([]string(nil), c.wrapper...), c.program), c.args...)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = append(os.Environ(), c.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that it is killed together with its tracer
	n := &node{Process: cmdtest.Start(t, cmd), t: t}
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
func (n *node) pid() int { return n.Cmd.Process.Pid }

// answers waits until the node has read its log and answers; false if it exits before.
func (n *node) answers() bool {
	if !n.Listens() {
		return false
	}
	_, found := n.Find("recovered ")
	return found
}

// ready is answers for a node that must answer.
func (n *node) ready() *node {
	n.t.Helper()
	if !n.answers() {
		n.t.Fatalf("the node does not answer (%v):\n%s", n.Cmd.ProcessState, n.Tail(50))
	}
	return n
}

// kill kills it and waits.
func (n *node) kill() {
	n.t.Helper()
	n.Send(syscall.SIGKILL)
	n.AwaitExit()
	n.Expected = true
}

// stop stops it in order, and wants exit code 0.
func (n *node) stop() {
	n.t.Helper()
	n.Send(syscall.SIGTERM)
	if code := n.AwaitExit(); code != 0 {
		n.t.Errorf("the node ended with %d after SIGTERM:\n%s", code, n.Tail(50))
	}
	n.Expected = true
}

// admin makes a client of the node's management socket.
func (n *node) admin() *httpClient { return newAdminClient(n.socket) }

// mustGet requests a path without a key, which must be answered 200.
func (n *node) mustGet(path string) string {
	n.t.Helper()
	c := newHTTPClient("")
	defer c.close()
	got, err := c.do(http.MethodGet, n.URL+path, "", nil)
	if err != nil || got.status != http.StatusOK {
		n.t.Fatalf("GET %s: status %d, %v\n%s", path, got.status, err, got.body)
	}
	return string(got.body)
}

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

// noError ends a test at an error.
func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
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
