//go:build faults

package cmd

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// namespaceEnv names the test that runs in its own namespaces, and programEnv the program built for it.
	namespaceEnv = "FAULTS_APART"
	programEnv   = "FAULTS_PROGRAM"
)

// inNamespace runs a test in a process with its own mounts and process numbers. It is the first process there, so
// that at its end, however it ends, the kernel kills the others and removes mounts and loop devices. It returns true
// in that process, and false in the caller, after that process has ended.
func inNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv(namespaceEnv) == t.Name() {
		return true
	}
	needRoot(t)
	need(t, "util-linux", "unshare")
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc",
		os.Args[0], "-test.run=^"+regexp.QuoteMeta(t.Name())+"$", "-test.v", "-test.timeout=20m")
	cmd.Env = append(os.Environ(), namespaceEnv+"="+t.Name(), programEnv+"="+builtProgram(t))
	cmd.Dir = "cmd" // where go test starts a test
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	read, write, err := os.Pipe()
	noError(t, err)
	defer read.Close()
	cmd.Stdout, cmd.Stderr = write, write
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // Pdeathsig is sent at the end of the thread
		defer write.Close()
		ended <- cmd.Run()
	}()
	var rest []string
	passed := false
	for scanner := bufio.NewScanner(read); scanner.Scan(); {
		line := scanner.Text()
		passed = passed || strings.HasPrefix(line, "--- PASS: "+t.Name()+" ")
		switch at := max(strings.Index(line, "FIGURE "), strings.Index(line, "PROGRESS "), strings.Index(line, "NEEDS ")); {
		case strings.Contains(line, "_test.go:") && at >= 0:
			t.Log(line[at:])
		default:
			rest = append(rest, line)
		}
	}
	if err := <-ended; err != nil || !passed {
		t.Fatalf("%v:\n%s", err, strings.Join(rest[max(0, len(rest)-200):], "\n"))
	}
	return false
}

// memoryDisk mounts a file system in memory. Only for tests that run inNamespace, or with their own mounts.
func memoryDisk(t *testing.T, size string) string {
	t.Helper()
	place := t.TempDir()
	noError(t, unix.Mount("tmpfs", place, "tmpfs", 0, "size="+size))
	t.Cleanup(func() { _ = unix.Unmount(place, unix.MNT_DETACH) })
	return place
}

// freeBytes returns the free space of a disk.
func freeBytes(t *testing.T, disk string) int64 {
	t.Helper()
	var s unix.Statfs_t
	noError(t, unix.Statfs(disk, &s))
	return int64(s.Bavail) * s.Bsize
}

// fill leaves a number of bytes of a disk free, until freeSpace.
func fill(t *testing.T, disk string, left int64) {
	t.Helper()
	file, err := os.Create(filepath.Join(disk, "filler"))
	noError(t, err)
	defer file.Close()
	if err := unix.Fallocate(int(file.Fd()), 0, 0, max(1, freeBytes(t, disk)-left)); err != nil {
		t.Fatalf("fill %s: %v", disk, err)
	}
}

func freeSpace(t *testing.T, disk string) {
	t.Helper()
	noError(t, os.Remove(filepath.Join(disk, "filler")))
}

// volume is a file system in a file, on a loop device. Only for tests that run inNamespace.
type volume struct {
	t          *testing.T
	kind       string // ext4 or xfs
	mountPoint string
	device     *os.File // the device exists while it is open
}

// newVolume makes a file system in an image in memory and mounts it. options are those of mkfs.
func newVolume(t *testing.T, dir, kind, size string, options ...string) *volume {
	t.Helper()
	image := filepath.Join(dir, "image")
	mustExec(t, "truncate", "-s", size, image)
	mustExec(t, "mkfs."+kind, append(options, image)...)
	v := &volume{t: t, kind: kind, mountPoint: t.TempDir()}
	name := strings.TrimSpace(mustExec(t, "losetup", "--find", "--show", image))
	var err error
	v.device, err = os.OpenFile(name, os.O_RDWR, 0)
	noError(t, err)
	t.Cleanup(func() { _ = v.device.Close() })
	mustExec(t, "losetup", "--detach", name) // takes effect with its last user
	noError(t, os.Remove(image))             // the device keeps it open, and a killed test leaves no file
	v.mount()
	t.Cleanup(func() { _ = unix.Unmount(v.mountPoint, unix.MNT_DETACH) })
	return v
}

