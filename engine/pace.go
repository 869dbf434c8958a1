package engine

// pieceMax is how many small steps (an observation looked at, a quote or a row of history placed) are done between two pauses. One
// takes a third of a microsecond or so.
const pieceMax = 128

// pace cuts long work into pieces, for whoever must not keep others waiting. The work is the same with and without it.
type pace struct {
	pause func() // nil: there is no need
	piece int    // steps between two pauses
	steps int    // since the last pause
}

// step counts work that is done next.
func (p *pace) step(count int) {
	if p.steps += count; p.steps >= p.piece {
		p.steps = 0
		if p.pause != nil {
			p.pause()
		}
	}
}

// Paced lets the book call pause between the pieces of long work, each of at most a few hundred small steps: inside Decide, Apply,
// Board and View. Nil ends it. What the book has handed out before may be read meanwhile; its methods may not be called.
func (b *Book) Paced(pause func()) { b.state.pace.pause = pause }
