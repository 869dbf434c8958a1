//go:build faults && linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// figure prints a result in the form that make test-faults collects.
func figure(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Logf("FIGURE %s", fmt.Sprintf(format, args...))
}

const (
	cgroupRoot = "/sys/fs/cgroup"
	// cpuPeriod is short, so that latencies are usable for processes limited to halfCore.
	cpuPeriod = 10 * time.Millisecond
	halfCore  = cpuPeriod / 2
	// cpuShares gives a group priority over other processes of the machine.
	cpuShares = 1 << 18
)

// needLimits skips a test where processes cannot be limited.
func needLimits(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("NEEDS root: run make test-faults as root, in a machine of its own")
	}
	for _, controller := range []string{"cpu", "memory"} {
		if _, err := os.Stat(filepath.Join(cgroupRoot, controller, "cgroup.procs")); err != nil {
			t.Skip("NEEDS control groups of version 1 in " + cgroupRoot)
		}
	}
}

// cgroup is a pair of control groups, which limits its processes to half a core and to an amount of memory.
type cgroup struct{ cpu, memory string }

// newCgroup makes one that is removed at the end of the test, when its processes have exited. memory 0 is unlimited.
func newCgroup(t *testing.T, memory int) cgroup {
	t.Helper()
	limits := map[string]int{"memory.limit_in_bytes": memory}
	if memory == 0 {
		limits = nil
	}
	return cgroup{
		newController(t, "cpu", map[string]int{
			"cpu.cfs_period_us": int(cpuPeriod.Microseconds()), "cpu.cfs_quota_us": int(halfCore.Microseconds()), "cpu.shares": cpuShares,
		}),
		newController(t, "memory", limits),
	}
}

func newController(t *testing.T, controller string, limits map[string]int) (dir string) {
	t.Helper()
	dir = filepath.Join(cgroupRoot, controller, fmt.Sprintf("tasard-%d-%d", os.Getpid(), time.Now().UnixNano()))
	noError(t, os.Mkdir(dir, 0o755))
	t.Cleanup(func() {
		for range 100 { // the kernel removes an ended process after a while
			if err := os.Remove(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
				return
			}
			<-time.NewTimer(20 * time.Millisecond).C
		}
		t.Errorf("%s is not empty", dir)
	})
	for name, value := range limits {
		writeFile(t, filepath.Join(dir, name), []byte(strconv.Itoa(value)))
	}
	return dir
}

// kernelNumber reads the number on a line of a kernel file.
func kernelNumber(t *testing.T, file, line string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	noError(t, err)
	_, rest, _ := strings.Cut("\n"+string(text), "\n"+line)
	value, err := strconv.Atoi(strings.Fields(rest + " -")[0])
	if err != nil {
		t.Fatalf("%s has no %q: %s", file, line, text)
	}
	return value
}

// throttled returns in how many periods the processes were held back, oomKills how many were killed for lack of
// memory.
func (c cgroup) throttled(t *testing.T) int {
	return kernelNumber(t, filepath.Join(c.cpu, "cpu.stat"), "nr_throttled")
}
func (c cgroup) oomKills(t *testing.T) int {
	return kernelNumber(t, filepath.Join(c.memory, "memory.oom_control"), "oom_kill ")
}

// peakMemory returns the maximum memory of a process so far, in MiB.
func peakMemory(t *testing.T, s *server) int {
	return kernelNumber(t, fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid), "VmHWM:") >> 10
}