// mustExec runs a program, which must succeed.
func mustExec(t *testing.T, name string, args ...string) string {
	t.Helper()
	output, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, output)
	}
	return string(output)
}

func (v *volume) mount() {
	v.t.Helper()
	if err := unix.Mount(v.device.Name(), v.mountPoint, v.kind, unix.MS_NOATIME, ""); err != nil {
		v.t.Fatalf("mount %s: %v", v.kind, err)
	}
}

// shutdownFlags makes a file system shut down without writing anything, even to its own journal.
const shutdownFlags = 2

// cutPower shuts the file system down: what is not in its journal or on the device is lost. The ioctl
// EXT4_IOC_SHUTDOWN of ext4 and GOINGDOWN of XFS have one number.
func (v *volume) cutPower() {
	v.t.Helper()
	place, err := os.Open(v.mountPoint)
	noError(v.t, err)
	defer place.Close()
	const request = 2<<30 | 4<<16 | 'X'<<8 | 125 // _IOR('X', 125, u32)
	flags := uint32(shutdownFlags)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, place.Fd(), request, uintptr(unsafe.Pointer(&flags))); errno != 0 {
		v.t.Fatalf("shut %s down: %v", v.kind, errno)
	}
}

// remount mounts what is left, and drops the kernel's caches of it. No file of it may be open.
func (v *volume) remount() {
	v.t.Helper()
	if err := unix.Unmount(v.mountPoint, 0); err != nil {
		v.t.Fatalf("unmount %s: %v", v.kind, err)
	}
	if err := unix.IoctlSetInt(int(v.device.Fd()), unix.BLKFLSBUF, 0); err != nil {
		v.t.Fatalf("forget what was on %s: %v", v.kind, err)
	}
	v.mount()
}

// tightDisk is an ext4 file system in an image on a memory file system that is smaller: when that is full, writes
// fail with EIO.
type tightDisk struct {
	*volume
	backing string // the memory file system
}

// newTightDisk mounts one; with a journal ext4 turns read-only at the first error, without one it goes on. Each
// request is one page of the image: of a request of two pages with room for one the loop device writes one and
// reports success.
func newTightDisk(t *testing.T, journal bool) *tightDisk {
	t.Helper()
	features := "^has_journal"
	if journal {
		features = "has_journal"
	}
	d := &tightDisk{backing: memoryDisk(t, "24m")}
	d.volume = newVolume(t, d.backing, "ext4", "256M", // far above the program's reserve
		"-q", "-b", "4096", "-O", features, "-E", "nodiscard,lazy_itable_init=1,lazy_journal_init=1")
	limit := filepath.Join("/sys/block", filepath.Base(d.device.Name()), "queue/max_sectors_kb")
	noError(t, os.WriteFile(limit, []byte("4"), 0o600))
	return d
}

// allowWrites lets writes succeed again, while everything stays mounted.
func (d *tightDisk) allowWrites() {
	d.t.Helper()
	noError(d.t, unix.Mount("none", d.backing, "tmpfs", unix.MS_REMOUNT, "size=200m"))
}

// diskErrorCase is one run on a disk whose writes fail for a while.
type diskErrorCase struct {
	name    string
	journal bool
	left    int64 // bytes below the image when it gets tight
	// restartFirst starts the node before the kernel's caches of the disk are dropped, as a service manager does.
	restartFirst bool
}

// run returns the client, how long the node ran after the first failure, and an error if an acknowledged change is
// not on the disk afterwards. A program with a bug goes on instead of stopping.
func (f diskErrorCase) run(t *testing.T, program string) (s *keyWriter, lasted time.Duration, err error) {
	t.Helper()
	disk, mail, s := newTightDisk(t, f.journal), newPlainMailServer(t), newKeyWriter(t, "")
	dir := filepath.Join(disk.mountPoint, "data")
	begin := func() *nodeProcess {
		return launch(t, nodeCommand{program: program, args: nodeArgs(dir, mail.args()...)})
	}
	n := begin().ready()
	s.signIn(t, mail, n)
	fill(t, disk.backing, f.left)
	if program != "" {
		disk.awaitRetry(s, n)
	} else {
		s.work(n, neverFull)
		disk.allowWrites()
		if code := n.AwaitExit(); code != exitFailStop {
			return s, s.lasted(n), fmt.Errorf("it ended with %d: %s", code, n.Tail(3))
		}
	}
	if f.restartFirst {
		if err := f.runOn(begin(), s); err != nil {
			return s, s.lasted(n), err
		}
	}
	disk.remount()
	after := begin()
	if !after.answers() {
		return s, s.lasted(n), fmt.Errorf("it does not start after the failure: code %d: %s", after.AwaitExit(), after.Tail(2))
	}
	err = s.check(after)
	after.kill()
	return s, s.lasted(n), err
}

