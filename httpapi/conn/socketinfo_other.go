//go:build !linux || (!amd64 && !arm64)

package conn

import (
	"net"
	"time"
)

// socketInfo has no data on this system. So no request counts as late, and no load is shed.
type socketInfo struct{}

func newSocketInfo(*net.TCPConn) *socketInfo { return nil }

func (*socketInfo) queueAge() time.Duration { return 0 }

func (*socketInfo) pending() bool { return false }

func (*socketInfo) recvNow([]byte) int { return 0 }
