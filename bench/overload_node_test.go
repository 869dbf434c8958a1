//go:build faults && linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// figure prints what a test found, in the one form that make test-faults shows and collects.
func figure(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Logf("FIGURE %s", fmt.Sprintf(format, args...))
}

// needLimits skips a test that limits processes where that can't be done.
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

const (
	cgroupRoot = "/sys/fs/cgroup"
	// halfCore and its period: short periods keep latencies usable.
	cpuPeriod = 10 * time.Millisecond
	halfCore  = cpuPeriod / 2
	// cpuShares put the cage before whatever else the machine does, so that it has its half core.
	cpuShares = 1 << 18
)

// cage is a pair of control groups: what runs in it gets half a core, and no more memory than it is given.
type cage struct{ cpu, memory string }

// newCage makes one that is removed at the end of the test, when nothing runs in it any more. memory 0 is any.
func newCage(t *testing.T, memory int) cage {
	t.Helper()
	name := fmt.Sprintf("tasard-%d-%d", os.Getpid(), time.Now().UnixNano())
	c := cage{filepath.Join(cgroupRoot, "cpu", name), filepath.Join(cgroupRoot, "memory", name)}
	for _, dir := range []string{c.cpu, c.memory} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			for range 100 { // the kernel forgets an ended process in its own time
				if err := os.Remove(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
					return
				}
				<-time.NewTimer(20 * time.Millisecond).C
			}
			t.Errorf("%s is not empty", dir)
		})
	}
	c.write(t, c.cpu, "cpu.cfs_period_us", int(cpuPeriod.Microseconds()))
	c.write(t, c.cpu, "cpu.cfs_quota_us", int(halfCore.Microseconds()))
	c.write(t, c.cpu, "cpu.shares", cpuShares)
	if memory > 0 {
		c.write(t, c.memory, "memory.limit_in_bytes", memory)
	}
	return c
}

func (c cage) write(t *testing.T, dir, name string, value int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(strconv.Itoa(value)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// number reads a counter of the cage: the value of a file, or of a line in it.
func (c cage) number(t *testing.T, file, line string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		value, is := strings.CutPrefix(one, line)
		if number, err := strconv.Atoi(strings.TrimSpace(value)); is && err == nil {
			return number
		}
	}
	t.Fatalf("%s has no %q: %s", file, line, text)
	return 0
}

// throttled is in how many periods the cage held back what runs in it; oomKills how many processes it killed for want of memory.
func (c cage) throttled(t *testing.T) int {
	return c.number(t, filepath.Join(c.cpu, "cpu.stat"), "nr_throttled ")
}

func (c cage) oomKills(t *testing.T) int {
	return c.number(t, filepath.Join(c.memory, "memory.oom_control"), "oom_kill ")
}

// inside is a program that runs in the cage from its first moment on.
func (c cage) inside(path string, env ...string) program {
	join := fmt.Sprintf("echo $$ > %s/cgroup.procs && echo $$ > %s/cgroup.procs && exec \"$@\"", c.cpu, c.memory)
	return program{path: "/bin/sh", args: []string{"-c", join, "sh", path}, env: env}
}

// planted builds the program with old replaced by new at its only place in a file of the module; file "" plants nothing.
func planted(t *testing.T, file, old, new string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tasard")
	args := []string{"build", "-trimpath", "-o", path}
	if file != "" {
		args = append(args, "-overlay", overlayOf(t, file, old, new))
	}
	if output, err := exec.CommandContext(t.Context(), "go", append(args, nodePackage)...).CombinedOutput(); err != nil {
		t.Fatalf("build the node: %v: %s", err, output)
	}
	return path
}

// overlayOf is the file that tells the compiler what is planted.
func overlayOf(t *testing.T, file, old, new string) string {
	t.Helper()
	whole, err := filepath.Abs(filepath.Join("..", file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	if found := bytes.Count(text, []byte(old)); found != 1 {
		t.Fatalf("plant a bug in %s: want once, found %d times: %s", file, found, old)
	}
	dir := t.TempDir()
	instead, list := filepath.Join(dir, "planted.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(instead, bytes.Replace(text, []byte(old), []byte(new), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	names, err := json.Marshal(map[string]map[string]string{"Replace": {whole: instead}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(list, names, 0o600); err != nil {
		t.Fatal(err)
	}
	return list
}

// peakMemory is the most memory that a process has had, in MiB.
func peakMemory(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}