// awaitRetry lets a node that retries a failed sync go on until it has, gives it space, and kills it some changes
// later.
func (d *tightDisk) awaitRetry(s *keyWriter, n *nodeProcess) {
	s.l.end()
	for range neverFull {
		if _, found := n.FindNow("sync failed, tried again"); found {
			break
		}
		if got := s.createAndRevoke(); !got.good() {
			break
		}
	}
	d.allowWrites()
	for range realRounds {
		s.createAndRevoke()
	}
	n.kill()
}

// runOn runs a node that was started on what a failure left, with the kernel's caches of it.
func (f diskErrorCase) runOn(n *nodeProcess, s *keyWriter) error {
	if !n.answers() {
		return fmt.Errorf("it does not start again: code %d: %s", n.AwaitExit(), n.Tail(2))
	}
	if err := s.check(n); err != nil {
		return fmt.Errorf("started again: %w", err)
	}
	for round := range realRounds {
		if got := s.createAndRevoke(); !got.good() {
			return fmt.Errorf("started again it acknowledged %d of %d: %s", round, realRounds, n.Tail(3))
		}
	}
	n.kill()
	return nil
}

// TestFaultsW6_RealDiskError runs the program on disks whose writes fail with a real EIO: it exits with code 70
// within a second, and everything that it acknowledged is on the disk, also for a node that was started while the
// kernel still caches what it could not write.
func TestFaultsW6_RealDiskError(t *testing.T) {
	need(t, "e2fsprogs", "mkfs.ext4")
	if !inNamespace(t) {
		return
	}
	const each = 5
	var slowest time.Duration
	runs, acknowledged := 0, 0
	for _, f := range []diskErrorCase{
		{name: "ext4 with a journal", journal: true, left: 512 << 10},
		{name: "ext4 without a journal", left: 96 << 10},
		{name: "ext4 without a journal, started again at once", left: 96 << 10, restartFirst: true},
	} {
		for k := range each {
			f.left += int64(k) << 12
			s, lasted, err := f.run(t, "")
			if err != nil {
				t.Errorf("%s, run %d: %v", f.name, k, err)
			}
			if s.later > 0 || lasted > failStopMax {
				t.Errorf("%s, run %d: %d acknowledged after the failure, ended after %s", f.name, k, s.later, lasted)
			}
			if !s.failed.IsZero() {
				runs++
			}
			acknowledged += s.createdKeys()
			slowest = max(slowest, lasted)
		}
		progress(t, "%s: done", f.name)
	}
	figure(t, "real EIO: the node stopped %d times with code 70, at most %s after the first failed answer; %d keys acknowledged",
		runs, slowest.Round(time.Millisecond), acknowledged)
	if runs == 0 {
		t.Error("no write failed")
	}
}

// TestFaultsW6_Control plants the bug that fail-stop prevents: a failed sync is retried and then believed.
func TestFaultsW6_Control(t *testing.T) {
	need(t, "e2fsprogs", "mkfs.ext4")
	if !inNamespace(t) {
		return
	}
	retries := buildWith(t, "retries", plant{"wal/log.go", "err := l.store.Sync()",
		"err := l.store.Sync()\n\tfor ; err != nil; err = l.store.Sync() {\n\t\tl.options.Logger.Warn(\"sync failed, tried again\")\n\t}"})
	s, _, err := diskErrorCase{left: 96 << 10}.run(t, retries)
	figure(t, "control, a failed sync is tried again: %d keys acknowledged, then: %.300s", s.createdKeys(), fmt.Sprint(err))
	if err == nil {
		t.Error("nothing is lost: the disk of this test does not fail as it should")
	}
}
