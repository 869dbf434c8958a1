package pages

import (
	"net/netip"
	"sync"
	"time"
)

// Limits of a client address (with IPv6, of its /64 prefix). They are separate from the limits of the API.
const (
	// PerMinuteDefault is the default limit of requests in a minute, including requests for assets.
	PerMinuteDefault  = 240
	limitBurst        = 120     // requests at once
	limitAddressesMax = 1 << 13 // in one generation
	ipv6PrefixBits    = 64
)

// limiter has a token bucket for each address, stored as the time at which the bucket is full again. If there are too
// many, the buckets that were idle longest are dropped.
type limiter struct {
	refill time.Duration // time until the bucket has one more token
	burst  int64

	mu     sync.Mutex
	fullAt generationCache[netip.Addr, int64] // Unix time in nanoseconds
}

func newLimiter(perMinute int) *limiter {
	l := &limiter{refill: time.Minute / time.Duration(perMinute), burst: int64(min(limitBurst, perMinute))}
	l.fullAt.youngMax = limitAddressesMax
	return l
}

// admit takes a token for a request of an address. If there is none, it returns false and how long to wait.
func (l *limiter) admit(addr netip.Addr, now time.Time) (time.Duration, bool) {
	if addr = addr.Unmap().WithZone(""); addr.Is6() {
		addr = netip.PrefixFrom(addr, ipv6PrefixBits).Masked().Addr()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	nowNano, fullAt := now.UnixNano(), l.fullAt.get(addr)
	newFullAt := max(*fullAt, nowNano) + int64(l.refill)
	if wait := newFullAt - nowNano - l.burst*int64(l.refill); wait > 0 {
		return time.Duration(wait), false
	}
	*fullAt = newFullAt
	return 0, true
}
