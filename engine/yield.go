package engine

// stepsPerYield is how many small steps (an observation checked, a quote or a history row placed) are done between two
// yields. A step takes about a third of a microsecond.
const stepsPerYield = 128

// yielder counts the steps of long work and lets others run in between. The result does not depend on it.
type yielder struct {
	yield func() // may be nil
	every int    // steps between two yields
	steps int    // since the last yield
}

// step counts work that is done next.
func (y *yielder) step(count int) {
	if y.steps += count; y.steps >= y.every {
		y.steps = 0
		if y.yield != nil {
			y.yield()
		}
	}
}

// SetYield has yield called between pieces of long work, each of a few hundred small steps at most, inside Decide,
// Apply, Snapshot and View. Nil turns it off. Inside yield the methods of the state must not be called; what they have
// returned before may be read.
func (c *CurrencyState) SetYield(yield func()) { c.store.yielder.yield = yield }
