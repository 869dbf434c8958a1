package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"
)

// place is where a target listens, as sockets want it.
type place struct {
	family  int
	address unix.Sockaddr
}

// findPlace reads host:port. A name is looked up, and its first address taken.
func findPlace(ctx context.Context, address string) (place, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return place{}, fmt.Errorf("%w: address %q: %w", errLoad, address, err)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil || port == 0 {
		return place{}, fmt.Errorf("%w: address %q: the port is no number from 1 to 65535", errLoad, address)
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host) // an address is its own answer
	if err != nil {
		return place{}, fmt.Errorf("%w: address %q: %w", errLoad, address, err)
	}
	return placeOf(found[0].Unmap(), int(port)), nil
}

func placeOf(address netip.Addr, port int) place {
	if address.Is4() {
		return place{unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: address.As4()}}
	}
	return place{unix.AF_INET6, &unix.SockaddrInet6{Port: port, Addr: address.As16()}}
}

// dial begins to connect; the socket can be written to when it is done, well or not.
func (p place) dial() (int, error) {
	socket, err := unix.Socket(p.family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return -1, fmt.Errorf("open a socket: %w", err)
	}
	// A request is one write: nothing is to be gathered.
	if err := unix.SetsockoptInt(socket, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		_ = unix.Close(socket)
		return -1, fmt.Errorf("set up a socket: %w", err)
	}
	err = unix.Connect(socket, p.address)
	if err != nil && !errors.Is(err, unix.EINPROGRESS) && !errors.Is(err, unix.EINTR) {
		_ = unix.Close(socket)
		return -1, err
	}
	return socket, nil
}

// dialled tells how connecting ended.
func dialled(socket int) error {
	code, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		return err
	}
	if code != 0 {
		return unix.Errno(code)
	}
	return nil
}
