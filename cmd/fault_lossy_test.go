//go:build faults

package cmd

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	fuse "github.com/hanwen/go-fuse/v2/fs"
	mounts "github.com/hanwen/go-fuse/v2/fuse"
)

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
	syncMax      time.Duration                     // a sync takes a random time up to this
	files        map[uint64][]byte                 // by inode: contents at the last sync
	names        map[uint64]map[string]fs.FileInfo // the same of directories
	syncs        int
	unsyncedLost int // files and directories with unsynced changes at a power cut
	keptInPart   int // of those files, those kept in part
}

// newLossyDisk mounts an empty one.
func newLossyDisk(t *testing.T, seed uint64, syncMax time.Duration) *lossyDisk {
	t.Helper()
	l := &lossyDisk{
		t: t, mountPoint: t.TempDir(), backing: filepath.Join(memoryDir(t), "live"), chance: rand.New(rand.NewPCG(seed, 1)), syncMax: syncMax,
	}
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
	if l.syncMax > 0 {
		span := upTo(l.chance, l.syncMax)
		l.mu.Unlock()
		wait(span)
		l.mu.Lock()
	}
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

// syncMax is as long as on a slow disk, so that power cuts hit batches that are written and not yet synced.
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
	l := newLossyDisk(t, uint64(time.Now().UnixNano()), syncMax)
	s := newCrashTest(t, usualLimits(), l.mountPoint, "")
	l.syncAll()
	s.run(countFrom(t, "W2_CUTS", 200), l.powerCut(s))
	figure(t, "power cut, lossy disk: %v; %v", s, l)
	if l.unsyncedLost == 0 || l.keptInPart == 0 || s.tornTails() == 0 {
		t.Errorf("nothing was torn: %v, %d torn tails", l, s.tornTails())
	}

	l = newLossyDisk(t, uint64(time.Now().UnixNano()), syncMax)
	s = newCrashTest(t, usualLimits(), l.mountPoint, unsynced(t))
	l.syncAll()
	s.runUntilCaught(l.powerCut(s), lostWrite, overGranted)
	figure(t, "control, lossy disk without sync: %s", s.caughtBy())
}
