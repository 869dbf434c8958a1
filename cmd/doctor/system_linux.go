package doctor

import "syscall"

// statusUnsynchronised is the flag STA_UNSYNC of adjtimex(2).
const statusUnsynchronised = 0x40

// clockSynchronised queries the kernel's state of the clock, which ntpd or chrony has set.
func clockSynchronised() (known, synchronised bool) {
	var timex syscall.Timex
	if _, err := syscall.Adjtimex(&timex); err != nil {
		return false, false
	}
	return true, timex.Status&statusUnsynchronised == 0
}
