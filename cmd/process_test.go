package cmd

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
)

const (
	// asProgram makes the test binary run as the program itself: its arguments are the command line, the value is the
	// instant at which the clock starts, or "now".
	asProgram = "RUN_AS_TASARD"
	// fileBytesMax is a variable that makes the program's writes fail when a file would become larger.
	fileBytesMax = "RUN_WITH_FILES_UP_TO"
	// withSite is a variable that makes the program find the simulated institutions instead of the network; its value is
	// the seed of their market, and may go on with faults: 7,bhd-site=zeros.
	withSite = "RUN_WITH_SIMULATED_SITE"
	// childEnv makes the test binary run as one of childPrograms.
	childEnv = "RUN_AS_CHILD"
	// realFile is a file of real observations, which lies beside the repository on machines that have it.
	realFile = "../shared/data/observations.csv"
	// realNow is an instant at which the newest real observations are an hour old.
	realNow = "2026-06-30T15:00:00Z"
	// patience bounds every wait for another process, and every command.
	patience = 2 * time.Minute
	// parallelTests is how many of the tests that may run beside others do.
	parallelTests = 6
)

// scratch is a directory for what all tests of a run share, such as programs that are built once.
var scratch string

// childPrograms are the other programs that the test binary can be, by the value of childEnv. Each returns its exit
// code.
var childPrograms = map[string]func(args []string) int{}

func TestMain(m *testing.M) {
	if name, is := os.LookupEnv(childEnv); is {
		os.Exit(childPrograms[name](os.Args[1:]))
	}
	start, isProgram := os.LookupEnv(asProgram)
	if !isProgram {
		if err := os.Chdir(".."); err != nil { // where the files lie that the program speaks of
			panic(err)
		}
		// Tests that run beside others wait for processes most of the time: more of them than there are processors. Fault
		// tests load the machine.
		flag.Parse()
		var err error
		if !strings.Contains(flag.Lookup("test.run").Value.String(), "TestFaults") {
			err = flag.Set("test.parallel", strconv.Itoa(parallelTests))
		}
		if err != nil {
			panic(err)
		}
		if scratch, err = os.MkdirTemp("", "tasard-test-"); err == nil {
			err = errors.Join(os.WriteFile(scratch+"/ca.pem", []byte(trusted().pem), 0o600), os.Setenv("SSL_CERT_FILE", scratch+"/ca.pem"))
		}
		if err != nil {
			panic(err)
		}
		if signal.Ignored(syscall.SIGHUP) { // as nohup asks; a program that is started while it is handled does not inherit that
			signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
		}
		code := m.Run()
		_ = os.RemoveAll(scratch)
		os.Exit(code)
	}
	if limit, err := strconv.ParseUint(os.Getenv(fileBytesMax), 10, 64); err == nil {
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			panic(err)
		}
	}
	p := &commands{&process.Process{
		Args: os.Args[1:], Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Clock: clockFrom(start), Random: rand.Reader,
	}}
	if wish, given := os.LookupEnv(withSite); given {
		p.simulate(wish)
	}
	os.Exit(p.run(SignalContext()))
}

// clockFrom runs as the real clock does, but from an instant of the test's choice.
func clockFrom(start string) func() time.Time {
	base, err := time.Parse(time.RFC3339, start)
	if err != nil {
		return time.Now
	}
	began := time.Now()
	return func() time.Time { return base.Add(time.Now().Sub(began)) } //nolint:staticcheck // S1012: time.Since is not allowed here
}

// sweep returns whole when SWEEP=whole asks for complete sweeps, as make check does, and sample otherwise.
func sweep(sample, whole int) int {
	if os.Getenv("SWEEP") == "whole" {
		return whole
	}
	return sample
}

// needReal skips the test where the real observations are not at hand.
func needReal(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(realFile); err != nil {
		t.Skipf("%s is not here", realFile)
	}
}

// result is what a command that ran to its end left behind.
type result struct {
	args           []string
	code           int
	stdout, stderr string
}

