package accounts

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

const (
	// clockStepMin is the step of the wall clock against the monotonic one from which on it is suspect; less is believed at once.
	clockStepMin = 5 * time.Second
	// clockSuspectMax is how long a step is not believed. Meanwhile days go on as if it had not been, so a step that is taken back within
	// the minute opens no day, and one that stays delays the next day by no more than that.
	clockSuspectMax = time.Minute
)

// steadyClock tells the moment on both clocks (account.ClockReading). Steady time goes on where the log ended and
// never goes back; it stands still while no node runs. What the wall clock says of the day is believed only while it goes with the
// monotonic one: one that steps is suspect until it has gone back, or has kept to its new time for a minute.
type steadyClock struct {
	wall         func() time.Time
	steady       func() time.Duration // nil: the monotonic part of wall
	logger       *slog.Logger         // nil: nobody is told of steps
	origin       time.Time
	steadyOrigin time.Duration // what steady said at the origin
	base         time.Duration // newest in the log; set before the first moment is asked for
	newest       atomic.Int64

	detectsSteps atomic.Bool  // steps can be seen: wall has a monotonic part
	trustedWall  atomic.Int64 // the wall clock at steady time 0, in ns since 1970, as it is believed

	mu        sync.Mutex
	suspected suspectedStep
}

// suspectedStep is a step that is not believed yet.
type suspectedStep struct {
	active      bool
	beforeStart bool          // it was before the start: the wall clock is behind what the log has seen
	step        time.Duration // how far the wall clock is from where it should be
	seenAt      time.Duration // steady time at which this step was seen
	since       time.Time     // when the doubt began
}

func newSteadyClock(wall func() time.Time, steady func() time.Duration) *steadyClock {
	c := &steadyClock{wall: wall, steady: steady, origin: wall()}
	if steady != nil {
		c.steadyOrigin = steady()
	}
	return c
}

// resume begins to count at the newest steady time in the log. seen is the newest wall time in it, zero when it has none.
func (c *steadyClock) resume(base time.Duration, seen time.Time) {
	c.base = base
	c.newest.Store(int64(base))
	c.origin = c.wall()
	if c.steady != nil {
		c.steadyOrigin = c.steady()
	}
	c.trustedWall.Store(c.origin.UnixNano() - int64(base))
	if back := c.origin.Sub(seen.Round(0)); !seen.IsZero() && back < -clockStepMin {
		c.mu.Lock()
		c.suspected = suspectedStep{active: true, beforeStart: true, step: back, seenAt: base, since: c.origin}
		c.mu.Unlock()
		c.warn("clock_suspect: the wall clock is behind what the log has seen; was it set back?", back)
	}
	monotonic := c.origin != c.origin.Round(0) // Round takes the reading off
	c.detectsSteps.Store(c.steady == nil && monotonic)
}

// Now is the present moment. It allocates nothing.
func (c *steadyClock) Now() account.ClockReading {
	wall := c.wall()
	moment := account.ClockReading{Wall: wall, Steady: c.steadyAt(wall)}
	if c.detectsSteps.Load() {
		if c.stepAt(moment).Abs() > clockStepMin {
			moment.Day = c.dayWhileSuspect(moment)
		}
	}
	return moment
}

// steadyAt is steady time, which never goes back. The monotonic part of the wall clock does not either, on all processors: then nothing
// is written that all requests would share.
func (c *steadyClock) steadyAt(wall time.Time) time.Duration {
	since := wall.Sub(c.origin)
	switch {
	case c.steady != nil:
		since = c.steady() - c.steadyOrigin
	case c.detectsSteps.Load():
		return c.base + since
	}
	steady := int64(c.base + since)
	for {
		last := c.newest.Load()
		if steady <= last {
			return time.Duration(last)
		}
		if c.newest.CompareAndSwap(last, steady) {
			return time.Duration(steady)
		}
	}
}

