package conn

import (
	"errors"
	"net"
	"syscall"
)

// tcpFlags is the offset of the flags in a TCP header. A new connection begins with a segment with SYN and without ACK.
const (
	tcpFlags = 13
	flagSyn  = 0x02
	flagAck  = 0x10
)

// dropNewSYNs makes the kernel ignore new connections. Clients repeat their SYN a second later, when the listener is
// closed, and are refused. Connections in the backlog can still be accepted; closing the listener at once would reset
// them. Some kernels allow this only to root.
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
