//go:build !linux || (!amd64 && !arm64)

package conn

import (
	"net"
	"time"
)

// socketInfo reports how long the current request lay unread in its socket. On this system it has no data, so no
// request counts as late, and none is rejected because of overload.
type socketInfo struct{}

func newSocketInfo(*net.TCPConn) *socketInfo { return nil }

func (*socketInfo) queueAge() time.Duration { return 0 }

func (*socketInfo) pending() bool { return false }

func (*socketInfo) recvNow([]byte) int { return 0 }
