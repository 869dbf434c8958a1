//go:build faults

package faults

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
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
	return buildProgram("tasard")
})

// program returns the path of the program, built once in a run.
func program(t *testing.T) string {
	t.Helper()
	path, err := plainProgram()
	noError(t, err)
	return path
}

// buildProgram builds it with more flags into the scratch directory.
func buildProgram(name string, flags ...string) (string, error) {
	dir, err := scratch()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	cmd := exec.Command("go", append(append([]string{"build", "-trimpath", "-o", path}, flags...), ".")...)
	cmd.Dir = root
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w\n%s", err, output)
	}
	return path, nil
}

// buildOverlay builds the program with other texts in place of files, by their path in this module ("wal/log.go") or,
// for a file of the standard library, by their whole path. flags are more flags of go build.
func buildOverlay(t *testing.T, name string, texts map[string]string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	for file, text := range texts {
		if !filepath.IsAbs(file) {
			absolute, err := filepath.Abs(filepath.Join(root, file))
			noError(t, err)
			file = absolute
		}
		instead := filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		noError(t, os.WriteFile(instead, []byte(text), 0o600))
		replace[file] = instead
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	noError(t, err)
	list := filepath.Join(dir, "overlay.json")
	noError(t, os.WriteFile(list, text, 0o600))
	path, err := buildProgram(name, append([]string{"-overlay", list}, flags...)...)
	noError(t, err)
	return path
}

// replaceText returns a file of the module in which each first text of changes is replaced by the second, at its only
// place. If the first text is missing the test fails: the control would test nothing.
func replaceText(t *testing.T, file string, changes ...string) string {
	t.Helper()
	if !filepath.IsAbs(file) {
		file = filepath.Join(root, file)
	}
	source, err := os.ReadFile(file)
	noError(t, err)
	text := string(source)
	for ; len(changes) > 1; changes = changes[2:] {
		if found := strings.Count(text, changes[0]); found != 1 {
			t.Fatalf("change %s: want once, found %d times:\n%s", file, found, changes[0])
		}
		text = strings.Replace(text, changes[0], changes[1], 1)
	}
	return text
}

// buildMutant builds the program with a bug planted in one file.
func buildMutant(t *testing.T, name, file string, changes ...string) string {
	t.Helper()
	return buildOverlay(t, name, map[string]string{file: replaceText(t, file, changes...)})
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
	t        *testing.T
	Cmd      *exec.Cmd
	URL      string        // valid once listens has returned
	data     string        // "" if the command names none
	socket   string        // management socket
	Done     chan struct{} // closed when the process has exited and its output is read
	Ended    time.Time     // when done was closed
	Expected bool          // in the intended way

	mu    sync.Mutex
	lines []string      // of stdout and stderr
	more  chan struct{} // closed and replaced with each line
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
	n := &node{t: t, Cmd: exec.Command(words[0], words[1:]...), Done: make(chan struct{}), more: make(chan struct{})}
	for i, word := range c.args {
		if word == "--data" && i+1 < len(c.args) {
			n.data, n.socket = c.args[i+1], filepath.Join(c.args[i+1], "admin.sock")
		}
		if word == "--admin-socket" && i+1 < len(c.args) { // it comes after --data: see serveArgs
			n.socket = c.args[i+1]
		}
	}
	n.Cmd.Env = append(os.Environ(), c.env...)
	n.Cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that it is killed together with its tracer
	read, write, err := os.Pipe()
	noError(t, err)
	n.Cmd.Stdout, n.Cmd.Stderr = write, write
	if err := n.Cmd.Start(); err != nil {
		t.Fatal(errors.Join(err, read.Close(), write.Close()))
	}
	_ = write.Close() // the child has a copy
	go n.readOutput(read)
	t.Cleanup(n.destroy)
	return n
}

// destroy kills the process in any state.
func (n *node) destroy() {
	select {
	case <-n.Done:
	default:
		_ = syscall.Kill(-n.Cmd.Process.Pid, syscall.SIGKILL) // it may have exited
		<-n.Done
	}
	if n.t.Failed() && !n.Expected {
		n.t.Logf("the last lines of process %d (%v):\n%s", n.Cmd.Process.Pid, n.Cmd.ProcessState, n.Tail(30))
	}
}

// readOutput reads lines until the process exits.
func (n *node) readOutput(output *os.File) {
	defer close(n.Done)
	defer output.Close()
	for scanner := bufio.NewScanner(output); scanner.Scan(); {
		n.mu.Lock()
		n.lines = append(n.lines, scanner.Text())
		close(n.more)
		n.more = make(chan struct{})
		n.mu.Unlock()
	}
	_ = n.Cmd.Wait() // ProcessState has the result
	n.Ended = time.Now()
}

// pid is the number of the started process: of the wrapper, unless that turns into the program.
func (n *node) pid() int { return n.Cmd.Process.Pid }

// Find waits for the first line that contains a text; false if the process exits or time is up before.
func (n *node) Find(text string) (string, bool) {
	deadline := time.NewTimer(waitTimeout)
	defer deadline.Stop()
	for last := false; ; {
		n.mu.Lock()
		more := n.more
		n.mu.Unlock()
		if line, found := n.FindNow(text); found || last {
			return line, found
		}
		select {
		case <-more:
		case <-n.Done:
			last = true
		case <-deadline.C:
			last = true
		}
	}
}

// FindNow is find without waiting.
func (n *node) FindNow(text string) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, line := range n.lines {
		if strings.Contains(line, text) {
			return line, true
		}
	}
	return "", false
}

// Await returns the first line that contains a text, which must come.
func (n *node) Await(text string) string {
	n.t.Helper()
	line, found := n.Find(text)
	if !found {
		n.t.Fatalf("the node has not written %q:\n%s", text, n.Tail(50))
	}
	return line
}

// Listens waits until the node listens, even if it still reads its log; false if it exits before.
func (n *node) Listens() bool {
	line, found := n.Find("listening on http://")
	_, address, _ := strings.Cut(line, "listening on ")
	n.URL, _, _ = strings.Cut(strings.TrimSpace(address), `"`)
	return found
}

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

// Tail returns the last lines of the log.
func (n *node) Tail(count int) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.lines[max(0, len(n.lines)-count):], "\n")
}

// Output returns the whole log.
func (n *node) Output() string { return n.Tail(math.MaxInt) }

// Exited reports whether the process has exited.
func (n *node) Exited() bool {
	select {
	case <-n.Done:
		return true
	default:
		return false
	}
}

// Send sends a signal to the process, if it has not exited.
func (n *node) Send(signal syscall.Signal) {
	n.t.Helper()
	if err := n.Cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		n.t.Fatal(err)
	}
}

// AwaitExit waits for the exit code, -1 after a signal.
func (n *node) AwaitExit() int {
	n.t.Helper()
	deadline := time.NewTimer(waitTimeout)
	defer deadline.Stop()
	select {
	case <-n.Done:
	case <-deadline.C:
		n.t.Fatalf("the node does not end:\n%s", n.Tail(50))
	}
	return n.Cmd.ProcessState.ExitCode()
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
