package pages

import (
	"net/netip"
	"sync"
	"time"

	"github.com/tasard/tasard/engine/account"
)

// Limits of the requests of a client address or, with IPv6, of its /64 prefix. They are separate from the limits of the
// API.
const (
	// PerMinuteDefault is the default limit of requests per minute, including requests for assets.
	PerMinuteDefault  = 240
	limitBurst        = 120     // largest number of requests at once
	limitAddressesMax = 1 << 13 // largest number of addresses in one generation of the generationCache
)

// limiter has a token bucket for each address. If there are too many addresses, the cache drops the buckets that were
// not used for the longest time.
type limiter struct {
	refill time.Duration // time until the bucket has one more token
	burst  int64         // tokens in a full bucket

	mu     sync.Mutex
	fullAt generationCache[netip.Prefix, int64] // when the bucket will be full: Unix time in nanoseconds
}

func newLimiter(perMinute int) *limiter {
	l := &limiter{refill: time.Minute / time.Duration(perMinute), burst: int64(min(limitBurst, perMinute))}
	l.fullAt.youngMax = limitAddressesMax
	return l
}

// admit takes a token from the bucket of an address. If the bucket is empty, it returns false and the time until it has
// a token.
func (l *limiter) admit(addr netip.Addr, now time.Time) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	nowNano, fullAt := now.UnixNano(), l.fullAt.get(account.ClientPrefix(addr))
	newFullAt := max(*fullAt, nowNano) + int64(l.refill)
	if wait := newFullAt - nowNano - l.burst*int64(l.refill); wait > 0 {
		return time.Duration(wait), false
	}
	*fullAt = newFullAt
	return 0, true
}
