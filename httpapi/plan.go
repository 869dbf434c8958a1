package httpapi

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/params"
)

// plan is a question as it was read: most requests ask what somebody asked before, byte for byte, and are not read again. It is
// immutable.
type plan struct {
	target string
	route  *route
	row    row // where its requests are counted
	query  params.Query
	today  engine.Date // the day on which it means this: a range of dates may end today
}

const (
	plansMax = 1 << 10 // a power of two
	// planTargetMax bounds what one keeps: with plansMax, less than a mebibyte in all.
	planTargetMax = 256
)

// plans are the questions of the day, each in the one place where its hash leads. A question gets the place when it is asked twice in
// a row there, so that questions nobody repeats push nothing out and keep nothing.
type plans struct {
	seed  maphash.Seed
	slots [plansMax]planSlot
}

type planSlot struct {
	last atomic.Uint64 // hash of the last question that was read here
	plan atomic.Pointer[plan]
}

func newPlans() *plans { return &plans{seed: maphash.MakeSeed()} }

// find is the plan of a request target, nil when there is none. hash is for keep.
func (p *plans) find(target []byte) (found *plan, hash uint64) {
	hash = maphash.Bytes(p.seed, target)
	found = p.slots[hash%plansMax].plan.Load()
	if found == nil || found.target != string(target) {
		return nil, hash
	}
	return found, hash
}

// keep offers a question that was read.
func (p *plans) keep(target []byte, hash uint64, r *route, a *asked) {
	slot := &p.slots[hash%plansMax]
	if len(target) > planTargetMax || slot.last.Swap(hash) != hash {
		return
	}
	slot.plan.Store(&plan{string(target), r, a.row, a.query, a.now.today})
}
