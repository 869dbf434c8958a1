//go:build faults

package cmd

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	fuse "github.com/hanwen/go-fuse/v2/fs"
	mounts "github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/tasard/tasard/cmd/internal/exit"
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
		if code := n.AwaitExit(); code != exit.FailStop {
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

// lossyDisk is a file system that loses what was not synced, as a disk does in a power cut: a directory in memory,
// seen through FUSE. Of a file it keeps the contents at its last sync, of a directory the names; syncing a file does
// not keep its name. Later changes are lost, or kept in part: see rebuild. Only for tests that run inNamespace.
type lossyDisk struct {
	t          *testing.T
	mountPoint string
	backing    string // the files: another directory after each power cut
	server     *mounts.Server

	mu           sync.Mutex
	powerOff     bool // syncs fail until it is mounted again, and nothing more is kept
	chance       *rand.Rand
	files        map[uint64][]byte                 // by inode: contents at the last sync
	names        map[uint64]map[string]fs.FileInfo // the same of directories
	syncs        int
	unsyncedLost int // files and directories with unsynced changes at a power cut
	keptInPart   int // of those files, those kept in part
}

// newLossyDisk mounts an empty one.
func newLossyDisk(t *testing.T) *lossyDisk {
	t.Helper()
	chance := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	l := &lossyDisk{t: t, mountPoint: t.TempDir(), backing: filepath.Join(memoryDir(t), "live"), chance: chance}
	noError(t, os.Mkdir(l.backing, 0o700))
	l.syncAll()
	l.mount()
	t.Cleanup(func() { _ = l.server.Unmount() }) // the namespace removes it in any case
	return l
}

func (l *lossyDisk) mount() {
	l.t.Helper()
	second := time.Second
	data := &fuse.LoopbackRoot{Path: l.backing}
	root := &lossyNode{&fuse.LoopbackNode{RootData: data}, l}
	data.RootNode = root
	server, err := fuse.Mount(l.mountPoint, root, &fuse.Options{
		EntryTimeout: &second, AttrTimeout: &second, NullPermissions: true,
		MountOptions: mounts.MountOptions{DirectMountStrict: true, FsName: "lossyfs", Name: "lossyfs", MaxWrite: mounts.MAX_KERNEL_WRITE},
	})
	if err != nil {
		l.t.Fatalf("mount the lossy disk: %v", err)
	}
	l.server = server
}

// lossyNode is a file or a directory of a lossyDisk.
type lossyNode struct {
	*fuse.LoopbackNode
	disk *lossyDisk
}

// WrapChild makes the children of a node lossy.
func (n *lossyNode) WrapChild(_ context.Context, child fuse.InodeEmbedder) fuse.InodeEmbedder {
	return &lossyNode{child.(*fuse.LoopbackNode), n.disk}
}

// lossyDir is an open directory.
type lossyDir struct {
	dirStream
	node *lossyNode
}

type dirStream interface {
	fuse.FileReaddirenter
	fuse.FileSeekdirer
	fuse.FileReleasedirer
}

// Fsyncdir syncs a directory.
func (d lossyDir) Fsyncdir(ctx context.Context, flags uint32) syscall.Errno {
	return d.node.Fsync(ctx, nil, flags)
}

// OpendirHandle opens a directory.
func (n *lossyNode) OpendirHandle(ctx context.Context, flags uint32) (fuse.FileHandle, uint32, syscall.Errno) {
	opened, caching, errno := n.LoopbackNode.OpendirHandle(ctx, flags)
	if errno != fuse.OK {
		return nil, 0, errno
	}
	return lossyDir{opened.(dirStream), n}, caching, fuse.OK
}

// Fsync syncs a file or a directory. Writes made meanwhile may be kept too.
func (n *lossyNode) Fsync(context.Context, fuse.FileHandle, uint32) syscall.Errno {
	l := n.disk
	l.mu.Lock()
	defer l.mu.Unlock()
	span := upTo(l.chance, syncMax)
	l.mu.Unlock()
	wait(span)
	l.mu.Lock()
	if l.powerOff {
		return syscall.EIO
	}
	l.syncs++
	if err := l.sync(filepath.Join(l.backing, n.Path(n.Root()))); err != nil {
		return fuse.ToErrno(err)
	}
	return fuse.OK
}

func inodeOf(info fs.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Ino }

// sync keeps a file's contents or a directory's names; the caller holds the lock.
func (l *lossyDisk) sync(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		l.names[inodeOf(info)], err = namesIn(path)
	default:
		l.files[inodeOf(info)], err = os.ReadFile(path)
	}
	return err
}

func namesIn(dir string) (map[string]fs.FileInfo, error) {
	entries, err := os.ReadDir(dir)
	found := map[string]fs.FileInfo{}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil { // else it is gone
			found[entry.Name()] = info
		}
	}
	return found, err
}

// syncAll keeps everything, as sync(1) does.
func (l *lossyDisk) syncAll() {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files, l.names = map[uint64][]byte{}, map[uint64]map[string]fs.FileInfo{}
	err := filepath.WalkDir(l.backing, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return l.sync(path)
	})
	noError(l.t, err)
}

// cutPower cuts the power: nothing more is kept. A sync in progress fails too.
func (l *lossyDisk) cutPower() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.powerOff = true
}

