//go:build !linux || (!amd64 && !arm64)

package conn

import (
	"net"
	"time"
)

// socketInfo is known on Linux alone. Elsewhere nothing is ever late: what bounds a node there are the caps of connections and mailboxes.
type socketAge struct{}

func newSocketAge(*net.TCPConn) *socketAge { return nil }

func (*socketAge) get() time.Duration { return 0 }

func (*socketAge) pending() bool { return false }

func (*socketAge) take([]byte) int { return 0 }
