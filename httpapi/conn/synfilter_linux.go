package conn

import (
	"errors"
	"net"
	"syscall"
)

// tcpFlags is where the flags stand in the header of TCP; of SYN and ACK a connection that is asked for has the first alone.
const (
	tcpFlags = 13
	flagSyn  = 0x02
	flagAck  = 0x10
)

// dropNewSYNs makes the kernel pass over those who ask a listener for a connection from now on, as if nothing had come: when they ask again, a
// second later, the listener is gone and they are refused. Those who have one wait to be accepted, and can be: closing the listener alone
// would cut them off. An error where it can't be done: some kernels let only root do it.
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