// fails wants an exit code, nothing on stdout but what an import and a demo tell first, and on stderr one line that
// contains all the parts.
func (o result) fails(t *testing.T, code int, parts ...string) {
	t.Helper()
	if o.code != code || o.stdout != "" && o.args[0] != "import" && o.args[0] != "demo" {
		t.Errorf("tasard %s: exit code %d, want %d\n%s%s", strings.Join(o.args, " "), o.code, code, o.stdout, o.stderr)
	}
	oneLine(t, o.stderr, parts...)
}

// run carries a command out in this process; stdin may be nil.
func run(t *testing.T, environ []string, stdin io.Reader, args ...string) result {
	t.Helper()
	return runAt(t, clockFrom(realNow), environ, stdin, args...)
}

// runAt is run with a clock of the test's own.
func runAt(t *testing.T, clock func() time.Time, environ []string, stdin io.Reader, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return execute(ctx, &process.Process{Args: args, Environ: environ, Stdin: cmp.Or[io.Reader](stdin, strings.NewReader("")), Clock: clock})
}

// execute carries a command out in this process, with output of its own if p names none.
func execute(ctx context.Context, p *process.Process) result {
	var stdout, stderr bytes.Buffer
	p.Stdout, p.Stderr, p.Random = cmp.Or[io.Writer](p.Stdout, &stdout), &stderr, rand.Reader
	code := (&commands{p}).run(ctx)
	return result{p.Args, code, stdout.String(), stderr.String()}
}

// promptly is run for a command that must end within a second, or as much later as the machine is slow: a command
// that has nothing to do tells that. Other programs use the machine too: the shortest of three counts.
func promptly(t *testing.T, args ...string) (got result) {
	t.Helper()
	clock := clockFrom("now")
	for try := 1; ; try++ {
		began := clock()
		mustRun(t, "version")
		idle := clock().Sub(began)
		got = run(t, nil, nil, args...)
		took := clock().Sub(began) - idle
		if took <= time.Second+20*idle {
			return got
		}
		if try == 3 {
			t.Errorf("tasard %s took %s", strings.Join(args, " "), took)
			return got
		}
	}
}

// mustRun is run for a command that must end well; it returns its output.
func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	got := run(t, nil, nil, args...)
	if got.code != exit.OK {
		t.Fatalf("tasard %s: exit code %d\n%s%s", strings.Join(args, " "), got.code, got.stdout, got.stderr)
	}
	return got.stdout
}

// start begins a command in a process of its own; the test ends it.
func start(t *testing.T, clock string, args ...string) *program {
	t.Helper()
	return startWith(t, clock, nil, args...)
}

// startWith is start with more variables in the environment.
func startWith(t *testing.T, clock string, environ []string, args ...string) *program {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), asProgram+"="+clock), environ...)
	return startChild(t, cmd)
}

// listening waits until the program listens and remembers where.
func (p *program) listening() *program {
	p.t.Helper()
	if !p.Listens() {
		p.t.Fatalf("the program does not listen:\n%s", p.Output())
	}
	return p
}

// signal sends a signal and waits for the end; it returns the exit code, -1 for a death by signal.
func (p *program) signal(s os.Signal) int {
	p.t.Helper()
	p.Send(s)
	return p.AwaitExit()
}

// stop is signal for a program that must end in order.
func (p *program) stop(s os.Signal) {
	p.t.Helper()
	if code := p.signal(s); code != exit.OK {
		p.t.Errorf("exit code %d:\n%s", code, p.Output())
	}
}

// ask is one request of which only status and headers matter.
func (p *program) ask(method, path string) (int, http.Header) {
	p.t.Helper()
	got := caller{t: p.t, node: p}.send(method, path, "")
	return got.status, got.header
}

// get is one request on a connection of its own.
func (p *program) get(path string) (int, string, error) {
	got, err := caller{t: p.t, node: p}.try(http.MethodGet, path, "")
	return got.status, got.body, err
}

