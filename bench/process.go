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
	// startMax is how long a server may take until it answers, stopMax until it ends in order; then it is killed.
	startMax = 60 * time.Second
	stopMax  = 15 * time.Second
	// pollPause lies between two looks at what is awaited: often enough to tell milliseconds, and no load.
	pollPause = time.Millisecond
	// outputMax is how much of a process's output is kept.
	outputMax = 32 << 10
)

// command is a process that is to run beside the bench.
type command struct {
	name string   // in errors: nginx
	argv []string // program and arguments
	dir  string   // where it runs, "" = where the bench does
	// ends asks it to stop, also when the bench dies, so that none is left behind; 0 is SIGTERM.
	ends syscall.Signal
}

// child is a process that the bench started, and ends.
type child struct {
	*command
	cmd   *exec.Cmd
	done  chan struct{} // closed when it has ended
	ended error         // how, once done is closed

	mu     sync.Mutex
	output []byte
}

// spawn starts a process on one core, any with core < 0. Its end is awaited by stop or kill.
//
// It has a group of its own, so that an interrupt at the terminal reaches only the bench, which then ends things in order.
// Danger: the kernel takes the end of the thread that started it for the end of the bench. The runtime keeps its threads, but one that is
// locked to a goroutine ends with it: no such goroutine may start a process.
func spawn(c *command, core int) (*child, error) {
	if c.ends == 0 {
		c.ends = syscall.SIGTERM
	}
	cmd := exec.Command(c.argv[0], c.argv[1:]...)
	p := &child{command: c, cmd: cmd, done: make(chan struct{})}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.dir, environment(), p, p
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: c.ends}
	cmd.WaitDelay = stopMax // for those that inherited its output and live longer
	if err := pinned(core, cmd.Start); err != nil {
		return nil, fmt.Errorf("start %s on core %d: %w", c.name, core, err)
	}
	go func() {
		defer close(p.done)
		p.ended = cmd.Wait()
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
func (p *child) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.output = append(p.output, text...)
	p.output = p.output[max(0, len(p.output)-outputMax):]
	return len(text), nil
}

// find is the first kept line with a text, "" when there is none.
func (p *child) find(text string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for line := range strings.Lines(string(p.output)) {
		if strings.Contains(line, text) && strings.HasSuffix(line, "\n") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// trouble is an error with how the process ended, and its last words.
func (p *child) trouble(why error) error {
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

// errDied is wrapped when a process that was to run has ended.
var errDied = errors.New("it ended by itself")

// await looks again and again until something is so, the process ends or the context does.
func (p *child) await(ctx context.Context, what string, so func() bool) error {
	pause := time.NewTicker(pollPause)
	defer pause.Stop()
	for !so() {
		select {
		case <-pause.C:
		case <-p.done:
			if so() {
				return nil
			}
			return p.trouble(errDied)
		case <-ctx.Done():
			return p.trouble(fmt.Errorf("waiting for %s: %w", what, ctx.Err()))
		}
	}
	return nil
}

// line waits until the process has written a line that contains a text.
func (p *child) line(ctx context.Context, text string) (line string, err error) {
	err = p.await(ctx, strconv.Quote(text), func() bool { line = p.find(text); return line != "" })
	return line, err
}

// finish waits for the end of a process that ends by itself.
func (p *child) finish(ctx context.Context) error {
	select {
	case <-p.done:
	case <-ctx.Done():
		p.kill()
		return p.trouble(ctx.Err())
	}
	if p.ended != nil {
		return p.trouble(p.ended)
	}
	return nil
}

// stop asks the process to end and waits for it. One that had ended before is an error, and so is one that ends with an error or must
// be killed.
func (p *child) stop() error {
	select {
	case <-p.done:
		return p.trouble(errDied)
	default:
	}
	_ = p.cmd.Process.Signal(p.ends) // it may end at this moment
	patience, cancel := context.WithTimeout(context.Background(), stopMax)
	defer cancel()
	return p.finish(patience)
}

// kill ends the process, and what stayed in its group, as a crash would, and waits for it.
func (p *child) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may be over
	<-p.done
}

// pinned does something on one core: what is started meanwhile stays there with all its threads. Any core with core < 0.
//
// A thread of the runtime changes its affinity, and gets the old one back. While it is locked to its goroutine the runtime starts no
// thread from it, so that nothing else of the bench inherits the core.
func pinned(core int, do func() error) error {
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

// cpuOf is the CPU time, user and system, of a process and of the living below it: nginx's worker, PostgreSQL's backends.
func cpuOf(pid int) (time.Duration, error) {
	var spent unix.Timespec
	if err := unix.ClockGettime(int32(^pid)<<3|cpuClockKind, &spent); err != nil {
		return 0, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
	}
	total := time.Duration(spent.Nano())
	for _, below := range childrenOf(pid) {
		if spent, err := cpuOf(below); err == nil { // else it has just ended
			total += spent
		}
	}
	return total, nil
}

// childrenOf are the processes that a process started and that live.
func childrenOf(pid int) (found []int) {
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
