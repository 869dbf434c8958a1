package pages

import (
	"net/netip"
	"sync"
	"time"
)

// Limits of one client address (IPv6: its /64). They have nothing to do with those of the API: a person who reads does not meet them.
const (
	// PerMinuteDefault is how many requests an address may send in a minute, assets included.
	PerMinuteDefault  = 240
	limitBurst        = 120     // of them at once
	limitAddressesMax = 1 << 13 // of one generation
	ipv6PrefixBits    = 64
)

// limiter is a token bucket for each address. A bucket is kept as the instant at which it is full again. An address that has asked for
// nothing while so many others came as are remembered begins anew.
type limiter struct {
	refill time.Duration // the time in which one more request is allowed
	burst  int64

	mu     sync.Mutex
	fullAt generationCache[netip.Addr, int64] // nanoseconds of Unix time
}

func newLimiter(perMinute int) *limiter {
	l := &limiter{refill: time.Minute / time.Duration(perMinute), burst: int64(min(limitBurst, perMinute))}
	l.fullAt.youngMax = limitAddressesMax
	return l
}

// admit takes one request of an address, or tells how long it has to wait for the next.
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
