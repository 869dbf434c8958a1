package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// progressEvery lies between two changes of the line on a terminal, at least.
const progressEvery = 300 * time.Millisecond

// stage is a part of the run, one goal as a rule.
type stage struct {
	goal   string // F1
	title  string
	rounds int
	each   time.Duration // how long a round should take; only the proportions between stages matter
}

// progress tells a person where the run is: on a terminal in one line that is rewritten, elsewhere in one line for each stage, so
// that a log stays short. The caller says when a stage and when a round begins; nothing runs beside the measurement. It is used
// from one goroutine.
type progress struct {
	out      io.Writer
	terminal bool
	clock    func() time.Time
	stages   []stage

	began    time.Time
	measured time.Time     // when the first stage began
	finished time.Time     // when the last round ended, or the first stage began
	shown    time.Time     // when the line was last changed
	current  int           // stage; -1 before the first
	round    int           // of the current stage, from 1; 0 before the first
	done     time.Duration // that the finished rounds should have taken
	width    int           // characters that stand on the terminal's line
}

// newProgress begins the time that is shown as elapsed.
func newProgress(out io.Writer, clock func() time.Time, stages []stage) *progress {
	return &progress{out: out, terminal: isTerminal(out), clock: clock, stages: stages, began: clock(), current: -1}
}

// begin says that the next stage of this goal begins. Those before it are over, measured or not. A goal that is not among the
// stages is none that was announced, and changes nothing.
func (p *progress) begin(goal string) {
	for i := p.current + 1; i < len(p.stages); i++ {
		if p.stages[i].goal != goal {
			continue
		}
		p.finish()
		p.current, p.round = i, 0
		if p.measured.IsZero() {
			p.measured = p.clock()
			p.finished = p.measured
		}
		if !p.terminal {
			s := p.stages[i]
			p.print(fmt.Sprintf("%s  %s: %s, %s\n", s.goal, s.title, counted(s.rounds, "round"), p.times()))
		}
		return
	}
}

// next says that the next round of the stage begins.
func (p *progress) next() {
	if p.current < 0 {
		return
	}
	p.finish()
	p.round++
	p.show()
}

// finish counts the round that runs, if one does.
func (p *progress) finish() {
	if p.round > 0 {
		p.done += p.stages[p.current].each
		p.finished = p.clock()
	}
}

// show brings the line on the terminal up to date, at most once in progressEvery. It may be called at any time.
func (p *progress) show() {
	now := p.clock()
	if !p.terminal || p.current < 0 || !p.shown.IsZero() && now.Sub(p.shown) < progressEvery {
		return
	}
	p.shown = now
	s := p.stages[p.current]
	line := fmt.Sprintf("round %d of %d, %s, %s", p.round, max(s.rounds, p.round), s.goal, p.times())
	padding := strings.Repeat(" ", max(0, p.width-len([]rune(line))))
	p.width = len([]rune(line))
	p.print("\r" + line + padding)
}

// end takes the line away, so that what follows begins on an empty one.
func (p *progress) end() {
	if p.width > 0 {
		p.print("\r" + strings.Repeat(" ", p.width) + "\r")
		p.width = 0
	}
}

// print may fail without harm: nobody is reading any more, and the measurement goes on.
func (p *progress) print(text string) { _, _ = io.WriteString(p.out, text) }

// times is how long it has taken, and will.
func (p *progress) times() string {
	return fmt.Sprintf("%s elapsed, about %s left", spell(p.clock().Sub(p.began)), spell(p.left()))
}

// left estimates the rest from what the rounds so far took, compared with what they should have taken.
func (p *progress) left() time.Duration {
	var ahead time.Duration // planned
	for i := max(p.current, 0); i < len(p.stages); i++ {
		rounds := p.stages[i].rounds
		if i == p.current {
			rounds -= max(p.round-1, 0)
		}
		ahead += p.stages[i].each * time.Duration(max(rounds, 0))
	}
	if took := p.finished.Sub(p.measured); p.done > 0 {
		ahead = time.Duration(float64(ahead) * float64(took) / float64(p.done))
	}
	return max(0, ahead-p.clock().Sub(p.finished))
}