// remount mounts what the power cut has left. No file of it may be open.
func (l *lossyDisk) remount() {
	l.t.Helper()
	if err := l.server.Unmount(); err != nil {
		l.t.Fatalf("unmount the lossy disk: %v", err)
	}
	was := l.backing
	info, err := os.Stat(was)
	noError(l.t, err)
	l.backing = fmt.Sprintf("%s-%d", filepath.Join(filepath.Dir(was), "live"), time.Now().UnixNano())
	l.rebuild(was, l.backing, inodeOf(info), lossMode(l.chance.IntN(lossModes)))
	noError(l.t, os.RemoveAll(was))
	l.syncAll()
	l.powerOff = false
	l.mount()
}

// lossMode is the effect of a power cut on unsynced changes.
type lossMode int

const (
	lossWhole   lossMode = iota // all are lost
	lossPrefix                  // a prefix of the changes is kept, torn at any byte
	lossSectors                 // any sectors of the changes are kept
	lossModes   = 3
)

const sectorBytes = 512

// rebuild makes a directory what a power cut leaves of another one.
func (l *lossyDisk) rebuild(from, to string, inode uint64, way lossMode) {
	l.t.Helper()
	noError(l.t, os.Mkdir(to, 0o700))
	kept, now := l.names[inode], map[string]fs.FileInfo{}
	if found, err := namesIn(from); err == nil {
		now = found
	}
	if !maps.EqualFunc(kept, now, func(a, b fs.FileInfo) bool { return inodeOf(a) == inodeOf(b) }) {
		l.unsyncedLost++
		if way != lossWhole && l.chance.IntN(2) == 0 {
			kept = now
		}
	}
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		info := kept[name]
		if info.IsDir() {
			l.rebuild(filepath.Join(from, name), filepath.Join(to, name), inodeOf(info), way)
			continue
		}
		text := l.files[inodeOf(info)]
		if live, is := now[name]; is && inodeOf(live) == inodeOf(info) {
			if read, err := os.ReadFile(filepath.Join(from, name)); err == nil && !bytes.Equal(read, text) {
				l.unsyncedLost++
				text = l.parts(text, read, way)
			}
		}
		noError(l.t, os.WriteFile(filepath.Join(to, name), text, 0o600))
	}
}

// parts returns the contents of a file after a power cut.
func (l *lossyDisk) parts(kept, now []byte, way lossMode) []byte {
	at := 0 // first difference
	for at < min(len(kept), len(now)) && kept[at] == now[at] {
		at++
	}
	left := slices.Clone(kept)
	// step makes a number of bytes as they were last.
	take := func(from, to int) {
		if to > len(left) {
			left = append(left, make([]byte, to-len(left))...)
		}
		copy(left[from:to], now[from:to])
	}
	switch way {
	case lossPrefix:
		if end := at + l.chance.IntN(len(now)-at+1); end > at {
			l.keptInPart++
			take(at, end)
		}
	case lossSectors:
		l.keptInPart++
		for from := at - at%sectorBytes; from < len(now); from += sectorBytes {
			if l.chance.IntN(2) == 0 {
				take(from, min(len(now), from+sectorBytes))
			}
		}
	}
	return left
}

// syncMax is the longest time of a sync, as on a slow disk, so that power cuts hit batches that are written and not yet
// synced.
const syncMax = 4 * time.Millisecond

// needFUSE skips a test where user programs cannot provide file systems.
func needFUSE(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip("NEEDS /dev/fuse: modprobe fuse")
	}
}

// powerCut crashes a node on a lossy disk by a power cut. Sometimes the node is stopped first; otherwise it runs on
// for a moment on a failing disk, and its answers do not count as promises.
func (l *lossyDisk) powerCut(s *crashTest) crash {
	chance := rand.New(rand.NewPCG(s.seed, 2))
	return func(n *nodeProcess) {
		if chance.IntN(4) == 0 {
			n.freeze()
		}
		s.checker.end()
		l.cutPower()
		n.kill()
		l.remount()
	}
}

// String formats the figures.
func (l *lossyDisk) String() string {
	return fmt.Sprintf("%d syncs; %d files and directories were not synced at a cut, %d files were kept in parts", l.syncs, l.unsyncedLost, l.keptInPart)
}

// TestFaultsW2_PowerCutLossy cuts the power under load on a disk that keeps any part of what was not synced (goals
// W2, Q2 and S7).
func TestFaultsW2_PowerCutLossy(t *testing.T) {
	t.Parallel()
	needFUSE(t)
	if !inNamespace(t) {
		return
	}
	l := newLossyDisk(t)
	s := newCrashTest(t, usualLimits(), l.mountPoint, "")
	l.syncAll()
	s.run(countFrom(t, "W2_CUTS", 200), l.powerCut(s))
	figure(t, "power cut, lossy disk: %v; %v", s, l)
	if l.unsyncedLost == 0 || l.keptInPart == 0 || s.tornTails() == 0 {
		t.Errorf("nothing was torn: %v, %d torn tails", l, s.tornTails())
	}

	l = newLossyDisk(t)
	s = newCrashTest(t, usualLimits(), l.mountPoint, unsynced(t))
	l.syncAll()
	s.runUntilCaught(l.powerCut(s), lostWrite, overGranted)
	figure(t, "control, lossy disk without sync: %s", s.caughtBy())
}
