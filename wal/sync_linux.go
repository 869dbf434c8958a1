package wal

import (
	"os"
	"syscall"
	_ "unsafe" // go:linkname
)

// The Go runtime keeps these two functions for code outside of it that links to them (go.dev/issue/67401).

//go:linkname entersyscallblock runtime.entersyscallblock
func entersyscallblock()

//go:linkname exitsyscall runtime.exitsyscall
func exitsyscall()

// syncFile syncs a file and hands the processor to other goroutines at once. With os.File.Sync the Go runtime notices
// only after some 100 µs that the thread is blocked, and gives its processor to other goroutines only then. So with one
// processor no request was served in half of the time of a sync.
func syncFile(f *os.File) error {
	for {
		if errno := fsync(f.Fd()); errno != syscall.EINTR {
			return os.NewSyscallError("fsync", asError(errno))
		}
	}
}

// fsync has nosplit, because its stack must not move between the two calls of the runtime.
//
//go:nosplit
func fsync(fd uintptr) syscall.Errno {
	entersyscallblock()
	_, _, errno := syscall.RawSyscall(syscall.SYS_FSYNC, fd, 0, 0)
	exitsyscall()
	return errno
}

func asError(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}
