//go:build !linux

package conn

import (
	"errors"
	"net"
)

// dropNewSYNs makes the kernel ignore new TCP connections. It is not supported on this system.
func dropNewSYNs(net.Listener) error { return errors.ErrUnsupported }
