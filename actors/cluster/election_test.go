//go:build !faults && !nocluster

package cluster

import (
	"time"
	_ "unsafe" // go:linkname
)

// The times of the server's elections are variables of its package without an option.

//go:linkname minElectionTimeout github.com/nats-io/nats-server/v2/server.minElectionTimeout
var minElectionTimeout time.Duration

//go:linkname maxElectionTimeout github.com/nats-io/nats-server/v2/server.maxElectionTimeout
var maxElectionTimeout time.Duration

//go:linkname hbInterval github.com/nats-io/nats-server/v2/server.hbInterval
var hbInterval time.Duration

// speedUpElections makes elections four times as fast as in production: 1 to 2.2 s. The fault tests use the server's
// own times.
func speedUpElections() {
	minElectionTimeout, maxElectionTimeout, hbInterval = time.Second, 2200*time.Millisecond, 250*time.Millisecond
}
