//go:build linux

package main

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// shell is a process that runs a script and then waits for its end.
func shell(t *testing.T, core int, script string) *process {
	t.Helper()
	p, err := startProcess("script", core, "/bin/sh", "-c", script+"\nsleep 1000 >/dev/null 2>&1 & wait $!")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

// lineOf returns the line of a process's output with a text.
func lineOf(t *testing.T, p *process, text string) string {
	t.Helper()
	line, err := p.awaitLine(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// TestStartProcess checks that a process has one core, and no settings of the caller's environment.
func TestStartProcess(t *testing.T) {
	for _, name := range []string{"TASARD_DATA", "GOGC", "PGDATA"} {
		t.Setenv(name, "1")
	}
	var before, after unix.CPUSet
	runtime.LockOSThread() // the thread that starts the process
	defer runtime.UnlockOSThread()
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	core := 0
	for !before.IsSet(core) {
		core++
	}
	p := shell(t, core, "grep Cpus_allowed_list /proc/self/status; echo GOMAXPROCS $GOMAXPROCS$TASARD_DATA$GOGC$PGDATA >&2")
	if line := lineOf(t, p, "GOMAXPROCS"); line != "GOMAXPROCS 1" {
		t.Error(line)
	}
	if line := lineOf(t, p, "Cpus_allowed_list"); strings.Fields(line)[1] != strconv.Itoa(core) {
		t.Errorf("%q, want core %d", line, core)
	}
	const none = 1000
	if _, err := startProcess("script", none, "/bin/true"); err == nil || !strings.Contains(err.Error(), "this machine gives the bench no core") {
		t.Errorf("a core that is not there: %v", err)
	}
	if _, err := startProcess("nothing", anyCore, "/nowhere/program"); err == nil || !strings.Contains(err.Error(), "start nothing") {
		t.Error(err)
	}
	if err := unix.SchedGetaffinity(0, &after); err != nil || after != before {
		t.Errorf("the bench had the cores %v and has %v: %v", before, after, err)
	}
}

// TestProcess_Stop checks that stop reports however a process ended, with its last output.
func TestProcess_Stop(t *testing.T) {
	for script, says := range map[string]string{
		"trap 'exit 0' TERM; echo ready":                     "<nil>",
		"trap 'echo my last words; exit 7' TERM; echo ready": "(exit status 7); last output:\nready\nmy last words",
	} {
		p := shell(t, -1, script)
		lineOf(t, p, "ready")
		if err := fmt.Sprint(p.stop()); !strings.Contains(err, says) {
			t.Errorf("%s: %v, want %q in it", script, err, says)
		}
	}
}
