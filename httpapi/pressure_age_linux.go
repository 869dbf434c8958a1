//go:build amd64 || arm64

package httpapi

import (
	"net"
	"syscall"
	"time"
	"unsafe"
)

// socketAge asks the kernel how long ago the newest bytes came to a connection. The kernel counts in steps of some milliseconds.
type socketAge struct {
	raw  syscall.RawConn
	ask  func(fd uintptr)
	peek func(fd uintptr)
	info syscall.TCPInfo
	byte [1]byte
	ok   bool // what was asked last was answered
}

// newSocketAge is nil for a connection that can't be asked.
func newSocketAge(tcp *net.TCPConn) *socketAge {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	s := &socketAge{raw: raw}
	s.ask = func(fd uintptr) {
		size := uint32(unsafe.Sizeof(s.info))
		// It does not block: nothing is to be told to the scheduler.
		_, _, code := syscall.RawSyscall6(syscall.SYS_GETSOCKOPT, fd, syscall.IPPROTO_TCP, syscall.TCP_INFO,
			uintptr(unsafe.Pointer(&s.info)), uintptr(unsafe.Pointer(&size)), 0) //nolint:gosec // the kernel fills in what is ours, and keeps nothing
		s.ok = code == 0
	}
	s.peek = func(fd uintptr) {
		n, _, code := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&s.byte)), 1, //nolint:gosec // the same
			syscall.MSG_PEEK|syscall.MSG_DONTWAIT, 0, 0)
		s.ok = code == 0 && n > 0
	}
	return s
}

// pending tells whether something has come that nobody has read.
func (s *socketAge) pending() bool { return s != nil && s.raw.Control(s.peek) == nil && s.ok }

// get is 0 where the kernel does not say.
func (s *socketAge) get() time.Duration {
	if s == nil || s.raw.Control(s.ask) != nil || !s.ok {
		return 0
	}
	return time.Duration(s.info.Last_data_recv) * time.Millisecond
}
