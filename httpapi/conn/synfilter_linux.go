package conn

import (
	"errors"
	"net"
	"syscall"
)

// A new connection begins with a segment that has the flag SYN and not the flag ACK.
const (
	tcpFlags = 13 // offset of the flags in a TCP header
	flagSyn  = 0x02
	flagAck  = 0x10
)

// dropNewSYNs makes the kernel ignore the SYNs of new connections. Connections in the backlog can still be accepted,
// while closing the listener would reset them. A client repeats its SYN after a second. By then the listener is closed,
// and the kernel refuses the connection. Some kernels allow dropNewSYNs only to root.
func dropNewSYNs(ln net.Listener) error {
	tcp, ok := ln.(*net.TCPListener)
	if !ok {
		return errors.ErrUnsupported
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	filter := []syscall.SockFilter{
		{Code: syscall.BPF_LD | syscall.BPF_B | syscall.BPF_ABS, K: tcpFlags},
		{Code: syscall.BPF_ALU | syscall.BPF_AND | syscall.BPF_K, K: flagSyn | flagAck},
		{Code: syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, K: flagSyn, Jf: 1},
		{Code: syscall.BPF_RET | syscall.BPF_K},
		{Code: syscall.BPF_RET | syscall.BPF_K, K: 1 << 16},
	}
	controlErr := raw.Control(func(fd uintptr) {
		err = syscall.AttachLsf(int(fd), filter) //nolint:staticcheck // SA1019: golang.org/x/net/bpf would be a library for one call
	})
	return errors.Join(controlErr, err)
}
