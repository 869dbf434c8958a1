//go:build !linux

package httpapi

import (
	"errors"
	"net"
)

// deafen can't be done here.
func deafen(net.Listener) error { return errors.ErrUnsupported }
