//go:build faults

package faults

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

// apartMark names the test that runs in namespaces of its own, and programMark the program that has been built for it.
const (
	apartMark   = "FAULTS_APART"
	programMark = "FAULTS_PROGRAM"
)

// apart runs a test in a process with mounts and process numbers of its own, so that nothing that it mounts or starts is left
// when it ends, however it ends: it is the first process there, and with it the kernel ends the others and takes the mounts and
// their loop devices down. It is true in that process, and false, after it has ended, in the caller's, who then returns.
func apart(t *testing.T) bool {
	t.Helper()
	if os.Getenv(apartMark) == t.Name() {
		return true
	}
	needRoot(t)
	need(t, "util-linux", "unshare")
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc",
		os.Args[0], "-test.run=^"+regexp.QuoteMeta(t.Name())+"$", "-test.v", "-test.timeout=20m")
	cmd.Env = append(os.Environ(), apartMark+"="+t.Name(), programMark+"="+program(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	read, write, err := os.Pipe()
	noError(t, err)
	defer read.Close()
	cmd.Stdout, cmd.Stderr = write, write
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the signal at the parent's death is sent at the death of the thread
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

// memoryDisk mounts a file system in memory of a size. Only for tests that run apart, or with mounts of their own.
func memoryDisk(t *testing.T, size string) string {
	t.Helper()
	place := t.TempDir()
	noError(t, unix.Mount("tmpfs", place, "tmpfs", 0, "size="+size))
	t.Cleanup(func() { _ = unix.Unmount(place, unix.MNT_DETACH) })
	return place
}

// freeBytes is what is left on a disk.
func freeBytes(t *testing.T, disk string) int64 {
	t.Helper()
	var s unix.Statfs_t
	noError(t, unix.Statfs(disk, &s))
	return int64(s.Bavail) * s.Bsize
}

// fill leaves so many bytes of a disk free, until relieve.
func fill(t *testing.T, disk string, left int64) {
	t.Helper()
	file, err := os.Create(filepath.Join(disk, "filler"))
	noError(t, err)
	defer file.Close()
	if err := unix.Fallocate(int(file.Fd()), 0, 0, max(1, freeBytes(t, disk)-left)); err != nil {
		t.Fatalf("fill %s: %v", disk, err)
	}
}

func relieve(t *testing.T, disk string) {
	t.Helper()
	noError(t, os.Remove(filepath.Join(disk, "filler")))
}

// volume is a file system in a file, on a loop device, which is mounted in a place. Only for tests that run apart.
type volume struct {
	t      *testing.T
	kind   string // ext4 or xfs
	place  string
	device *os.File // as long as it is open the device is there; it goes with the last user
}

// newVolume makes a file system in an image in a directory in memory and mounts it. options are those of mkfs.
func newVolume(t *testing.T, dir, kind, size string, options ...string) *volume {
	t.Helper()
	image := filepath.Join(dir, "image")
	system(t, "truncate", "-s", size, image)
	system(t, "mkfs."+kind, append(options, image)...)
	v := &volume{t: t, kind: kind, place: t.TempDir()}
	name := strings.TrimSpace(system(t, "losetup", "--find", "--show", image))
	var err error
	v.device, err = os.OpenFile(name, os.O_RDWR, 0)
	noError(t, err)
	t.Cleanup(func() { _ = v.device.Close() })
	system(t, "losetup", "--detach", name) // when its last user is gone
	noError(t, os.Remove(image))           // the device has it, and no killed test leaves it behind
	v.mount()
	t.Cleanup(func() { _ = unix.Unmount(v.place, unix.MNT_DETACH) })
	return v
}

// system runs a program of the machine, which must succeed.
func system(t *testing.T, name string, args ...string) string {
	t.Helper()
	output, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, output)
	}
	return string(output)
}

func (v *volume) mount() {
	v.t.Helper()
	if err := unix.Mount(v.device.Name(), v.place, v.kind, unix.MS_NOATIME, ""); err != nil {
		v.t.Fatalf("mount %s: %v", v.kind, err)
	}
}

// shutdownFlags tells what a file system does before it is gone: nothing, not even with its own journal.
const shutdownFlags = 2

// cut takes the power from the file system: what is not in its journal or on the device is lost. It is the ioctl
// EXT4_IOC_SHUTDOWN of ext4 and GOINGDOWN of XFS, which have one number.
func (v *volume) cut() {
	v.t.Helper()
	place, err := os.Open(v.place)
	noError(v.t, err)
	defer place.Close()
	const request = 2<<30 | 4<<16 | 'X'<<8 | 125 // _IOR('X', 125, u32)
	flags := uint32(shutdownFlags)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, place.Fd(), request, uintptr(unsafe.Pointer(&flags))); errno != 0 {
		v.t.Fatalf("shut %s down: %v", v.kind, errno)
	}
}

// again mounts what is left, and forgets what the kernel remembers of it. Nobody may have a file of it open.
func (v *volume) again() {
	v.t.Helper()
	if err := unix.Unmount(v.place, 0); err != nil {
		v.t.Fatalf("unmount %s: %v", v.kind, err)
	}
	if err := unix.IoctlSetInt(int(v.device.Fd()), unix.BLKFLSBUF, 0); err != nil {
		v.t.Fatalf("forget what was on %s: %v", v.kind, err)
	}
	v.mount()
}

