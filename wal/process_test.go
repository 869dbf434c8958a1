package wal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The test binary runs itself again as a second process; these variables say as what, and where.
const (
	childEnv    = "TASARD_WAL_TEST_CHILD"
	childDirEnv = "TASARD_WAL_TEST_DIR"
)

func TestMain(m *testing.M) {
	child, dir := os.Getenv(childEnv), os.Getenv(childDirEnv)
	if child == "" {
		os.Exit(m.Run())
	}
	if err := runChild(child, dir, os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stdout, "error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func childOptions() Options {
	return Options{SegmentBytes: 4 << 10, Clock: testClock, ReserveBytes: -1}
}

// runChild is the main function of a child process. It prints each acknowledged sequence on a line.
func runChild(child, dir string, out io.Writer) error {
	switch child {
	case "open":
		return childOpen(dir, out)
	case "append":
		return childAppend(dir, out, func() error { return nil })
	case "filesize":
		// SIGXFSZ would end the process; ignored, the write comes back short with EFBIG.
		signal.Ignore(syscall.SIGXFSZ)
		return childAppend(dir, out, func() error {
			limit := unix.Rlimit{Cur: 3000, Max: 3000}
			return unix.Setrlimit(unix.RLIMIT_FSIZE, &limit)
		})
	}
	return fmt.Errorf("no child %q", child)
}

func childOpen(dir string, out io.Writer) error {
	l, err := Open(dir, childOptions())
	if errors.Is(err, ErrLocked) {
		_, err = fmt.Fprintln(out, "locked")
		return err
	}
	if err == nil {
		err = l.Close()
	}
	return err
}

func childAppend(dir string, out io.Writer, prepare func() error) error {
	l, err := Open(dir, childOptions())
	if err != nil {
		return err
	}
	if err := prepare(); err != nil {
		return err
	}
	for i := 0; ; i++ {
		last, err := l.Append(batchFrom(l.Last()+1, 1+i%7))
		if errors.Is(err, ErrPoisoned) {
			_, again := l.Append(batchFrom(l.Last()+1, 1))
			return fmt.Errorf("%w; again: %w", err, again)
		}
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, last); err != nil {
			return err
		}
		if i%50 == 49 {
			if err := errors.Join(l.WriteSnapshot(last, stateAt(last)), l.DropBefore(last)); err != nil {
				return err
			}
		}
	}
}

// spawn starts the test binary as a child process.
func spawn(t *testing.T, limit context.Context, child, dir string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(limit, self)
	// The race detector would hold up a child that ends by itself for a second.
	cmd.Env = append(os.Environ(), childEnv+"="+child, childDirEnv+"="+dir, "GORACE=atexit_sleep_ms=0")
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	return cmd, bufio.NewReader(out)
}

// lines reads at most n sequences and returns the last.
func lines(t *testing.T, r *bufio.Reader, n int) (last uint64, rest string) {
	t.Helper()
	for range n {
		line, err := r.ReadString('\n')
		if err != nil {
			return last, rest
		}
		seq, err := strconv.ParseUint(strings.TrimSpace(line), 10, 64)
		if err != nil {
			rest += line
			continue
		}
		last = seq
	}
	return last, rest
}

func TestW8_SecondProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, childOptions())
	mustAppend(t, l, 3)
	limit, cancel := context.WithTimeout(t.Context(), time.Minute) // kills the child
	defer cancel()
	cmd, out := spawn(t, limit, "open", dir)
	answer, err := io.ReadAll(out)
	must(t, errors.Join(err, cmd.Wait()))
	if string(answer) != "locked\n" {
		t.Errorf("%q", answer)
	}
	if _, err := Open(dir, childOptions()); !errors.Is(err, ErrLocked) {
		t.Errorf("second log of one process: %v", err)
	}
	if err := errorOf(Repair(dir, childOptions())); !errors.Is(err, ErrLocked) {
		t.Errorf("repair: %v", err)
	}
	mustAppend(t, l, 3)
	mustClose(t, l)
	cmd, out = spawn(t, t.Context(), "open", dir)
	answer, err = io.ReadAll(out)
	if err = errors.Join(err, cmd.Wait()); err != nil || len(answer) != 0 {
		t.Errorf("after the close: %q, %v", answer, err)
	}
}

func errorOf[T any](_ T, err error) error { return err }

// TestW8_ClosedLogIsFree closes a log while another descriptor of its lock is open, as in a process that is being
// started. The next Open must succeed.
func TestW8_ClosedLogIsFree(t *testing.T) {
	dir := scratch(t)
	l := mustOpen(t, dir, childOptions())
	copied, err := unix.Dup(int(l.lock.Fd()))
	must(t, err)
	defer func() { must(t, unix.Close(copied)) }()
	if _, err := Open(dir, childOptions()); !errors.Is(err, ErrLocked) {
		t.Errorf("while it is open: %v", err)
	}
	mustClose(t, l)
	mustClose(t, mustOpen(t, dir, childOptions()))
}

func TestW1_KilledAtAnyMoment(t *testing.T) {
	cycles := sampleSize(20, 100)
	killed, acked, bad := killCycles(t, cycles)
	t.Logf("%d kills, %d records acknowledged, %d cycles lost some", killed, acked, bad)
	if killed != cycles || acked == 0 || bad != 0 {
		t.Errorf("%d kills, %d acknowledged, %d bad", killed, acked, bad)
	}
}

// killCycles kills a child after a random number of acknowledgements, and checks that all of these records are there.
func killCycles(t *testing.T, cycles int) (killed int, acked uint64, bad int) {
	t.Helper()
	r := rand.New(rand.NewSource(9))
	dir := filepath.Join(t.TempDir(), "log")
	for range cycles {
		cmd, out := spawn(t, t.Context(), "append", dir)
		last, _ := lines(t, out, 1+r.Intn(60))
		must(t, cmd.Process.Kill())
		// Lines that had reached the pipe were acknowledged too.
		if after, _ := lines(t, out, 1<<30); after > last {
			last = after
		}
		var exit *exec.ExitError
		if err := cmd.Wait(); errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
			killed++
		}
		l := mustOpen(t, dir, childOptions())
		if err := checkLog(l); err != nil || l.Last() < last {
			bad++
		}
		acked = max(acked, last)
		mustClose(t, l)
	}
	return killed, acked, bad
}

func TestW6_RealWriteErrorPoisons(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	cmd, out := spawn(t, t.Context(), "filesize", dir)
	acked, rest := lines(t, out, 1<<30)
	err := cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || strings.Count(rest, ErrPoisoned.Error()) != 2 || !strings.Contains(rest, "file too large") {
		t.Fatalf("%v: %q", err, rest)
	}
	l := mustOpen(t, dir, childOptions())
	defer mustClose(t, l)
	r := l.Recovery()
	t.Logf("%d acknowledged, %d recovered, %d bytes of the failed write cut", acked, r.Last, r.TornBytes)
	if acked == 0 || l.Last() != acked || r.TornBytes == 0 || r.AmbiguousTail {
		t.Errorf("acknowledged %d, %+v", acked, r)
	}
	wantWhole(t, l)
}
