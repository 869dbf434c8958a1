//go:build faults

package faults

import (
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// freeze stops a node in the middle of whatever it does, and returns when all of its threads stand, or when it is over. The
// program must be the child itself, not a prefix.
func (n *node) freeze() {
	n.t.Helper()
	n.send(syscall.SIGSTOP)
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, n.pid(), &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if err == nil || err == unix.ECHILD { // no child: it has ended
			return
		}
		if err != unix.EINTR {
			n.t.Fatalf("wait until the node stands: %v", err)
		}
	}
}

// powerCut is how a node on a volume loses power. The node stands first: else the kernel lets answers out that it gave while
// the file system went down.
func (v *volume) powerCut(n *node) {
	n.freeze()
	v.cut()
	n.kill()
	v.again()
}

// unsynced is the program with a bug: it never waits for the disk.
func unsynced(t *testing.T) string {
	t.Helper()
	return mutant(t, "unsynced", "wal/log.go", "err := l.store.Sync()", "err := error(nil)")
}

// volumeTerms are those of the nodes that lose power.
func volumeTerms() terms { return terms{day: 20_000, minute: 60_000, lease: 16} }

// losePower cuts the power of a node on a kind of file system so often, then that of one that does not sync.
func losePower(t *testing.T, kind string, cycles int, size string, options ...string) {
	t.Helper()
	t.Parallel()
	need(t, map[string]string{"ext4": "e2fsprogs", "xfs": "xfsprogs"}[kind], "mkfs."+kind)
	if !apart(t) {
		return
	}
	v := newVolume(t, memoryDir(t), kind, size, options...)
	s := newStorm(t, volumeTerms(), v.place, "")
	s.rage(countFrom(t, "W2_CUTS", cycles), v.powerCut)
	figure(t, "power cut, %s: %v", kind, s)

	v = newVolume(t, memoryDir(t), kind, size, options...)
	s = newStorm(t, volumeTerms(), v.place, unsynced(t))
	s.catch(v.powerCut, lost, granted)
	figure(t, "control, %s without sync: %s", kind, s.caught())
}

// TestFaultsW2_PowerCutExt4 cuts the power under load on ext4 (W2, Q2, S7).
func TestFaultsW2_PowerCutExt4(t *testing.T) { losePower(t, "ext4", 500, "256M", "-q", "-F") }

// TestFaultsW2_PowerCutXFS is the same on XFS.
func TestFaultsW2_PowerCutXFS(t *testing.T) { losePower(t, "xfs", 300, "512M", "-q", "-f") }
