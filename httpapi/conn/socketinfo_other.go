//go:build !linux || (!amd64 && !arm64)

package conn

import (
	"net"
	"time"
)

// socketInfo is only available on Linux. On other systems no request counts as late, and load is bounded by the limits
// of connections and mailboxes.
type socketInfo struct{}

func newSocketInfo(*net.TCPConn) *socketInfo { return nil }

func (*socketInfo) queueAge() time.Duration { return 0 }

func (*socketInfo) pending() bool { return false }

func (*socketInfo) recvNow([]byte) int { return 0 }
