//go:build !linux

package conn

import (
	"errors"
	"net"
)

// dropNewSYNs is not supported on this system.
func dropNewSYNs(net.Listener) error { return errors.ErrUnsupported }
