package pages

import (
	"cmp"
	"net/netip"
	"sync"
	"time"

	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/internal/rendered"
)

// Limits of a client's requests, by address or IPv6 /64 prefix. They are independent of the API's limits.
const (
	// PerMinuteDefault is the default limit of requests per minute, including requests for assets.
	PerMinuteDefault  = 240
	limitBurst        = 120     // maximum number of requests at once
	limitAddressesMax = 1 << 14 // maximum number of stored addresses
)

// limiter limits requests with a token bucket for each client. Above limitAddressesMax, the cache drops the least
// recently used buckets.
type limiter struct {
	refill time.Duration // time until the bucket has one more token
	burst  int64         // tokens in a full bucket

	mu     sync.Mutex
	fullAt *rendered.Cache[netip.Prefix, *int64] // when the bucket will be full: Unix time in nanoseconds
}

func newLimiter(perMinute int) *limiter {
	return &limiter{
		refill: time.Minute / time.Duration(perMinute), burst: int64(min(limitBurst, perMinute)),
		fullAt: rendered.NewCache[netip.Prefix, *int64](limitAddressesMax, 0),
	}
}

// admit takes a token from the bucket of an address. If the bucket is empty, admit returns the time until the next
// token, and false.
func (l *limiter) admit(addr netip.Addr, now time.Time) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fullAt, _ := l.fullAt.Get(account.ClientPrefix(addr), now, func(last *int64) (rendered.Kept[*int64], error) { // never returns an error
		return rendered.Kept[*int64]{Value: cmp.Or(last, new(int64)), Until: now.Add(time.Hour)}, nil
	})
	nowNano := now.UnixNano()
	newFullAt := max(*fullAt, nowNano) + int64(l.refill)
	if wait := newFullAt - nowNano - l.burst*int64(l.refill); wait > 0 {
		return time.Duration(wait), false
	}
	*fullAt = newFullAt
	return 0, true
}
