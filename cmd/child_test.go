package cmd

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// tailLines is the number of output lines in error messages.
const tailLines = 50

// child is a child process with its collected lines of output.
type child struct {
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
func startChild(t *testing.T, cmd *exec.Cmd) *child {
	t.Helper()
	read, write, err := os.Pipe()
	noError(t, err)
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		t.Fatal(errors.Join(err, read.Close(), write.Close()))
	}
	_ = write.Close() // the child has a copy
	p := &child{Cmd: cmd, Done: make(chan struct{}), t: t, more: make(chan struct{})}
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
func (p *child) destroy() {
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

// Find waits for the first line that contains a text. It returns false if the process exits first, or after a minute.
func (p *child) Find(text string) (line string, found bool) {
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
func (p *child) FindNow(text string) (line string, found bool) {
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
func (p *child) Await(text string) string {
	p.t.Helper()
	line, found := p.Find(text)
	if !found {
		p.t.Fatalf("the program has not written %q:\n%s", text, p.Tail(tailLines))
	}
	return line
}

// Listens waits until the node listens, and sets URL. It returns false if the process exits first.
func (p *child) Listens() bool {
	line, found := p.Find("listening on http://")
	_, address, _ := strings.Cut(line, "listening on ")
	p.URL, _, _ = strings.Cut(strings.TrimSpace(address), `"`)
	return found
}

// Tail returns the last lines of the output.
func (p *child) Tail(count int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines[max(0, len(p.lines)-count):], "\n")
}

// Output returns all lines of the output.
func (p *child) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// Exited reports whether the process has exited.
func (p *child) Exited() bool {
	select {
	case <-p.Done:
		return true
	default:
		return false
	}
}

// Send sends a signal to the process, unless it has exited.
func (p *child) Send(signal os.Signal) {
	p.t.Helper()
	if err := p.Cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatal(err)
	}
}

// AwaitExit waits until the process exits. It returns the exit code, or -1 if a signal ended the process.
func (p *child) AwaitExit() int {
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
