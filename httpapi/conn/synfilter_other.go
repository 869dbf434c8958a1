//go:build !linux

package conn

import (
	"errors"
	"net"
)

// dropNewSYNs can't be done here.
func deafen(net.Listener) error { return errors.ErrUnsupported }
