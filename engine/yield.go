package engine

// stepsPerYield is how many small steps (an observation looked at, a quote or a row of history placed) are done between two pauses. One
// takes a third of a microsecond or so.
const stepsPerYield = 128

// yielder cuts long work into pieces, for whoever must not keep others waiting. The work is the same with and without it.
type yielder struct {
	yield func() // nil: there is no need
	every int    // steps between two pauses
	steps int    // since the last pause
}

// step counts work that is done next.
func (p *yielder) step(count int) {
	if p.steps += count; p.steps >= p.every {
		p.steps = 0
		if p.yield != nil {
			p.yield()
		}
	}
}

// SetYield lets the book call pause between the pieces of long work, each of at most a few hundred small steps: inside Decide, Apply,
// CurrencySnapshot and RankedView. Nil ends it. What the book has handed out before may be read meanwhile; its methods may not be called.
func (b *CurrencyState) SetYield(pause func()) { b.store.yielder.yield = pause }
