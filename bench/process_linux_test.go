package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
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

func TestSpawn_Pins(t *testing.T) {
	var before, after unix.CPUSet
	runtime.LockOSThread() // the thread that spawns
	defer runtime.UnlockOSThread()
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	p := shell(t, 0, "grep Cpus_allowed_list /proc/self/status; echo GOMAXPROCS $GOMAXPROCS")
	line, err := p.line(t.Context(), "GOMAXPROCS")
	if err != nil || line != "GOMAXPROCS 1" {
		t.Errorf("%q: %v", line, err)
	}
	if line, err = p.line(t.Context(), "Cpus_allowed_list"); err != nil || strings.Fields(line)[1] != "0" {
		t.Errorf("%q: %v", line, err)
	}
	if err := unix.SchedGetaffinity(0, &after); err != nil || after != before {
		t.Errorf("the bench had the cores %v and has %v: %v", before, after, err)
	}
	const none = 1000
	if _, err := spawn(&command{name: "script", program: program{path: "/bin/true"}}, none); err == nil || !strings.Contains(err.Error(), "this machine gives the bench no core") {
		t.Errorf("a core that is not there: %v", err)
	}
	if err := unix.SchedGetaffinity(0, &after); err != nil || after != before {
		t.Errorf("and then the bench has %v: %v", after, err)
	}
}

// TestSpawn_SettingsOfTheCallerStayOut wants what is measured not to depend on who calls.
func TestSpawn_SettingsOfTheCallerStayOut(t *testing.T) {
	for _, name := range []string{"TASARD_DATA", "GOGC", "PGDATA"} {
		t.Setenv(name, "1")
		if slices.ContainsFunc(environment(), func(line string) bool { return strings.HasPrefix(line, name) }) {
			t.Errorf("%s reaches the processes", name)
		}
	}
}

func TestChild_Line(t *testing.T) {
	p := shell(t, -1, "echo one; echo two >&2; printf three")
	for _, text := range []string{"two", "one"} {
		if line, err := p.line(t.Context(), text); err != nil || line != text {
			t.Errorf("%q: %v", line, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
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
	t.Run("in order", func(t *testing.T) {
		p := shell(t, -1, "trap 'exit 0' TERM; echo ready")
		if _, err := p.line(t.Context(), "ready"); err != nil {
			t.Fatal(err)
		}
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
	t.Run("with an error", func(t *testing.T) {
		p := shell(t, -1, "trap 'echo my last words; exit 7' TERM; echo ready")
		if _, err := p.line(t.Context(), "ready"); err != nil {
			t.Fatal(err)
		}
		if err := p.stop(); err == nil || !strings.Contains(err.Error(), "exit status 7") || !strings.Contains(err.Error(), "my last words") {
			t.Error(err)
		}
	})
	t.Run("not at all", func(t *testing.T) {
		p := shell(t, -1, "trap '' TERM; sleep 1000 & echo ready $!")
		line, err := p.line(t.Context(), "ready")
		if err != nil {
			t.Fatal(err)
		}
		p.patience = 50 * time.Millisecond
		if err := p.stop(); err == nil || !strings.Contains(err.Error(), "was killed") {
			t.Error(err)
		}
		wantGone(t, line)
	})
	t.Run("by itself", func(t *testing.T) {
		p := shell(t, -1, "echo oh; exit 3")
		<-p.done
		if err := p.stop(); !errors.Is(err, errDied) || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "oh") {
			t.Error(err)
		}
	})
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
	for range 2000 { // it is killed, and dies when the kernel gets round to it
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(text), ") Z ") {
			return
		}
		<-pause.C
	}
	t.Error("a child of the process that was killed lives")
}

// burnt is how much CPU the scripts below use at least: a shell counts to a hundred thousand no faster.
const (
	burnt      = 10 * time.Millisecond
	burnScript = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
)

// TestCPU_CountsWhatHasEnded wants children that ended, and threads that ended, in the sum.
func TestCPU_CountsWhatHasEnded(t *testing.T) {
	p := shell(t, -1, "("+burnScript+"); echo burnt; ("+burnScript+"; echo also; "+idleScript+")")
	if _, err := p.line(t.Context(), "burnt"); err != nil {
		t.Fatal(err)
	}
	ended, err := cpuOf([]int{p.pid()})
	if err != nil || ended < burnt {
		t.Errorf("a child that ended used %v: %v", ended, err)
	}
	if _, err := p.line(t.Context(), "also"); err != nil {
		t.Fatal(err)
	}
	if both, err := cpuOf([]int{p.pid(), p.pid()}); err != nil || both < ended+burnt || both > 20*ended {
		t.Errorf("with one that lives it is %v, before %v: %v", both, ended, err)
	}
	p.kill() // what descendants used goes away with those that nobody waits for
	before, err := cpuOf([]int{os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		runtime.LockOSThread() // and never unlock: the thread ends with the goroutine
		for start := cpuOfThread(); cpuOfThread()-start < burnt; {
		}
	}()
	<-gone
	if after, err := cpuOf([]int{os.Getpid()}); err != nil || after-before < burnt {
		t.Errorf("a thread that ended used %v: %v", after-before, err)
	}
}

func cpuOfThread() time.Duration {
	var spent unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &spent)
	return time.Duration(spent.Nano())
}

func TestCPU_RefusesTheDead(t *testing.T) {
	p := shell(t, -1, "")
	p.kill()
	if spent, err := cpuOf([]int{p.pid()}); err == nil {
		t.Errorf("a dead process used %v", spent)
	}
	if spent, err := cpuOf(nil); spent != 0 || err != nil {
		t.Errorf("nobody used %v: %v", spent, err)
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

func FuzzStat(f *testing.F) {
	f.Add("17 (a) b) S 5 17 17 0 -1 4194560 1 2 3 4 10 11 12 13 20 0 1 0 100")
	f.Add(")")
	f.Fuzz(func(t *testing.T, line string) { _, _ = parseStat(line) })
}

// FuzzTail wants the newest lines kept, and nothing beyond the bounds, however the output is cut into pieces.
func FuzzTail(f *testing.F) {
	f.Add("one\ntwo\n\nthree", 3)
	f.Add(strings.Repeat("x\n", 100), 7)
	f.Fuzz(func(t *testing.T, text string, piece int) {
		whole, pieces := newTail(), newTail()
		_, _ = whole.Write([]byte(text))
		for part := range slices.Chunk([]byte(text), max(1, piece)) {
			_, _ = pieces.Write(part)
		}
		if whole.String() != pieces.String() || len(whole.lines) > tailLines {
			t.Errorf("%q and %q", whole, pieces)
		}
		lines := strings.Split(text, "\n")
		if len(lines) < tailLines && len(text) < lineBytesMax && whole.String() != text {
			t.Errorf("%q is kept as %q", text, whole)
		}
	})
}
