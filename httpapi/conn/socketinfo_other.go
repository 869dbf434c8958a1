//go:build !linux || (!amd64 && !arm64)

package conn

import (
	"net"
	"time"
)

// socketInfo is only known on Linux. On other systems no request counts as late; the limits of connections and
// mailboxes bound the load.
type socketInfo struct{}

func newSocketInfo(*net.TCPConn) *socketInfo { return nil }

func (*socketInfo) queueAge() time.Duration { return 0 }

func (*socketInfo) pending() bool { return false }

func (*socketInfo) recvNow([]byte) int { return 0 }
