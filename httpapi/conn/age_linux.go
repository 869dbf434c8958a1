//go:build amd64 || arm64

package conn

import (
	"net"
	"syscall"
	"time"
	"unsafe"
)

// socketAge asks the kernel how long ago the newest bytes came to a connection, which it counts in steps of some milliseconds, and what
// has come that nobody has read.
type socketAge struct {
	raw  syscall.RawConn
	ask  func(fd uintptr)
	look func(fd uintptr)
	info syscall.TCPInfo
	byte [1]byte
	into []byte // where look reads to
	flag uintptr
	read int
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
	s.look = func(fd uintptr) {
		n, _, code := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(unsafe.SliceData(s.into))), uintptr(len(s.into)), //nolint:gosec // the same
			syscall.MSG_DONTWAIT|s.flag, 0, 0)
		if s.read = 0; code == 0 {
			s.read = int(n)
		}
	}
	return s
}

// pending tells whether something has come that nobody has read.
func (s *socketAge) pending() bool { return s != nil && s.receive(s.byte[:], syscall.MSG_PEEK) > 0 }

// take reads what has come, and does not wait; 0 is nothing, or an end or a fault, which the next read tells.
func (s *socketAge) take(b []byte) int {
	if s == nil {
		return 0
	}
	return s.receive(b, 0)
}

func (s *socketAge) receive(b []byte, flag uintptr) int {
	s.into, s.flag, s.read = b, flag, 0
	_ = s.raw.Control(s.look) // a connection that is closed has nothing
	s.into = nil
	return s.read
}

// get is 0 where the kernel does not say.
func (s *socketAge) get() time.Duration {
	if s == nil || s.raw.Control(s.ask) != nil || !s.ok {
		return 0
	}
	return time.Duration(s.info.Last_data_recv) * time.Millisecond
}
