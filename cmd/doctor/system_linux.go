package doctor

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// statusUnsynchronised is the flag STA_UNSYNC of adjtimex(2).
const statusUnsynchronised = 0x40

// systemClock queries the kernel, which knows the state of the clock from ntpd or chrony.
func systemClock() clockState {
	var timex syscall.Timex
	if _, err := syscall.Adjtimex(&timex); err != nil {
		return clockState{}
	}
	return clockState{
		known: true, synchronised: timex.Status&statusUnsynchronised == 0, errorMax: time.Duration(timex.Maxerror) * time.Microsecond,
	}
}

// fileSystemKinds maps the type numbers of statfs(2) to kinds of file systems.
func fileSystemKinds() map[uint32]fileSystem {
	const remote, memory = "synced data may be lost, and locks may not hold", "it is lost with a restart of the machine"
	return map[uint32]fileSystem{
		0xEF53: {system: "ext4"}, 0x58465342: {system: "xfs"}, 0x9123683E: {system: "btrfs"}, 0x2FC12FC1: {system: "zfs"}, 0xF2F52010: {system: "f2fs"},
		0x6969: {system: "nfs", risk: remote}, 0x517B: {system: "smb", risk: remote}, 0xFF534D42: {system: "cifs", risk: remote},
		0xFE534D42: {system: "smb2", risk: remote}, 0x01021997: {system: "9p", risk: remote}, 0x65735546: {system: "fuse", risk: remote},
		0x01021994: {system: "tmpfs", risk: memory}, 0x858458F6: {system: "ramfs", risk: memory},
		0x794C7630: {system: "overlayfs", risk: "it is lost with the container; mount a volume"},
	}
}

func fileSystemOf(path string) (fileSystem, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(path, &stat); err != nil {
		return fileSystem{}, err
	}
	kind := uint32(stat.Type) //nolint:gosec // G115: type numbers have 32 bits
	result, ok := fileSystemKinds()[kind]
	if !ok {
		result.system = fmt.Sprintf("a file system of type %#x", kind)
	}
	result.free = stat.Bavail * uint64(stat.Bsize) //nolint:gosec // G115: a block has a positive size
	return result, nil
}

// ownersOf returns the user ID of a file's owner, and the user ID of this process. ok is false if the owner is unknown.
func ownersOf(info fs.FileInfo) (owner, user int, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(stat.Uid), os.Getuid(), true
}