// mustGet is get for an answer that must be 200.
func (p *program) mustGet(path string) string {
	p.t.Helper()
	status, body, err := p.get(path)
	if err != nil || status != http.StatusOK {
		p.t.Fatalf("GET %s: status %d, %v\n%s", path, status, err, body)
	}
	return body
}

// noError ends a test at an error.
func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// oneLine fails unless the text is one line that contains each of the parts.
func oneLine(t *testing.T, text string, parts ...string) {
	t.Helper()
	if strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, "\n") {
		t.Errorf("want one line, got %q", text)
	}
	contains(t, text, parts...)
}

// contains fails unless the text contains each of the parts.
func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not contain %q", text, part)
		}
	}
}

// lastLine is the last line of a text.
func lastLine(text string) string {
	return text[strings.LastIndex(strings.TrimSuffix(text, "\n"), "\n")+1:]
}

// serveArgs are the arguments of a node on a free port of this machine, without limits.
func serveArgs(data string, more ...string) []string {
	args := []string{"serve", "--listen", "127.0.0.1:0", "--data", data, "--no-collect", "--log-format", "text", "--limits", "off"}
	return append(args, more...)
}

// startReady starts a node with some arguments and waits until it has read its log.
func startReady(t *testing.T, args ...string) *program {
	t.Helper()
	p := start(t, realNow, args...).listening()
	p.Await("recovered")
	return p
}

// startNode is startReady for a node on a data directory.
func startNode(t *testing.T, data string, more ...string) *program {
	t.Helper()
	return startReady(t, serveArgs(data, more...)...)
}

// startImported is startReady with some lines to import; it waits until they are in.
func startImported(t *testing.T, args []string, lines ...string) *program {
	t.Helper()
	p := startReady(t, append(args, "--import", observationsFile(t, lines...))...)
	p.Await("imported")
	return p
}

// importedData is a data directory into which some lines were imported.
func importedData(t *testing.T, lines ...string) string {
	t.Helper()
	data := t.TempDir()
	mustRun(t, "import", "--data", data, observationsFile(t, lines...))
	return data
}

// observationsFile is a file of observations.
func observationsFile(t *testing.T, lines ...string) string {
	t.Helper()
	return writeFile(t, "o.csv", header+strings.Join(lines, ""))
}

// commandIn are the words of a command in which DIR stands for a directory, whose name may have blanks.
func commandIn(dir, command string) []string {
	words := strings.Fields(command)
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], "DIR", dir)
	}
	return words
}

// takenAddress is one at which another program listens until the test ends.
func takenAddress(t *testing.T) string {
	t.Helper()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	return taken.Addr().String()
}

// writeFile makes a file for a test and returns its name.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := t.TempDir() + "/" + name
	noError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// header is the first line of a CSV file of observations.
const header = "observedAt,institutionId,currency,channel,kind,buy,sell,sourceId,effectiveDate,publishedAt\n"

// observation returns a valid line of a CSV file.
func observation(minute int, buy, sell string) string {
	return fmt.Sprintf("2026-06-30T14:%02d:00Z,popular,USD,,,%s,%s,popular-site,,\n", minute, buy, sell)
}

// comesTrue polls a condition; false if it does not hold in time.
func comesTrue(span time.Duration, is func() bool) bool {
	deadline, tick := time.NewTimer(span), time.NewTicker(10*time.Millisecond)
	defer deadline.Stop()
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-deadline.C:
			return is()
		}
	}
	return true
}

// eventually waits until a condition holds, as it must.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	if !comesTrue(patience, is) {
		t.Fatalf("it does not come true: %s", what)
	}
}

// tailLines is the number of output lines in error messages.
const tailLines = 50

// program is a child process with its collected lines of output.
type program struct {
	Cmd   *exec.Cmd
	URL   string        // address of the node; set by Listens
	Done  chan struct{} // closed when the process has exited and its output has been read
	Ended time.Time     // exit time; valid when Done is closed
	// Expected is set by a test after the process has ended as intended. Otherwise a failing test logs the end of the
	// output.
	Expected bool

	t     *testing.T
	mu    sync.Mutex
	lines []string
	more  chan struct{} // closed and replaced by a new channel when a line arrives
}

