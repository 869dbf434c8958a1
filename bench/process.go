//go:build linux

package main

import (
	"context"
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

const (
	// startTimeout is how long a server may take until it answers, stopTimeout until it ends in order; then it is killed.
	startTimeout = 60 * time.Second
	stopTimeout  = 15 * time.Second
	// pollInterval lies between two looks at what is awaited: often enough to tell milliseconds, and no load.
	pollInterval = time.Millisecond
	// outputBytesMax is how much of a process's output is kept.
	outputBytesMax = 32 << 10
)

// command is a process that is to run beside the bench.
type command struct {
	name string   // in errors: nginx
	argv []string // program and arguments
	dir  string   // where it runs, "" = where the bench does
	// stopSignal asks it to stop, also when the bench dies, so that none is left behind; 0 is SIGTERM.
	stopSignal syscall.Signal
}

// process is a process that the bench started, and ends.
type process struct {
	*command
	cmd     *exec.Cmd
	done    chan struct{} // closed when it has ended
	exitErr error         // how, once done is closed

	mu     sync.Mutex
	output []byte
}

// startProcess starts a process on one core, any with core < 0. Its end is awaited by stop or kill.
//
// It has a group of its own, so that an interrupt at the terminal reaches only the bench, which then ends things in order.
// Danger: the kernel takes the end of the thread that started it for the end of the bench. The runtime keeps its threads, but one that is
// locked to a goroutine ends with it: no such goroutine may start a process.
func startProcess(c *command, core int) (*process, error) {
	if c.stopSignal == 0 {
		c.stopSignal = syscall.SIGTERM
	}
	cmd := exec.Command(c.argv[0], c.argv[1:]...)
	p := &process{command: c, cmd: cmd, done: make(chan struct{})}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.dir, environment(), p, p
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: c.stopSignal}
	cmd.WaitDelay = stopTimeout // for those that inherited its output and live longer
	if err := pinToCore(core, cmd.Start); err != nil {
		return nil, fmt.Errorf("start %s on core %d: %w", c.name, core, err)
	}
	go func() {
		defer close(p.done)
		p.exitErr = cmd.Wait()
	}()
	return p, nil
}

// environment is the same on every machine but for what finds programs and scratch space: settings of the bench's caller (of Go, of the
// node, of PostgreSQL) would change what is measured.
func environment() []string {
	env := []string{"LC_ALL=C", "GOMAXPROCS=1"}
	for _, name := range []string{"PATH", "HOME", "TMPDIR"} {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// Write keeps the newest output.
func (p *process) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.output = append(p.output, text...)
	p.output = p.output[max(0, len(p.output)-outputBytesMax):]
	return len(text), nil
}

// findLine is the first kept line with a text, "" when there is none.
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

// withOutput is an error with how the process ended, and its last words.
func (p *process) withOutput(why error) error {
	state := "it runs"
	select {
	case <-p.done:
		state = p.cmd.ProcessState.String()
	default:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Errorf("%s: %w (%s); its last lines:\n%s", p.name, why, state, p.output[max(0, len(p.output)-2000):])
}

// errExited is wrapped when a process that was to run has ended.
var errExited = errors.New("it ended by itself")

// await looks again and again until something is so, the process ends or the context does.
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

// awaitLine waits until the process has written a line that contains a text.
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

// stop asks the process to end and waits for it. One that had ended before is an error, and so is one that ends with an error or must
// be killed.
func (p *process) stop() error {
	select {
	case <-p.done:
		return p.withOutput(errExited)
	default:
	}
	_ = p.cmd.Process.Signal(p.stopSignal) // it may end at this moment
	patience, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return p.awaitExit(patience)
}

// kill ends the process, and what stayed in its group, as a crash would, and waits for it.
func (p *process) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may be over
	<-p.done
}

// pinToCore does something on one core: what is started meanwhile stays there with all its threads. Any core with core < 0.
//
// A thread of the runtime changes its affinity, and gets the old one back. While it is locked to its goroutine the runtime starts no
// thread from it, so that nothing else of the bench inherits the core.
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

// cpuClockKind picks, of the clocks of a process, the one that the scheduler keeps: nanoseconds of all its threads, also of those that
// have ended.
const cpuClockKind = 2

// cpuTime is the CPU time, user and system, of a process and of the living below it: nginx's worker, PostgreSQL's backends.
func cpuTime(pid int) (time.Duration, error) {
	var spent unix.Timespec
	if err := unix.ClockGettime(int32(^pid)<<3|cpuClockKind, &spent); err != nil {
		return 0, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
	}
	total := time.Duration(spent.Nano())
	for _, below := range childPIDs(pid) {
		if spent, err := cpuTime(below); err == nil { // else it has just ended
			total += spent
		}
	}
	return total, nil
}

// childPIDs are the processes that a process started and that live.
func childPIDs(pid int) (found []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is well-formed
	for _, list := range lists {
		text, _ := os.ReadFile(list) // a thread may have ended
		for _, field := range strings.Fields(string(text)) {
			if number, err := strconv.Atoi(field); err == nil {
				found = append(found, number)
			}
		}
	}
	return found
}
