package doctor

import (
	"syscall"
	"time"
)

// statusUnsynchronised is STA_UNSYNC of adjtimex(2).
const statusUnsynchronised = 0x40

// systemClock asks the kernel, as ntpd and chrony tell it.
func systemClock() clockState {
	var answer syscall.Timex
	if _, err := syscall.Adjtimex(&answer); err != nil {
		return clockState{}
	}
	return clockState{
		known: true, synchronised: answer.Status&statusUnsynchronised == 0, errorMax: time.Duration(answer.Maxerror) * time.Microsecond,
	}
}
