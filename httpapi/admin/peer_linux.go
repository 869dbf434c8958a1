package admin

import (
	"net"
	"os/user"
	"strconv"
	"syscall"
)

// unknownPeer is the name of an unknown user.
const unknownPeer = "unknown user"

// peerName returns the name of the user at the other end of a Unix socket, or "uid " and a number.
func peerName(conn net.Conn) string {
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return unknownPeer
	}
	raw, err := unix.SyscallConn()
	if err != nil {
		return unknownPeer
	}
	var peer *syscall.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		peer, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil || failed != nil {
		return unknownPeer
	}
	number := strconv.FormatUint(uint64(peer.Uid), 10)
	known, err := user.LookupId(number)
	if err != nil {
		return "uid " + number
	}
	return known.Username
}
