package pages

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"time"
)

// Limits of one client address (IPv6: its /64). They have nothing to do with those of the API: nobody who reads meets them.
const (
	// PerMinuteDefault is how many requests an address may send in a minute, assets included.
	PerMinuteDefault = 240
	limitBurst       = 120     // of them at once
	limitRows        = 1 << 14 // addresses that are remembered: 512 KiB
	limitWays        = 8       // rows that an address may stand in
)

// limiter is a bucket for each address, in a table of fixed size. When more addresses come than it has rows, the one of eight that was
// quiet longest gives its row away: that one is let in too much, and nobody else too little.
type limiter struct {
	seed    uint64
	refill  time.Duration // the time in which one more request is allowed
	burst   int64
	mu      sync.Mutex
	buckets []bucket
}

// bucket is filled by time. It is kept as the instant at which it will be full again.
type bucket struct {
	key    uint64
	v4     bool
	fullAt int64 // nanoseconds of Unix time
}

func newLimiter(perMinute int, seed uint64) *limiter {
	return &limiter{
		seed: seed, refill: time.Minute / time.Duration(perMinute), burst: int64(min(limitBurst, perMinute)), buckets: make([]bucket, limitRows),
	}
}

// admit takes one request of an address, or tells how long it has to wait for the next.
func (l *limiter) admit(from netip.Addr, now time.Time) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := now.UnixNano()
	b := l.find(from, at)
	filled := max(b.fullAt, at) + int64(l.refill)
	if wait := filled - at - l.burst*int64(l.refill); wait > 0 {
		return time.Duration(wait), false
	}
	b.fullAt = filled
	return 0, true
}

// find is the row of an address: its own, or the one that it takes. Rows that are full again are as good as free.
func (l *limiter) find(from netip.Addr, now int64) *bucket {
	key, v4 := addressKey(from)
	set := l.buckets[mix(key^l.seed)%(limitRows/limitWays)*limitWays:][:limitWays]
	quietest := &set[0]
	for i := range set {
		b := &set[i]
		if b.key == key && b.v4 == v4 {
			return b
		}
		if b.fullAt < quietest.fullAt {
			quietest = b
		}
	}
	*quietest = bucket{key: key, v4: v4, fullAt: now}
	return quietest
}

// mix is the last step of SplitMix64: nobody who doesn't know the seed can choose addresses that crowd each other out.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

func addressKey(from netip.Addr) (key uint64, v4 bool) {
	from = from.Unmap()
	if from.Is4() {
		four := from.As4()
		return uint64(binary.BigEndian.Uint32(four[:])), true
	}
	sixteen := from.As16()
	return binary.BigEndian.Uint64(sixteen[:8]), false
}
