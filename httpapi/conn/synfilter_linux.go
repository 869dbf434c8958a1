package conn

import (
	"errors"
	"net"
	"syscall"
)

// tcpFlags is the offset of the flags in a TCP header. A request for a connection has SYN and not ACK.
const (
	tcpFlags = 13
	flagSyn  = 0x02
	flagAck  = 0x10
)

// dropNewSYNs makes the kernel ignore new requests for a connection, as if they had not come: clients repeat them a
// second later, when the listener is closed and they are refused. Connections in the backlog can still be accepted;
// closing the listener at once would cut them off. Some kernels allow it only to root.
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
	refused := raw.Control(func(fd uintptr) {
		err = syscall.AttachLsf(int(fd), filter) //nolint:staticcheck // SA1019: golang.org/x/net/bpf would be a library for one call
	})
	return errors.Join(refused, err)
}