// startChild starts a command. At the end of the test it kills the process, or its process group if the command has one
// (Setpgid).
func startChild(t *testing.T, cmd *exec.Cmd) *program {
	t.Helper()
	read, write, err := os.Pipe()
	noError(t, err)
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		t.Fatal(errors.Join(err, read.Close(), write.Close()))
	}
	_ = write.Close() // the child has a copy
	p := &program{Cmd: cmd, Done: make(chan struct{}), t: t, more: make(chan struct{})}
	go func() {
		defer close(p.Done)
		defer read.Close()
		for scanner := bufio.NewScanner(read); scanner.Scan(); {
			p.mu.Lock()
			p.lines = append(p.lines, scanner.Text())
			close(p.more)
			p.more = make(chan struct{})
			p.mu.Unlock()
		}
		_ = cmd.Wait() // ProcessState has the result
		p.Ended = time.Now()
	}()
	t.Cleanup(p.destroy)
	return p
}

// destroy kills the process if it still runs. If the test has failed, and the process has not ended as intended
// (Expected), destroy logs the end of the output.
func (p *program) destroy() {
	if !p.Exited() {
		target := p.Cmd.Process.Pid
		if attributes := p.Cmd.SysProcAttr; attributes != nil && attributes.Setpgid {
			target = -target
		}
		_ = syscall.Kill(target, syscall.SIGKILL) // it may have just exited
		<-p.Done
	}
	if p.t.Failed() && !p.Expected {
		p.t.Logf("the last lines of process %d (%v):\n%s", p.Cmd.Process.Pid, p.Cmd.ProcessState, p.Tail(tailLines))
	}
}

// Find waits for the first line that contains a text. It returns false if the process exits first, or does not write it
// in time.
func (p *program) Find(text string) (line string, found bool) {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for last := false; ; {
		p.mu.Lock()
		more := p.more
		p.mu.Unlock()
		if line, found := p.FindNow(text); found || last {
			return line, found
		}
		select {
		case <-more:
		case <-p.Done:
			last = true
		case <-deadline.C:
			last = true
		}
	}
}

// FindNow is like Find, but does not wait: it searches only the lines that have arrived.
func (p *program) FindNow(text string) (line string, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.lines {
		if strings.Contains(line, text) {
			return line, true
		}
	}
	return "", false
}

// Await is like Find, but fails the test if there is no such line.
func (p *program) Await(text string) string {
	p.t.Helper()
	line, found := p.Find(text)
	if !found {
		p.t.Fatalf("the program has not written %q:\n%s", text, p.Tail(tailLines))
	}
	return line
}

// Listens waits until the node listens, and sets URL. It returns false if the process exits first.
func (p *program) Listens() bool {
	line, found := p.Find("listening on http://")
	_, address, _ := strings.Cut(line, "listening on ")
	p.URL, _, _ = strings.Cut(strings.TrimSpace(address), `"`)
	return found
}

// Tail returns the last lines of the output.
func (p *program) Tail(count int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines[max(0, len(p.lines)-count):], "\n")
}

// Output returns all lines of the output.
func (p *program) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// Exited reports whether the process has exited.
func (p *program) Exited() bool {
	select {
	case <-p.Done:
		return true
	default:
		return false
	}
}

// Send sends a signal to the process, unless it has exited.
func (p *program) Send(signal os.Signal) {
	p.t.Helper()
	if err := p.Cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatal(err)
	}
}

// AwaitExit waits until the process exits. It returns the exit code, or -1 if a signal ended the process.
func (p *program) AwaitExit() int {
	p.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	select {
	case <-p.Done:
	case <-deadline.C:
		p.t.Fatalf("the program does not end:\n%s", p.Tail(tailLines))
	}
	return p.Cmd.ProcessState.ExitCode()
}
