package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// idleScript waits for the end, without a hold on the output of its shell.
const idleScript = "sleep 1000 >/dev/null 2>&1 & wait $!"

// shell is a process that runs a script and then waits for its end.
func shell(t *testing.T, core int, script string) *child {
	t.Helper()
	p, err := spawn(&command{name: "script", program: program{path: "/bin/sh", args: []string{"-c"}}, args: []string{script + "\n" + idleScript}}, core)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

// said is the line of a process with a text.
func said(t *testing.T, p *child, text string) string {
	t.Helper()
	line, err := p.line(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// A process has one core, and no settings of the caller: what is measured does not depend on them.
func TestSpawn(t *testing.T) {
	for _, name := range []string{"TASARD_DATA", "GOGC", "PGDATA"} {
		t.Setenv(name, "1")
	}
	var before, after unix.CPUSet
	runtime.LockOSThread() // the thread that spawns
	defer runtime.UnlockOSThread()
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	core := 0
	for !before.IsSet(core) {
		core++
	}
	p := shell(t, core, "grep Cpus_allowed_list /proc/self/status; echo GOMAXPROCS $GOMAXPROCS$TASARD_DATA$GOGC$PGDATA")
	if line := said(t, p, "GOMAXPROCS"); line != "GOMAXPROCS 1" {
		t.Error(line)
	}
	if line := said(t, p, "Cpus_allowed_list"); strings.Fields(line)[1] != strconv.Itoa(core) {
		t.Errorf("%q, want core %d", line, core)
	}
	const none = 1000
	if _, err := spawn(&command{name: "script", program: program{path: "/bin/true"}}, none); err == nil || !strings.Contains(err.Error(), "this machine gives the bench no core") {
		t.Errorf("a core that is not there: %v", err)
	}
	if err := unix.SchedGetaffinity(0, &after); err != nil || after != before {
		t.Errorf("the bench had the cores %v and has %v: %v", before, after, err)
	}
}

func TestChild_Line(t *testing.T) {
	p := shell(t, -1, "echo one; echo two >&2; printf three")
	for _, text := range []string{"two", "one"} {
		if line := said(t, p, text); line != text {
			t.Errorf("%q, want %q", line, text)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if line, err := p.line(ctx, "four"); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "one\ntwo") {
		t.Errorf("%q: %v", line, err)
	}
	p.kill()
	if line, err := p.line(t.Context(), "four"); !errors.Is(err, errDied) {
		t.Errorf("%q: %v", line, err)
	}
}

func TestChild_Stop(t *testing.T) {
	for script, says := range map[string][]string{
		"trap 'exit 0' TERM; echo ready $$":                     {"<nil>"},
		"trap 'echo my last words; exit 7' TERM; echo ready $$": {"exit status 7", "my last words"},
		"trap '' TERM; sleep 1000 & echo ready $!":              {"was killed"},
		"echo oh; echo ready $$; exit 3":                        {errDied.Error(), "exit status 3", "oh"},
	} {
		p := shell(t, -1, script)
		line := said(t, p, "ready")
		if strings.Contains(script, "oh") {
			<-p.done
		}
		if strings.Contains(script, "''") {
			p.patience = 50 * time.Millisecond
		}
		err := fmt.Sprint(p.stop())
		for _, text := range says {
			if !strings.Contains(err, text) {
				t.Errorf("%s: %v, want %q in it", script, err, text)
			}
		}
		wantGone(t, line)
	}
	if _, err := spawn(&command{name: "nothing", program: program{path: "/nowhere/program"}}, -1); err == nil || !strings.Contains(err.Error(), "start nothing") {
		t.Error(err)
	}
}

// wantGone wants the process whose number a line ends with to be dead: its group was killed with its parent.
func wantGone(t *testing.T, line string) {
	t.Helper()
	var pid int
	if _, err := fmt.Sscanf(line, "ready %d", &pid); err != nil {
		t.Fatal(err)
	}
	pause := time.NewTicker(time.Millisecond)
	defer pause.Stop()
	for range 10_000 { // it is killed, and dies when the kernel gets round to it
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(text), ") Z ") {
			return
		}
		<-pause.C
	}
	t.Error("a child of the process that was killed lives")
}

// burnScript takes at least burnt of CPU time: no shell counts faster.
const (
	burnt      = 10 * time.Millisecond
	burnScript = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
)

// TestCPU_CountsWhatHasEnded wants children that ended, and threads that ended, in the sum.
func TestCPU_CountsWhatHasEnded(t *testing.T) {
	p := shell(t, -1, "("+burnScript+"); echo burnt; ("+burnScript+"; echo also; "+idleScript+")")
	said(t, p, "burnt")
	first, err := cpuOf([]int{p.pid()})
	if err != nil || first < burnt {
		t.Errorf("a child that ended used %v: %v", first, err)
	}
	said(t, p, "also")
	if both, err := cpuOf([]int{p.pid(), p.pid()}); err != nil || both < first+burnt {
		t.Errorf("with one that lives it is %v, before %v: %v", both, first, err)
	}
	p.kill() // what descendants used goes away with those that nobody waits for
	if spent, err := cpuOf([]int{p.pid()}); err == nil {
		t.Errorf("a dead process used %v", spent)
	}
	before, err := cpuOf([]int{os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		runtime.LockOSThread() // and never unlock: the thread ends with the goroutine
		for start := threadTime(); threadTime()-start < burnt; {
		}
	}()
	<-gone
	if after, err := cpuOf([]int{os.Getpid()}); err != nil || after-before < burnt {
		t.Errorf("a thread that ended used %v: %v", after-before, err)
	}
}

func TestStat(t *testing.T) {
	const line = "17 (a) b) S 5 17 17 0 -1 4194560 1 2 3 4 10 11 12 13 20 0 1 0 100"
	if got, err := parseStat(line); err != nil || got != (procEntry{5, 250 * time.Millisecond}) {
		t.Errorf("%+v: %v", got, err)
	}
	for _, bad := range []string{"", "17 (a", "17 (a) S x 17 17 0 -1 4194560 1 2 3 4 10 11 12 13", "17 (a) S 5 17"} {
		if got, err := parseStat(bad); err == nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}

// The newest lines of an output are kept, within bounds, however it is cut into pieces.
func TestTail(t *testing.T) {
	for text, want := range map[string]string{
		"one\ntwo\n\nthree":                                 "one\ntwo\n\nthree",
		strings.Repeat("x\n", 2*tailLines):                  strings.Repeat("x\n", tailLines),
		"a\n" + strings.Repeat("y", 2*lineBytesMax) + "\nb": "a\n" + strings.Repeat("y", lineBytesMax) + "\nb",
	} {
		for _, size := range []int{1, 7, len(text)} {
			kept := newTail()
			for part := range slices.Chunk([]byte(text), size) {
				_, _ = kept.Write(part)
			}
			if kept.String() != want {
				t.Errorf("%.40q in pieces of %d is kept as %.40q", text, size, kept)
			}
		}
	}
}