// tightDisk is an ext4 file system in an image on a memory file system that is smaller: when that is full, writing fails with EIO.
type tightDisk struct {
	*volume
	backing string // the memory file system
}

// newTightDisk mounts one; with a journal ext4 turns read-only at the first error, without one it goes on. Each request is one page of
// the image: of a request of two for which there is room for one the loop device writes one, and reports success.
func newTightDisk(t *testing.T, journal bool) *tightDisk {
	t.Helper()
	features := "^has_journal"
	if journal {
		features = "has_journal"
	}
	d := &tightDisk{backing: memoryDisk(t, "24m")}
	d.volume = newVolume(t, d.backing, "ext4", "256M", // far above the space that the program keeps in reserve
		"-q", "-b", "4096", "-O", features, "-E", "nodiscard,lazy_itable_init=1,lazy_journal_init=1")
	limit := filepath.Join("/sys/block", filepath.Base(d.device.Name()), "queue/max_sectors_kb")
	noError(t, os.WriteFile(limit, []byte("4"), 0o600))
	return d
}

// relax lets writes succeed again, while everything is mounted.
func (d *tightDisk) relax() {
	d.t.Helper()
	noError(d.t, unix.Mount("none", d.backing, "tmpfs", unix.MS_REMOUNT, "size=200m"))
}

// realFailure is one run on a disk whose writes fail for a while.
type realFailure struct {
	name    string
	journal bool
	left    int64 // bytes below the image when it gets tight
	// again has the node started before the kernel's memory of the disk is dropped, as a service manager does.
	again bool
}

// run returns what a caller saw and how long the node was there after the first failure, and an error when something acknowledged is
// not on the disk afterwards. A program with a bug goes on instead of stopping.
func (f realFailure) run(t *testing.T, program string) (s *smith, lasted time.Duration, err error) {
	t.Helper()
	disk, office, s := newTightDisk(t, f.journal), newPostOffice(t), newSmith(t, "")
	dir := filepath.Join(disk.place, "data")
	begin := func() *node {
		return launch(t, command{program: program, args: serveArgs(dir, office.args()...)})
	}
	n := begin().ready()
	s.signIn(t, office, n)
	fill(t, disk.backing, f.left)
	if program != "" {
		disk.retried(s, n)
	} else {
		s.work(n, endless)
		disk.relax()
		if code := n.end(); code != exitFailStop {
			return s, s.lasted(n), fmt.Errorf("it ended with %d: %s", code, n.tail(3))
		}
	}
	if f.again {
		if err := f.goOn(begin(), s); err != nil {
			return s, s.lasted(n), err
		}
	}
	disk.again()
	after := begin()
	if !after.answers() {
		return s, s.lasted(n), fmt.Errorf("it does not start after the failure: code %d: %s", after.end(), after.tail(2))
	}
	err = s.check(after)
	after.kill()
	return s, s.lasted(n), err
}

// retried lets a node that tries a failed sync again go on until it has, gives it space, and kills it some changes later.
func (d *tightDisk) retried(s *smith, n *node) {
	s.l.end()
	for range endless {
		if _, found := n.seen("sync failed, tried again"); found {
			break
		}
		if got := s.turn(); !got.good() {
			break
		}
	}
	d.relax()
	for range realRounds {
		s.turn()
	}
	n.kill()
}

// goOn is the life of a node that was started on what a failure left, with the kernel's memory of it.
func (f realFailure) goOn(n *node, s *smith) error {
	if !n.answers() {
		return fmt.Errorf("it does not start again: code %d: %s", n.end(), n.tail(2))
	}
	if err := s.check(n); err != nil {
		return fmt.Errorf("started again: %w", err)
	}
	for round := range realRounds {
		if got := s.turn(); !got.good() {
			return fmt.Errorf("started again it acknowledged %d of %d: %s", round, realRounds, n.tail(3))
		}
	}
	n.kill()
	return nil
}

// TestFaultsW6_RealDiskError runs the program on disks whose writes fail with a real EIO: it leaves with code 70 within a second, and all
// that it acknowledged is on the disk, also by a node that was started while the kernel still shows what it could not write.
func TestFaultsW6_RealDiskError(t *testing.T) {
	need(t, "e2fsprogs", "mkfs.ext4")
	if !apart(t) {
		return
	}
	const each = 5
	var slowest time.Duration
	runs, acknowledged := 0, 0
	for _, f := range []realFailure{
		{name: "ext4 with a journal", journal: true, left: 512 << 10},
		{name: "ext4 without a journal", left: 96 << 10},
		{name: "ext4 without a journal, started again at once", left: 96 << 10, again: true},
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
			acknowledged += s.made()
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

// TestFaultsW6_Control plants the bug that the fail-stop is there for: a failed sync is tried again and then believed.
func TestFaultsW6_Control(t *testing.T) {
	need(t, "e2fsprogs", "mkfs.ext4")
	if !apart(t) {
		return
	}
	retries := mutant(t, "retries", "wal/log.go", "err := l.store.Sync()",
		"err := l.store.Sync()\n\tfor ; err != nil; err = l.store.Sync() {\n\t\tl.o.Logger.Warn(\"sync failed, tried again\")\n\t}")
	s, _, err := realFailure{left: 96 << 10}.run(t, retries)
	figure(t, "control, a failed sync is tried again: %d keys acknowledged, then: %.300s", s.made(), fmt.Sprint(err))
	if err == nil {
		t.Error("nothing is lost: the disk of this test does not fail as it should")
	}
}
