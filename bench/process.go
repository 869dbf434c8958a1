package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// stopMax is how long a process may take to end in order; then it is killed.
	stopMax = 15 * time.Second
	// tailLines is how much of a process's output is kept for an error.
	tailLines = 40
	// lineBytesMax bounds a line that is kept.
	lineBytesMax = 4 << 10
)

// errDied is wrapped when a process that was to run has ended.
var errDied = errors.New("it ended by itself")

// command is a process that is to run beside the bench.
type command struct {
	name    string // in errors: nginx
	program program
	args    []string // behind those of the program
	dir     string   // where it runs, "" = where the bench does
	user    *owner   // nil = the bench's own
	// ends asks it to stop; 0 is SIGTERM.
	ends syscall.Signal
	// orphaned is what the kernel sends it when the bench dies, so that none is left behind; 0 is SIGKILL. One that has children
	// of its own needs a signal that it can pass on.
	orphaned syscall.Signal
}

// program is what is executed.
type program struct {
	path string
	args []string // before those of the command
	env  []string // beside the few that every process gets
}

// owner is the user under which a process runs.
type owner struct{ uid, gid uint32 }

// ownProgram is the bench itself, for its hidden subcommands.
func ownProgram() (program, error) {
	path, err := os.Executable()
	if err != nil {
		return program{}, fmt.Errorf("find the bench's own program: %w", err)
	}
	return program{path: path}, nil
}

// child is a process that the bench started, and ends.
type child struct {
	name     string
	cmd      *exec.Cmd
	ends     syscall.Signal
	patience time.Duration // of stop
	output   *tail
	done     chan struct{} // closed when it has ended
	ended    error         // how, once done is closed
}

// spawn starts a process on one core, any with core < 0. Its end is awaited by stop or kill.
func spawn(c *command, core int) (*child, error) {
	cmd := exec.Command(c.program.path, append(append([]string(nil), c.program.args...), c.args...)...)
	cmd.Dir = c.dir
	cmd.Env = append(environment(), c.program.env...)
	cmd.SysProcAttr = attributes(c)
	cmd.WaitDelay = stopMax // for those that inherited its output and live longer
	p := &child{name: c.name, cmd: cmd, ends: c.ends, patience: stopMax, output: newTail(), done: make(chan struct{})}
	if p.ends == 0 {
		p.ends = syscall.SIGTERM
	}
	cmd.Stdout, cmd.Stderr = p.output, p.output
	if err := pinned(core, cmd.Start); err != nil {
		if cmd.Process != nil { // started, but the bench's own thread is not as it was
			killGroup(cmd.Process)
			_ = cmd.Wait() // killed
		}
		return nil, fmt.Errorf("start %s on core %d: %w", c.name, core, err)
	}
	go func() {
		defer close(p.done)
		p.ended = cmd.Wait()
	}()
	return p, nil
}

// environment is the same on every machine but for what finds programs and scratch space: settings of whoever calls the bench (of Go,
// of the node, of PostgreSQL) would change what is measured.
func environment() []string {
	env := []string{"LC_ALL=C", "GOMAXPROCS=1"}
	for _, name := range []string{"PATH", "HOME", "TMPDIR"} {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// pid is the process's number.
func (p *child) pid() int { return p.cmd.Process.Pid }

// alive is an error when the process has ended, with its last words.
func (p *child) alive() error {
	select {
	case <-p.done:
		return p.death(errDied)
	default:
		return nil
	}
}

func (p *child) death(why error) error {
	return fmt.Errorf("%s: %w (%v); its last lines:\n%s", p.name, why, p.cmd.ProcessState, p.output)
}

// line waits until the process has written a line that contains a text.
func (p *child) line(ctx context.Context, text string) (string, error) {
	for {
		line, more := p.output.find(text)
		if line != "" {
			return line, nil
		}
		select {
		case <-more:
		case <-p.done:
			if line, _ := p.output.find(text); line != "" {
				return line, nil
			}
			return "", p.death(errDied)
		case <-ctx.Done():
			return "", fmt.Errorf("%s has not written %q: %w; its last lines:\n%s", p.name, text, ctx.Err(), p.output)
		}
	}
}

// stop asks the process to end and waits for it. One that had ended before is an error, and so is one that ends with an error or must
// be killed.
func (p *child) stop() error {
	if err := p.alive(); err != nil {
		return err
	}
	_ = p.cmd.Process.Signal(p.ends) // it may end at this moment
	patience := time.NewTimer(p.patience)
	defer patience.Stop()
	select {
	case <-p.done:
	case <-patience.C:
		p.kill()
		return fmt.Errorf("%s did not end within %v of %v and was killed; its last lines:\n%s", p.name, p.patience, p.ends, p.output)
	}
	if p.ended != nil {
		return fmt.Errorf("%s: %w at its end; its last lines:\n%s", p.name, p.ended, p.output)
	}
	return nil
}

// kill ends the process as a crash of it would, and waits for it.
func (p *child) kill() {
	killGroup(p.cmd.Process) // it may be over
	<-p.done
}

// tail keeps the last lines of what a process writes.
type tail struct {
	mu      sync.Mutex
	lines   []string
	partial []byte
	more    chan struct{} // closed and replaced with each line
}

var _ io.Writer = (*tail)(nil)

func newTail() *tail { return &tail{more: make(chan struct{})} }

// Write takes output.
func (t *tail) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range text {
		if c != '\n' {
			if len(t.partial) < lineBytesMax {
				t.partial = append(t.partial, c)
			}
			continue
		}
		if len(t.lines) == tailLines {
			t.lines = append(t.lines[:0], t.lines[1:]...)
		}
		t.lines = append(t.lines, string(t.partial))
		t.partial = t.partial[:0]
		close(t.more)
		t.more = make(chan struct{})
	}
	return len(text), nil
}

// find is the first kept line with a text, "" when there is none, and what is closed at the next line.
func (t *tail) find(text string) (string, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, line := range t.lines {
		if strings.Contains(line, text) {
			return line, t.more
		}
	}
	return "", t.more
}

// String is what is kept, also of a line that has no end.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(append(t.lines[:len(t.lines):len(t.lines)], string(t.partial)), "\n")
}