// stepAt is how far the wall clock is from where it is believed to be.
func (c *steadyClock) stepAt(now account.ClockReading) time.Duration {
	return time.Duration(now.Wall.UnixNano() - int64(now.Steady) - c.trustedWall.Load())
}

// Check notices a step that nobody runs into, and the end of one. It is called twice a second, and by whoever wants to know.
func (c *steadyClock) Check() {
	if !c.detectsSteps.Load() {
		if c.currentStep().active {
			c.endSuspicion(c.wall())
		}
		return
	}
	wall := c.wall()
	now := account.ClockReading{Wall: wall, Steady: c.steadyAt(wall)}
	if c.stepAt(now).Abs() > clockStepMin {
		c.dayWhileSuspect(now)
		return
	}
	c.endSuspicion(wall)
	c.mu.Lock()
	defer c.mu.Unlock()
	if step := c.stepAt(now); step.Abs() <= clockStepMin {
		c.trustedWall.Add(int64(step)) // clocks drift, and are mended in small steps
	}
}

// dayWhileSuspect is the day that counts while the wall clock is suspect: as if it had not stepped, until the step has lasted.
func (c *steadyClock) dayWhileSuspect(now account.ClockReading) engine.Date {
	c.mu.Lock()
	defer c.mu.Unlock()
	step := c.stepAt(now)
	if step.Abs() <= clockStepMin {
		return 0 // somebody else has come to believe it meanwhile
	}
	if !c.suspected.active || c.suspected.beforeStart || (step-c.suspected.step).Abs() > clockStepMin {
		since := now.Wall
		if c.suspected.active && !c.suspected.beforeStart {
			since = c.suspected.since
		}
		c.suspected = suspectedStep{active: true, step: step, seenAt: now.Steady, since: since}
		c.warn("clock_suspect: the wall clock stepped; days of quotas wait up to a minute for it", step)
	}
	if now.Steady-c.suspected.seenAt >= clockSuspectMax {
		c.suspected = suspectedStep{}
		c.trustedWall.Add(int64(step))
		c.inform("the wall clock has kept to its new time for a minute and is believed", step)
		return 0
	}
	return engine.DateOf(time.Unix(0, c.trustedWall.Load()+int64(now.Steady)))
}

// endSuspicion ends a doubt: the wall clock is where it should be again, or its step before the start is a minute old.
func (c *steadyClock) endSuspicion(wall time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.suspected.active:
		return
	case !c.suspected.beforeStart:
		c.inform("the wall clock is back where it was before its step", c.suspected.step)
	case c.steadyAt(wall)-c.suspected.seenAt < clockSuspectMax:
		return
	}
	c.suspected = suspectedStep{}
}

// currentStep is the doubt of the moment.
func (c *steadyClock) currentStep() suspectedStep {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.suspected
}

func (c *steadyClock) warn(message string, step time.Duration) {
	if c.logger != nil {
		c.logger.Warn(message, "step", step.Round(time.Millisecond).String())
	}
}

func (c *steadyClock) inform(message string, step time.Duration) {
	if c.logger != nil {
		c.logger.Info(message, "step", step.Round(time.Millisecond).String())
	}
}

// start is the moment at which this process began to count.
func (c *steadyClock) start() account.ClockReading {
	return account.ClockReading{Wall: c.origin, Steady: c.base}
}

// Condition is clock_suspect while a step of the wall clock is not believed.
func (c *steadyClock) Condition() engine.Condition {
	c.Check()
	d := c.currentStep()
	if !d.active {
		return engine.HealthyCondition("clock")
	}
	detail := fmt.Sprintf("The wall clock stepped by %s; days of quotas wait a minute for it to go back. Look at the synchronisation of time.",
		d.step.Round(time.Second))
	if d.beforeStart {
		detail = fmt.Sprintf("The wall clock is %s behind what the log has seen. Look at the synchronisation of time.", -d.step.Round(time.Second))
	}
	return engine.Condition{Name: "clock", State: "clock_suspect", Since: d.since.Round(0).UTC(), Detail: detail}
}
