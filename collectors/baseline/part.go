package baseline

import "math/bits"

const (
	window       = 64 // runs that are remembered; the number of bits in Part.Seen
	usualRunsMin = 21 // before that a part is not called usual: a week at three runs a day
	usualPercent = 90
	missingMin   = 3 // runs in a row without a usual part, before it is called missing: a day
)

// Part counts the runs with one side of a quote.
type Part struct {
	Seen    uint64 `json:"seen,omitempty"`    // one bit for each of Runs; bit 0 is the newest, and is set
	Runs    int    `json:"runs,omitempty"`    // at most window; 0 = the side was never read, or is forgotten
	Missing int    `json:"missing,omitempty"` // newest runs without the side, which are not counted in Runs
}

// Count returns the number of Runs that had the part.
func (p Part) Count() int { return bits.OnesCount64(p.Seen) }

// Usual reports whether the source usually gives the part. The runs without it since it was last read do not count.
func (p Part) Usual() bool { return p.Runs >= usualRunsMin && p.Count()*100 >= p.Runs*usualPercent }

// Lost reports whether the part is usual, and missing now.
func (p Part) Lost() bool { return p.Missing >= missingMin && p.Usual() }

// after returns the part after a run. complete means that the run would have had the part if the source gave it.
func (p Part) after(read, complete bool) Part {
	switch {
	case read:
		return Part{Seen: p.Seen<<(p.Missing+1) | 1, Runs: min(p.Runs+p.Missing+1, window)}
	case p.Runs > 0 && complete:
		p.Missing++
	}
	if p.Missing >= window {
		return Part{}
	}
	return p
}
