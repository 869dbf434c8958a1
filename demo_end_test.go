package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// startDemo begins a demo that keeps its data in a temporary directory under the returned one.
func startDemo(t *testing.T) (*program, string) {
	t.Helper()
	temp := t.TempDir()
	p := startWith(t, "now", []string{"TMPDIR=" + temp, fewDays}, "demo", "--listen", "127.0.0.1:0").listening()
	p.await("Ctrl-C stops it.")
	return p, temp
}

// leavesNothing fails unless the directory is empty.
func leavesNothing(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestDemo_HangUp(t *testing.T) {
	t.Parallel()
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("SIGHUP is ignored here, as nohup asks, and so it is by the demo")
	}
	p, temp := startDemo(t)
	if left, err := os.ReadDir(temp); err != nil || len(left) != 1 {
		t.Fatalf("while it runs the directory has %v, %v", left, err)
	}
	if code := p.signal(syscall.SIGHUP); code != exitDone {
		t.Errorf("exit code %d:\n%s", code, p.output())
	}
	leavesNothing(t, temp)
}

// TestDemo_SecondSignal wants the directory to be gone also when a second signal ends an orderly stop that a client holds up.
func TestDemo_SecondSignal(t *testing.T) {
	t.Parallel()
	p, temp := startDemo(t)
	halfRequests(t, p, "/v1/currencies", 1)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil { // another signal than the second: two alike may become one
		t.Fatal(err)
	}
	if code := p.signal(syscall.SIGINT); code != -1 {
		t.Errorf("exit code %d, want a death by signal", code)
	}
	leavesNothing(t, temp)
}

// TestDemo_NobodyReads wants a demo whose output is closed after the first line to end in order.
func TestDemo_NobodyReads(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	cmd := exec.Command(os.Args[0], "demo", "--listen", "127.0.0.1:0", "--log-format", "text")
	cmd.Env = append(os.Environ(), asProgram+"=now", "TMPDIR="+temp, fewDays)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || !strings.HasPrefix(line, "tasard demo") {
		t.Errorf("the first line is %q, %v", line, err)
	}
	if err := stdout.Close(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // ProcessState tells
	if code := cmd.ProcessState.ExitCode(); code != exitBroken {
		t.Errorf("exit code %d:\n%s", code, stderr.String())
	}
	oneLine(t, stderr.String(), "write to standard output", "broken pipe")
	leavesNothing(t, temp)
}
