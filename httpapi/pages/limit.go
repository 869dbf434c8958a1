package pages

import (
	"net/netip"
	"sync"
	"time"
)

// Limits of a client address (IPv6: its /64), apart from those of the API.
const (
	// PerMinuteDefault is the number of requests in a minute, including those for assets.
	PerMinuteDefault  = 240
	limitBurst        = 120     // at once
	limitAddressesMax = 1 << 13 // in one generation
	ipv6PrefixBits    = 64
)

// limiter has a token bucket for each address, kept as the time at which it is full again. The buckets of addresses
// that were idle longest are dropped.
type limiter struct {
	refill time.Duration // time for one more request
	burst  int64

	mu     sync.Mutex
	fullAt generationCache[netip.Addr, int64] // Unix time in nanoseconds
}

func newLimiter(perMinute int) *limiter {
	l := &limiter{refill: time.Minute / time.Duration(perMinute), burst: int64(min(limitBurst, perMinute))}
	l.fullAt.youngMax = limitAddressesMax
	return l
}

// admit counts a request of an address, or returns how long to wait for the next.
func (l *limiter) admit(from netip.Addr, now time.Time) (time.Duration, bool) {
	if from = from.Unmap().WithZone(""); from.Is6() {
		from = netip.PrefixFrom(from, ipv6PrefixBits).Masked().Addr()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at, fullAt := now.UnixNano(), l.fullAt.get(from)
	filled := max(*fullAt, at) + int64(l.refill)
	if wait := filled - at - l.burst*int64(l.refill); wait > 0 {
		return time.Duration(wait), false
	}
	*fullAt = filled
	return 0, true
}
