package engine

// stepsPerYield is the number of steps between two yields. A step is a small piece of work, such as checking one
// observation or inserting one row. It takes about a third of a microsecond.
const stepsPerYield = 128

// yielder counts steps and calls yield from time to time, so that other goroutines can run during long work.
type yielder struct {
	yield func() // may be nil
	every int    // steps between two yields
	steps int    // since the last yield
}

// step counts steps that the caller is about to do.
func (y *yielder) step(count int) {
	if y.steps += count; y.steps >= y.every {
		y.steps = 0
		if y.yield != nil {
			y.yield()
		}
	}
}

// SetYield makes Decide, Apply, Snapshot and View call yield during long work, at least every few hundred steps. Nil
// disables that. yield must not call methods of c, but it may read values that they have returned.
func (c *CurrencyState) SetYield(yield func()) { c.store.yielder.yield = yield }
