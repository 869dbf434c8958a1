//go:build amd64 || arm64

package conn

import (
	"net"
	"syscall"
	"time"
	"unsafe"
)

// socketInfo asks the kernel when the newest bytes of a connection arrived. It can also read without waiting.
type socketInfo struct {
	raw      syscall.RawConn
	getInfo  func(fd uintptr)
	recvFrom func(fd uintptr)
	info     syscall.TCPInfo
	peeked   [1]byte
	buffer   []byte  // argument of recvFrom
	flags    uintptr // argument of recvFrom
	received int     // result of recvFrom
	ok       bool    // result of getInfo: info is valid
}

// newSocketInfo returns nil if the connection has no descriptor.
func newSocketInfo(tcp *net.TCPConn) *socketInfo {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	s := &socketInfo{raw: raw}
	s.getInfo = func(fd uintptr) {
		size := uint32(unsafe.Sizeof(s.info))
		// RawSyscall skips the scheduler, which is safe because the call does not block.
		_, _, code := syscall.RawSyscall6(syscall.SYS_GETSOCKOPT, fd, syscall.IPPROTO_TCP, syscall.TCP_INFO,
			uintptr(unsafe.Pointer(&s.info)), uintptr(unsafe.Pointer(&size)), 0) //nolint:gosec // the kernel writes to our memory only during the call
		s.ok = code == 0
	}
	s.recvFrom = func(fd uintptr) {
		n, _, code := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(unsafe.SliceData(s.buffer))), uintptr(len(s.buffer)), //nolint:gosec // the kernel uses s.buffer only during the call
			syscall.MSG_DONTWAIT|s.flags, 0, 0)
		if s.received = 0; code == 0 {
			s.received = int(n)
		}
	}
	return s
}

// pending reports whether the socket has unread bytes.
func (s *socketInfo) pending() bool { return s != nil && s.recv(s.peeked[:], syscall.MSG_PEEK) > 0 }

// recvNow reads without waiting. It returns 0 if no bytes have arrived, and also at EOF or after an error. The next
// Read reports EOF or the error.
func (s *socketInfo) recvNow(b []byte) int {
	if s == nil {
		return 0
	}
	return s.recv(b, 0)
}

func (s *socketInfo) recv(b []byte, flag uintptr) int {
	s.buffer, s.flags, s.received = b, flag, 0
	_ = s.raw.Control(s.recvFrom) // a closed connection has no bytes
	s.buffer = nil
	return s.received
}

// queueAge returns the time since the newest bytes arrived, with a resolution of some milliseconds, or 0 if the kernel
// does not report it.
func (s *socketInfo) queueAge() time.Duration {
	if s == nil || s.raw.Control(s.getInfo) != nil || !s.ok {
		return 0
	}
	return time.Duration(s.info.Last_data_recv) * time.Millisecond
}
