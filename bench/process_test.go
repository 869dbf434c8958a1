//go:build linux

package main

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestStartProcess checks that a process has one core, and no settings of the caller's environment.
func TestStartProcess(t *testing.T) {
	for _, name := range []string{"TASARD_DATA", "GOGC", "PGDATA"} {
		t.Setenv(name, "1")
	}
	var before, after unix.CPUSet
	runtime.LockOSThread() // the thread that starts the process
	defer runtime.UnlockOSThread()
	noError(t, unix.SchedGetaffinity(0, &before))
	core := 0
	for !before.IsSet(core) {
		core++
	}
	script := "grep Cpus_allowed_list /proc/self/status; echo GOMAXPROCS $GOMAXPROCS$TASARD_DATA$GOGC$PGDATA >&2; exit 7"
	p, err := startProcess("script", core, "/bin/sh", "-c", script)
	noError(t, err)
	said := fmt.Sprint(p.awaitExit(t.Context())) // with the output
	if !strings.Contains(said, "exit status 7") || !strings.Contains(said, "\nGOMAXPROCS 1\n") || !strings.Contains(said, fmt.Sprintf("Cpus_allowed_list:\t%d\n", core)) {
		t.Errorf("on core %d: %s", core, said)
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
