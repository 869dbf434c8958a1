package doctor

import (
	"io/fs"
	"os"
	"syscall"
)

// statusUnsynchronised is the flag STA_UNSYNC of adjtimex(2).
const statusUnsynchronised = 0x40

// clockSynchronised queries the kernel, which knows the state of the clock from ntpd or chrony.
func clockSynchronised() (known, synchronised bool) {
	var timex syscall.Timex
	if _, err := syscall.Adjtimex(&timex); err != nil {
		return false, false
	}
	return true, timex.Status&statusUnsynchronised == 0
}

// ownersOf returns the user ID of a file's owner, and the user ID of this process. known is false if the owner is
// unknown.
func ownersOf(info fs.FileInfo) (owner, user int, known bool) {
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, 0, false
	}
	return int(stat.Uid), os.Getuid(), true
}
