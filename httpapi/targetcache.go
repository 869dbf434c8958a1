package httpapi

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/params"
)

// parsed is a question as it was read: most requests ask what somebody asked before, byte for byte, and are not read again. It is
// immutable.
type parsedTarget struct {
	target  string
	route   *route
	routeID routeID // where its requests are counted
	query   params.Query
	today   engine.Date // the day on which it means this: a range of dates may end today
}

const (
	targetCacheSlots = 1 << 10 // a power of two
	// cachedTargetBytesMax bounds what one keeps: with targetCacheSlots, less than a mebibyte in all.
	cachedTargetBytesMax = 256
)

// targets are the questions of the day, each in the one place where its hash leads. A question gets the place when it is asked twice in
// a row there, so that questions nobody repeats push nothing out and keep nothing.
type targetCache struct {
	seed  maphash.Seed
	slots [targetCacheSlots]targetSlot
}

type targetSlot struct {
	lastHash atomic.Uint64 // hash of the last question that was read here
	parsed   atomic.Pointer[parsedTarget]
}

func newTargetCache() *targetCache { return &targetCache{seed: maphash.MakeSeed()} }

// find is the plan of a request target, nil when there is none. hash is for keep.
func (p *targetCache) find(target []byte) (found *parsedTarget, hash uint64) {
	hash = maphash.Bytes(p.seed, target)
	found = p.slots[hash%targetCacheSlots].parsed.Load()
	if found == nil || found.target != string(target) {
		return nil, hash
	}
	return found, hash
}

// keep offers a question that was read.
func (p *targetCache) keep(target []byte, hash uint64, r *route, a *requestState) {
	slot := &p.slots[hash%targetCacheSlots]
	if len(target) > cachedTargetBytesMax || slot.lastHash.Swap(hash) != hash {
		return
	}
	slot.parsed.Store(&parsedTarget{string(target), r, a.route, a.query, a.now.today})
}
