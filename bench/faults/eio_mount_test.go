//go:build faults

package faults

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// privateMounts gives the test, and the processes that it starts from its own goroutine, mounts that nobody else sees. They
// end with the last of these processes, however it ends.
func privateMounts(t *testing.T) {
	t.Helper()
	needRoot(t)
	need(t, "e2fsprogs mount", "mkfs.ext4", "losetup", "mount", "umount")
	program(t)             // built before: the compiler's processes need no mounts
	runtime.LockOSThread() // for good: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		t.Fatalf("mounts of its own: %v", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatalf("mounts of its own: %v", err)
	}
}

// tightDisk is an ext4 file system in an image on a memory file system that is smaller: when that is full, writing fails
// with a genuine EIO, and keeping on with a genuine success.
type tightDisk struct {
	t       *testing.T
	backing string // the memory file system
	at      string // where the ext4 is mounted
}

const (
	tightImage = "256M" // far above the space that the program keeps in reserve
	tightSmall = "24m"
	tightLarge = "200m"
)

// newTightDisk mounts one; with a journal ext4 turns read-only at the first error, without one it goes on.
func newTightDisk(t *testing.T, journal bool) *tightDisk {
	t.Helper()
	dir := t.TempDir()
	d := &tightDisk{t: t, backing: filepath.Join(dir, "backing"), at: filepath.Join(dir, "disk")}
	for _, at := range []string{d.backing, d.at} {
		if err := os.Mkdir(at, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d.must("mount", "-t", "tmpfs", "-o", "size="+tightSmall, "none", d.backing)
	t.Cleanup(func() { d.must("umount", d.backing) })
	image := filepath.Join(d.backing, "image")
	d.must("truncate", "-s", tightImage, image)
	features := "^has_journal"
	if journal {
		features = "has_journal"
	}
	d.must("mkfs.ext4", "-q", "-b", "4096", "-O", features, "-E", "nodiscard,lazy_itable_init=1,lazy_journal_init=1", image)
	d.mount()
	t.Cleanup(d.unmount)
	return d
}

func (d *tightDisk) must(program string, args ...string) {
	d.t.Helper()
	if output, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		d.t.Errorf("%s %q: %v: %s", program, args, err, output)
	}
}

// mount attaches the image so that each request is one page of it. Without that the loop device lies: of a request of two
// pages for which there is room for one it writes one, and reports success.
func (d *tightDisk) mount() {
	d.t.Helper()
	output, err := exec.Command("losetup", "--find", "--show", filepath.Join(d.backing, "image")).Output()
	if err != nil {
		d.t.Fatalf("losetup: %v", err)
	}
	device := strings.TrimSpace(string(output))
	limit := filepath.Join("/sys/block", filepath.Base(device), "queue/max_sectors_kb")
	if err := os.WriteFile(limit, []byte("4"), 0o600); err != nil {
		d.t.Error(err)
	}
	d.must("mount", device, d.at)
	d.must("losetup", "--detach", device) // when it is unmounted
}

func (d *tightDisk) unmount() { d.must("umount", d.at) }

// relax lets writes succeed again, while everything is mounted.
func (d *tightDisk) relax() { d.must("mount", "-o", "remount,size="+tightLarge, d.backing) }

// forget drops what the kernel holds in memory: what is left is on the disk.
func (d *tightDisk) forget() {
	d.unmount()
	d.mount()
}
