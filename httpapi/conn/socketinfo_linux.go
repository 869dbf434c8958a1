//go:build amd64 || arm64

package conn

import (
	"net"
	"syscall"
	"time"
	"unsafe"
)

// socketInfo asks the kernel how long ago the newest bytes came to a connection, in steps of some milliseconds, and
// reads what has come without waiting.
type socketInfo struct {
	raw      syscall.RawConn
	getInfo  func(fd uintptr)
	recvFrom func(fd uintptr)
	info     syscall.TCPInfo
	peeked   [1]byte
	buffer   []byte // where look reads to
	flags    uintptr
	received int
	ok       bool // what was asked last was answered
}

// newSocketInfo is nil for a connection that can't be asked.
func newSocketInfo(tcp *net.TCPConn) *socketInfo {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	s := &socketInfo{raw: raw}
	s.getInfo = func(fd uintptr) {
		size := uint32(unsafe.Sizeof(s.info))
		// It does not block: nothing is to be told to the scheduler.
		_, _, code := syscall.RawSyscall6(syscall.SYS_GETSOCKOPT, fd, syscall.IPPROTO_TCP, syscall.TCP_INFO,
			uintptr(unsafe.Pointer(&s.info)), uintptr(unsafe.Pointer(&size)), 0) //nolint:gosec // the kernel fills in what is ours, and keeps nothing
		s.ok = code == 0
	}
	s.recvFrom = func(fd uintptr) {
		n, _, code := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(unsafe.SliceData(s.buffer))), uintptr(len(s.buffer)), //nolint:gosec // the same
			syscall.MSG_DONTWAIT|s.flags, 0, 0)
		if s.received = 0; code == 0 {
			s.received = int(n)
		}
	}
	return s
}

// pending tells whether unread bytes have come.
func (s *socketInfo) pending() bool { return s != nil && s.recv(s.peeked[:], syscall.MSG_PEEK) > 0 }

// add reads what has come, and does not wait; 0 is nothing, or an end or a fault, which the next read tells.
func (s *socketInfo) recvNow(b []byte) int {
	if s == nil {
		return 0
	}
	return s.recv(b, 0)
}

func (s *socketInfo) recv(b []byte, flag uintptr) int {
	s.buffer, s.flags, s.received = b, flag, 0
	_ = s.raw.Control(s.recvFrom) // a connection that is closed has nothing
	s.buffer = nil
	return s.received
}

// queueAge is 0 where the kernel does not say.
func (s *socketInfo) queueAge() time.Duration {
	if s == nil || s.raw.Control(s.getInfo) != nil || !s.ok {
		return 0
	}
	return time.Duration(s.info.Last_data_recv) * time.Millisecond
}
