package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pinned does something on one core: what is started meanwhile stays there with all its threads. Any core with core < 0.
//
// A thread of the runtime changes its affinity, and gets the old one back. While it is locked to its goroutine the runtime
// starts no thread from it, so that nothing else of the bench inherits the core.
func pinned(core int, do func() error) error {
	if core < 0 {
		return do()
	}
	runtime.LockOSThread()
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("read the thread's cores: %w", err)
	}
	one.Set(core)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("this machine gives the bench no core %d: %w", core, err)
	}
	err := do()
	if back := unix.SchedSetaffinity(0, &before); back != nil {
		return errors.Join(err, fmt.Errorf("give the thread its cores back: %w", back)) // it stays locked, and ends with its goroutine
	}
	runtime.UnlockOSThread()
	return err
}

// attributes give a process a group of its own, so that an interrupt at the terminal reaches the bench alone, which then ends
// things in order, and let it die with the bench.
//
// Danger: the kernel takes the end of the thread that started it for the end of the bench. The runtime keeps its threads, but one
// that is locked to a goroutine ends with it: no such goroutine may start a process.
func attributes(c *command) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: c.orphaned}
	if c.orphaned == 0 {
		attributes.Pdeathsig = syscall.SIGKILL
	}
	if c.user != nil {
		attributes.Credential = &syscall.Credential{Uid: c.user.uid, Gid: c.user.gid}
	}
	return attributes
}

// killGroup ends a process and those of its children that stayed in its group.
func killGroup(process *os.Process) { _ = syscall.Kill(-process.Pid, syscall.SIGKILL) }

const (
	// cpuClockKind picks, of the clocks of a process, the one that the scheduler keeps: nanoseconds of all its threads, also of those
	// that have ended.
	cpuClockKind = 2
	// tick is the unit of the times in /proc.
	tick = 10 * time.Millisecond
	// Fields of /proc/PID/stat behind the name, which may contain anything but ends with the last parenthesis.
	statParent, statChildrenUser, statChildrenSystem = 1, 13, 14
)

// cpuOf is the CPU time, user and system, of processes and of everything below them: threads and children that have ended are
// in it. One of the processes themselves that is gone is an error.
func cpuOf(processes []int) (time.Duration, error) {
	if len(processes) == 0 {
		return 0, nil
	}
	table, err := processTable()
	if err != nil {
		return 0, err
	}
	var total time.Duration
	for _, pid := range processes {
		if _, lives := table[pid]; !lives {
			return 0, fmt.Errorf("read the CPU time of process %d: it is gone", pid)
		}
	}
	for pid := range below(processes, table) {
		total += table[pid].ofChildren
		var spent unix.Timespec
		clock := int32(^pid)<<3 | cpuClockKind
		if err := unix.ClockGettime(clock, &spent); err == nil { // else it has just ended, and its parent has its time
			total += time.Duration(spent.Nano())
		}
	}
	return total, nil
}

// procEntry is a line of the process table.
type procEntry struct {
	parent     int
	ofChildren time.Duration // CPU time of children that ended and were waited for
}

// below are processes with all their descendants.
func below(processes []int, table map[int]procEntry) map[int]bool {
	children := map[int][]int{}
	for pid, entry := range table {
		children[entry.parent] = append(children[entry.parent], pid)
	}
	found, queue := map[int]bool{}, append([]int(nil), processes...)
	for len(queue) > 0 {
		pid := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if !found[pid] {
			found[pid] = true
			queue = append(queue, children[pid]...)
		}
	}
	return found
}

// processTable reads /proc.
func processTable() (map[int]procEntry, error) {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("read the process table: %w", err)
	}
	table := map[int]procEntry{}
	for _, name := range names {
		pid, err := strconv.Atoi(name.Name())
		if err != nil {
			continue // /proc holds more than processes
		}
		text, err := os.ReadFile("/proc/" + name.Name() + "/stat")
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has just ended
		}
		if err != nil {
			return nil, fmt.Errorf("read the process table: %w", err)
		}
		if table[pid], err = parseStat(string(text)); err != nil {
			return nil, err
		}
	}
	return table, nil
}

func parseStat(text string) (procEntry, error) {
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) <= statChildrenSystem {
		return procEntry{}, fmt.Errorf("read the process table: want a line as proc(5) describes, found %.80q", text)
	}
	var numbers [3]int64
	for i, field := range []int{statParent, statChildrenUser, statChildrenSystem} {
		number, err := strconv.ParseInt(fields[field], 10, 64)
		if err != nil {
			return procEntry{}, fmt.Errorf("read the process table: field %d: %w", field, err)
		}
		numbers[i] = number
	}
	return procEntry{parent: int(numbers[0]), ofChildren: time.Duration(numbers[1]+numbers[2]) * tick}, nil
}
