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
	// clockStepMin is the smallest step of the wall clock, against the monotonic one, that is suspect. Smaller ones are
	// accepted at once.
	clockStepMin = 5 * time.Second
	// clockSuspectMax is how long a step is suspect. Meanwhile the day is computed as if there were no step: a step that
	// is taken back within a minute begins no new day, and a lasting step delays the next day by at most a minute.
	clockSuspectMax = time.Minute
)

// steadyClock reads both clocks (account.ClockReading). Steady time continues where the log ended, never goes back, and
// stops while no node runs. The wall clock decides the day only while it agrees with the monotonic clock. After a step
// it is suspect until it goes back or has kept the new time for a minute.
type steadyClock struct {
	wall         func() time.Time
	steady       func() time.Duration // nil: the monotonic part of wall
	logger       *slog.Logger         // nil: steps are not logged
	origin       time.Time
	steadyOrigin time.Duration // reading of steady at origin
	base         time.Duration // newest steady time in the log; constant after resume
	newest       atomic.Int64

	detectsSteps atomic.Bool  // wall has a monotonic part
	trustedWall  atomic.Int64 // accepted wall time at steady time 0, in ns since 1970

	mu        sync.Mutex
	suspected suspectedStep
}

// suspectedStep is a step that is not accepted yet.
type suspectedStep struct {
	active      bool
	beforeStart bool          // the wall clock is behind the newest time in the log
	step        time.Duration // difference between the wall clock and its accepted time
	seenAt      time.Duration // steady time at which the step was detected
	since       time.Time     // wall time at which the clock became suspect
}

func newSteadyClock(wall func() time.Time, steady func() time.Duration) *steadyClock {
	c := &steadyClock{wall: wall, steady: steady, origin: wall()}
	if steady != nil {
		c.steadyOrigin = steady()
	}
	return c
}

// resume starts at base, the newest steady time in the log. newestWall is the newest wall time in the log, or zero.
func (c *steadyClock) resume(base time.Duration, newestWall time.Time) {
	c.base = base
	c.newest.Store(int64(base))
	c.origin = c.wall()
	if c.steady != nil {
		c.steadyOrigin = c.steady()
	}
	c.trustedWall.Store(c.origin.UnixNano() - int64(base))
	if behind := c.origin.Sub(newestWall.Round(0)); !newestWall.IsZero() && behind < -clockStepMin {
		c.mu.Lock()
		c.suspected = suspectedStep{active: true, beforeStart: true, step: behind, seenAt: base, since: c.origin}
		c.mu.Unlock()
		c.logWarn("clock_suspect: the wall clock is behind what the log has seen; was it set back?", behind)
	}
	monotonic := c.origin != c.origin.Round(0) // Round removes the monotonic reading
	c.detectsSteps.Store(c.steady == nil && monotonic)
}

// Now returns the present reading. It allocates nothing.
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

// steadyAt returns the steady time, which never goes back. The monotonic part of the wall clock does not go back
// either. If there is one, requests need not update newest, which all processors share.
func (c *steadyClock) steadyAt(wall time.Time) time.Duration {
	elapsed := wall.Sub(c.origin)
	switch {
	case c.steady != nil:
		elapsed = c.steady() - c.steadyOrigin
	case c.detectsSteps.Load():
		return c.base + elapsed
	}
	steady := int64(c.base + elapsed)
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

// stepAt returns the difference between the wall clock and its accepted time.
func (c *steadyClock) stepAt(now account.ClockReading) time.Duration {
	return time.Duration(now.Wall.UnixNano() - int64(now.Steady) - c.trustedWall.Load())
}

// Check detects steps, and their ends, while no requests come. It is called twice a second, and by Condition.
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
		c.trustedWall.Add(int64(step)) // clocks drift, and are corrected in small steps
	}
}

// dayWhileSuspect returns the day as if the wall clock had not stepped, or 0 once it has accepted the step.
func (c *steadyClock) dayWhileSuspect(now account.ClockReading) engine.Date {
	c.mu.Lock()
	defer c.mu.Unlock()
	step := c.stepAt(now)
	if step.Abs() <= clockStepMin {
		return 0 // another caller has accepted the step meanwhile
	}
	if !c.suspected.active || c.suspected.beforeStart || (step-c.suspected.step).Abs() > clockStepMin {
		since := now.Wall
		if c.suspected.active && !c.suspected.beforeStart {
			since = c.suspected.since
		}
		c.suspected = suspectedStep{active: true, step: step, seenAt: now.Steady, since: since}
		c.logWarn("clock_suspect: the wall clock stepped; days of quotas wait up to a minute for it", step)
	}
	if now.Steady-c.suspected.seenAt >= clockSuspectMax {
		c.suspected = suspectedStep{}
		c.trustedWall.Add(int64(step))
		c.logInfo("the wall clock has kept to its new time for a minute and is believed", step)
		return 0
	}
	return engine.DateOf(time.Unix(0, c.trustedWall.Load()+int64(now.Steady)))
}

// endSuspicion ends a suspected step. One from before the start is ended only after clockSuspectMax.
func (c *steadyClock) endSuspicion(wall time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.suspected.active:
		return
	case !c.suspected.beforeStart:
		c.logInfo("the wall clock is back where it was before its step", c.suspected.step)
	case c.steadyAt(wall)-c.suspected.seenAt < clockSuspectMax:
		return
	}
	c.suspected = suspectedStep{}
}

// currentStep returns the suspected step.
func (c *steadyClock) currentStep() suspectedStep {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.suspected
}

func (c *steadyClock) logWarn(message string, step time.Duration) {
	if c.logger != nil {
		c.logger.Warn(message, "step", step.Round(time.Millisecond).String())
	}
}

func (c *steadyClock) logInfo(message string, step time.Duration) {
	if c.logger != nil {
		c.logger.Info(message, "step", step.Round(time.Millisecond).String())
	}
}

// start returns the reading at the start of this process.
func (c *steadyClock) start() account.ClockReading {
	return account.ClockReading{Wall: c.origin, Steady: c.base}
}

// Condition returns the condition clock_suspect while a step is suspected.
func (c *steadyClock) Condition() engine.Condition {
	c.Check()
	suspected := c.currentStep()
	if !suspected.active {
		return engine.HealthyCondition("clock")
	}
	detail := fmt.Sprintf("The wall clock stepped by %s; days of quotas wait a minute for it to go back. Look at the synchronisation of time.",
		suspected.step.Round(time.Second))
	if suspected.beforeStart {
		detail = fmt.Sprintf("The wall clock is %s behind what the log has seen. Look at the synchronisation of time.", -suspected.step.Round(time.Second))
	}
	return engine.Condition{Name: "clock", State: "clock_suspect", Since: suspected.since.Round(0).UTC(), Detail: detail}
}
