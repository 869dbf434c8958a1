//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// startTimeout is how long a server may take until its first answer, stopTimeout until it exits; then it is killed.
const (
	startTimeout = 60 * time.Second
	stopTimeout  = 15 * time.Second
	// pollInterval is short enough to measure milliseconds, and long enough to cause no load.
	pollInterval = time.Millisecond
	// outputBytesMax is how much of a process's output is kept.
	outputBytesMax = 32 << 10
)

// command describes a process to start.
type command struct {
	name string      // used in errors: nginx
	argv []string    // program and arguments
	dir  string      // working directory, "" = the bench's
	tls  *tls.Config // of clients of a server with TLS
	// stopSignal asks the process to stop, also when the bench dies; 0 is SIGTERM.
	stopSignal syscall.Signal
}

// process is a child process. stop or kill waits for its end.
type process struct {
	*command
	cmd     *exec.Cmd
	done    chan struct{} // closed when it has exited
	exitErr error         // of Wait, valid once done is closed

	mu     sync.Mutex
	output []byte
}

// startProcess starts a process on one core, or on any core if core < 0.
//
// The process has its own process group, so that an interrupt at the terminal reaches only the bench, which then
// stops its processes in order. Danger: the kernel sends Pdeathsig when the thread that started the process ends. The
// Go runtime keeps its threads, except one that is locked to a goroutine: no such goroutine may start a process.
func startProcess(c *command, core int) (*process, error) {
	if c.stopSignal == 0 {
		c.stopSignal = syscall.SIGTERM
	}
	cmd := exec.Command(c.argv[0], c.argv[1:]...)
	p := &process{command: c, cmd: cmd, done: make(chan struct{})}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.dir, environment(), p, p
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: c.stopSignal}
	cmd.WaitDelay = stopTimeout // descendants may keep its output open
	if err := pinToCore(core, cmd.Start); err != nil {
		return nil, fmt.Errorf("start %s on core %d: %w", c.name, core, err)
	}
	go func() {
		defer close(p.done)
		p.exitErr = cmd.Wait()
	}()
	return p, nil
}

// environment returns the same variables on every machine, except for search paths, so that settings of the caller's
// environment (Go, node, PostgreSQL) do not change what is measured.
func environment() []string {
	env := []string{"LC_ALL=C", "GOMAXPROCS=1"}
	for _, name := range []string{"PATH", "HOME", "TMPDIR"} {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// Write appends to the kept output, which is bounded.
func (p *process) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.output = append(p.output, text...)
	p.output = p.output[max(0, len(p.output)-outputBytesMax):]
	return len(text), nil
}

// findLine returns the first kept line that contains text, or "".
func (p *process) findLine(text string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for line := range strings.Lines(string(p.output)) {
		if strings.Contains(line, text) && strings.HasSuffix(line, "\n") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// withOutput wraps an error with the state of the process and its last output.
func (p *process) withOutput(why error) error {
	state := "it runs"
	select {
	case <-p.done:
		state = p.cmd.ProcessState.String()
	default:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Errorf("%s: %w (%s); last output:\n%s", p.name, why, state, p.output[max(0, len(p.output)-2000):])
}

// errExited means that a process exited unexpectedly.
var errExited = errors.New("exited unexpectedly")

// await polls until ok returns true, the process exits or ctx ends.
func (p *process) await(ctx context.Context, what string, so func() bool) error {
	pause := time.NewTicker(pollInterval)
	defer pause.Stop()
	for !so() {
		select {
		case <-pause.C:
		case <-p.done:
			if so() {
				return nil
			}
			return p.withOutput(errExited)
		case <-ctx.Done():
			return p.withOutput(fmt.Errorf("waiting for %s: %w", what, ctx.Err()))
		}
	}
	return nil
}

// awaitLine waits for a line of output that contains text.
func (p *process) awaitLine(ctx context.Context, text string) (line string, err error) {
	err = p.await(ctx, strconv.Quote(text), func() bool { line = p.findLine(text); return line != "" })
	return line, err
}

// awaitExit waits for the end of a process that ends by itself.
func (p *process) awaitExit(ctx context.Context) error {
	select {
	case <-p.done:
	case <-ctx.Done():
		p.kill()
		return p.withOutput(ctx.Err())
	}
	if p.exitErr != nil {
		return p.withOutput(p.exitErr)
	}
	return nil
}

// stop asks the process to exit and waits for it. It is an error if it had exited before, exits with an error, or
// must be killed.
func (p *process) stop() error {
	select {
	case <-p.done:
		return p.withOutput(errExited)
	default:
	}
	_ = p.cmd.Process.Signal(p.stopSignal) // it may have just exited
	patience, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return p.awaitExit(patience)
}

// kill kills the process and the rest of its process group, and waits.
func (p *process) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may have exited
	<-p.done
}

// pinToCore calls do with the thread pinned to one core, or unpinned if core < 0: processes started by do inherit the
// core.
//
// While the thread is locked to its goroutine the runtime starts no thread from it, so that nothing else of the bench
// inherits the core.
func pinToCore(core int, do func() error) error {
	if core < 0 {
		return do()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, one unix.CPUSet
	one.Set(core)
	if err := errors.Join(unix.SchedGetaffinity(0, &before), unix.SchedSetaffinity(0, &one)); err != nil {
		return fmt.Errorf("this machine gives the bench no core %d: %w", core, err)
	}
	err := do()
	return errors.Join(err, unix.SchedSetaffinity(0, &before))
}

// cpuClockKind selects the process's scheduler clock: nanoseconds of all its threads, including those that have
// ended.
const cpuClockKind = 2

// cpuTime returns the user and system CPU time of a process and its living descendants: nginx's worker, PostgreSQL's
// backends.
func cpuTime(pid int) (time.Duration, error) {
	var spent unix.Timespec
	if err := unix.ClockGettime(int32(^pid)<<3|cpuClockKind, &spent); err != nil {
		return 0, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
	}
	total := time.Duration(spent.Nano())
	for _, below := range childPIDs(pid) {
		if spent, err := cpuTime(below); err == nil { // else it has just exited
			total += spent
		}
	}
	return total, nil
}

// childPIDs returns the living children of a process.
func childPIDs(pid int) (found []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is valid
	for _, list := range lists {
		text, _ := os.ReadFile(list) // the thread may have ended
		for _, field := range strings.Fields(string(text)) {
			if number, err := strconv.Atoi(field); err == nil {
				found = append(found, number)
			}
		}
	}
	return found
}
