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
	startTimeout = 60 * time.Second // for the first response of a server
	stopTimeout  = 15 * time.Second // after this time a process is killed
	pollInterval = time.Millisecond // short enough to measure milliseconds, long enough to cause no load
	outputMax    = 32 << 10         // bytes of the output of a process that are kept
	cpuClockKind = 2                // the kernel's CPU clock of a process, with all its threads, also ended ones
)

var errExited = errors.New("exited unexpectedly")

// process is a child process. Each started process must be stopped, killed or awaited.
type process struct {
	name    string // in error messages
	cmd     *exec.Cmd
	done    chan struct{} // closed when the process has exited
	exitErr error         // result of Wait; valid when done is closed

	mu     sync.Mutex
	output []byte
}

// startProcess starts a process on one core, or on any core if core < 0. The process has its own process group, so that
// an interrupt at the terminal reaches only the bench. It gets few environment variables, because others could change
// settings of Go or the node, and so the results.
//
// Danger: the kernel sends the signal Pdeathsig when the thread that started the process ends. The Go runtime ends a
// thread only if a goroutine exits without unlocking it. Such a goroutine must not call startProcess.
func startProcess(name string, core int, argv ...string) (*process, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	p := &process{name: name, cmd: cmd, done: make(chan struct{})}
	cmd.Env, cmd.Stdout, cmd.Stderr = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, p, p
	if core >= 0 {
		cmd.Env = append(cmd.Env, "GOMAXPROCS=1")
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.WaitDelay = stopTimeout // limits the wait for children of the process that keep the output open
	if err := pinToCore(core, cmd.Start); err != nil {
		return nil, fmt.Errorf("start %s on core %d: %w", name, core, err)
	}
	go func() {
		defer close(p.done)
		p.exitErr = cmd.Wait()
	}()
	return p, nil
}

// Write receives the output of the process. It keeps the last outputMax bytes.
func (p *process) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.output = append(p.output, text...)
	p.output = p.output[max(0, len(p.output)-outputMax):]
	return len(text), nil
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

// await calls ok repeatedly until it returns true. It returns an error if the process exits or ctx ends first.
func (p *process) await(ctx context.Context, what string, ok func() bool) error {
	pause := time.NewTicker(pollInterval)
	defer pause.Stop()
	for !ok() {
		select {
		case <-pause.C:
		case <-p.done:
			if !ok() {
				return p.withOutput(errExited)
			}
		case <-ctx.Done():
			return p.withOutput(fmt.Errorf("waiting for %s: %w", what, ctx.Err()))
		}
	}
	return nil
}

// awaitLine waits for a complete line of output that contains text.
func (p *process) awaitLine(ctx context.Context, text string) (line string, err error) {
	err = p.await(ctx, strconv.Quote(text), func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		_, rest, found := strings.Cut(string(p.output), text)
		line, _, _ = strings.Cut(text+rest, "\n")
		return found && strings.Contains(rest, "\n")
	})
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

// stop sends SIGTERM and waits until the process has exited. It returns an error if the process had already exited,
// fails, or has to be killed.
func (p *process) stop() error {
	select {
	case <-p.done:
		return p.withOutput(errExited)
	default:
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails if the process has just exited
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return p.awaitExit(ctx)
}

// kill kills the whole process group and waits until the process has exited.
func (p *process) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // fails if the process has exited
	<-p.done
}

// pinToCore pins all threads of the bench to a core, and lets one run Go code at a time. It calls do, and gives the
// threads their cores back. Processes and threads that the function do starts inherit the core. If core < 0, pinToCore
// only calls do.
func pinToCore(core int, do func() error) error {
	if core < 0 {
		return do()
	}
	var before, mask unix.CPUSet
	mask.Set(core)
	if err := errors.Join(unix.SchedGetaffinity(0, &before), setAffinity(&mask)); err != nil {
		return fmt.Errorf("this machine gives the bench no core %d: %w", core, err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	err := do()
	return errors.Join(err, setAffinity(&before))
}

// setAffinity sets the cores of all threads of the bench.
func setAffinity(cores *unix.CPUSet) error {
	threads, err := os.ReadDir("/proc/self/task")
	for _, thread := range threads {
		number, _ := strconv.Atoi(thread.Name())                                              // the kernel writes numbers
		if failure := unix.SchedSetaffinity(number, cores); !errors.Is(failure, unix.ESRCH) { // the thread may have ended
			err = errors.Join(err, failure)
		}
	}
	return err
}

// cpuTime returns the user and system CPU time of a process and its running children, such as the workers of nginx.
func cpuTime(pid int) (time.Duration, error) {
	var cpu unix.Timespec
	if err := unix.ClockGettime(int32(^pid)<<3|cpuClockKind, &cpu); err != nil {
		return 0, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
	}
	total := time.Duration(cpu.Nano())
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is valid
	for _, list := range lists {
		text, _ := os.ReadFile(list) // the thread may have ended
		for _, field := range strings.Fields(string(text)) {
			child, _ := strconv.Atoi(field) // the kernel writes numbers
			childTime, _ := cpuTime(child)  // an error means that the child has just exited
			total += childTime
		}
	}
	return total, nil
}
