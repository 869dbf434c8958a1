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

// If a server has not responded after startTimeout, or not exited after stopTimeout, it is killed.
const (
	startTimeout = 60 * time.Second
	stopTimeout  = 15 * time.Second
	// pollInterval is short enough to measure milliseconds, and long enough to cause no load.
	pollInterval = time.Millisecond
	// outputBytesMax is how much output of a process is kept.
	outputBytesMax = 32 << 10
)

// command describes a process to start.
type command struct {
	name string      // name of the server in error messages, such as nginx
	argv []string    // program and arguments
	dir  string      // working directory; "" = that of the bench
	tls  *tls.Config // configuration for clients of the process; nil without TLS
	// stopSignal stops the process; 0 means SIGTERM. The kernel also sends it to the process if the bench dies.
	stopSignal syscall.Signal
}

// process is a child process. Each started process must be stopped, killed or awaited.
type process struct {
	*command
	cmd     *exec.Cmd
	done    chan struct{} // closed when the process has exited
	exitErr error         // result of Wait; valid when done is closed

	mu     sync.Mutex
	output []byte
}

// startProcess starts a process on one core, or on any core if core < 0. The process gets its own process group, so
// that an interrupt at the terminal reaches only the bench. The bench then stops its processes one by one.
//
// Danger: the kernel sends the signal Pdeathsig when the thread that started the process ends. The Go runtime ends a
// thread only if a goroutine exits without unlocking it. Such a goroutine must not call startProcess.
func startProcess(c *command, core int) (*process, error) {
	if c.stopSignal == 0 {
		c.stopSignal = syscall.SIGTERM
	}
	cmd := exec.Command(c.argv[0], c.argv[1:]...)
	p := &process{command: c, cmd: cmd, done: make(chan struct{})}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.dir, environment(), p, p
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: c.stopSignal}
	cmd.WaitDelay = stopTimeout // limits the wait for children of the process that keep the output open
	if err := pinToCore(core, cmd.Start); err != nil {
		return nil, fmt.Errorf("start %s on core %d: %w", c.name, core, err)
	}
	go func() {
		defer close(p.done)
		p.exitErr = cmd.Wait()
	}()
	return p, nil
}

// environment returns the environment variables of child processes. It copies only paths from the environment of the
// bench, because other variables could change settings of Go, the node or PostgreSQL, and thereby the results.
func environment() []string {
	env := []string{"LC_ALL=C", "GOMAXPROCS=1"}
	for _, name := range []string{"PATH", "HOME", "TMPDIR"} {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// Write receives the output of the process. It keeps the last outputBytesMax bytes.
func (p *process) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.output = append(p.output, text...)
	p.output = p.output[max(0, len(p.output)-outputBytesMax):]
	return len(text), nil
}

// findLine returns the first complete line of the kept output that contains text, or "".
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

// withOutput adds the name and state of the process and its last output to an error.
func (p *process) withOutput(cause error) error {
	state := "it runs"
	select {
	case <-p.done:
		state = p.cmd.ProcessState.String()
	default:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Errorf("%s: %w (%s); last output:\n%s", p.name, cause, state, p.output[max(0, len(p.output)-2000):])
}

var errExited = errors.New("exited unexpectedly")

// await calls ok repeatedly until it returns true. await returns an error if the process exits or ctx ends first.
func (p *process) await(ctx context.Context, what string, ok func() bool) error {
	pause := time.NewTicker(pollInterval)
	defer pause.Stop()
	for !ok() {
		select {
		case <-pause.C:
		case <-p.done:
			if ok() {
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

// awaitExit waits until the process exits, and returns an error if the process has failed. If ctx ends first, awaitExit
// kills the process.
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

// stop sends the stop signal and waits until the process has exited. It returns an error if the process had already
// exited, fails, or has to be killed.
func (p *process) stop() error {
	select {
	case <-p.done:
		return p.withOutput(errExited)
	default:
	}
	_ = p.cmd.Process.Signal(p.stopSignal) // fails if the process has just exited
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return p.awaitExit(ctx)
}

// kill kills the whole process group and waits until the process has exited.
func (p *process) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // fails if the process has exited
	<-p.done
}

// pinToCore pins the current thread to a core, calls do, and gives the thread its cores back. Processes that the
// function do starts inherit the core. If core < 0, pinToCore only calls do.
//
// A new thread would inherit the core too. But the Go runtime starts no threads from a locked thread, so other threads
// of the bench are not pinned.
func pinToCore(core int, do func() error) error {
	if core < 0 {
		return do()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, mask unix.CPUSet
	mask.Set(core)
	if err := errors.Join(unix.SchedGetaffinity(0, &before), unix.SchedSetaffinity(0, &mask)); err != nil {
		return fmt.Errorf("this machine gives the bench no core %d: %w", core, err)
	}
	err := do()
	return errors.Join(err, unix.SchedSetaffinity(0, &before))
}

// cpuClockKind selects the kernel's CPU clock of a process. The clock counts the time of all threads, including
// threads that have ended.
const cpuClockKind = 2

// cpuTime returns the user and system CPU time of a process and its running children. Children are, for example, the
// worker of nginx and the backends of PostgreSQL.
func cpuTime(pid int) (time.Duration, error) {
	var cpu unix.Timespec
	if err := unix.ClockGettime(int32(^pid)<<3|cpuClockKind, &cpu); err != nil {
		return 0, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
	}
	total := time.Duration(cpu.Nano())
	for _, child := range childPIDs(pid) {
		if cpu, err := cpuTime(child); err == nil { // an error means that the child has just exited
			total += cpu
		}
	}
	return total, nil
}

// stolenTime returns for how long the host has not run this virtual machine's cores when they were ready, in whole
// clock ticks; 0 if the kernel does not know.
func stolenTime() time.Duration {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line) // cpu user nice system idle iowait irq softirq steal
	if len(fields) < 9 {
		return 0
	}
	ticks, _ := strconv.Atoi(fields[8])
	return time.Duration(ticks) * time.Second / userTicks
}

// userTicks is the number of clock ticks per second in /proc/stat.
const userTicks = 100

// prioritizeSession lets the bench and its children run before all other processes, if it may. It returns a function
// that undoes that. The kernel divides time between sessions (autogroup) rather than processes, so a low priority of
// the other processes does not help.
func prioritizeSession() (restore func()) {
	const file = "/proc/self/autogroup"
	before, err := os.ReadFile(file) // such as "/autogroup-7 nice 0"
	if err != nil || os.WriteFile(file, []byte("-20"), 0) != nil {
		return func() {}
	}
	fields := strings.Fields(string(before))
	return func() { _ = os.WriteFile(file, []byte(fields[len(fields)-1]), 0) } // it could be written before
}

func childPIDs(pid int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is valid
	for _, list := range lists {
		text, _ := os.ReadFile(list) // the thread may have ended
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}
