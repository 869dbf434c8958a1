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
	// clockStepMin is the smallest change of the wall clock, compared with the monotonic clock, that counts as a step.
	// A smaller change is accepted at once.
	clockStepMin = 5 * time.Second
	// clockSuspectMax is the time after which a step is accepted. Until then the day, which quotas count by, is computed
	// without the step. A wrong step that is corrected within a minute therefore does not begin another day. If the step
	// is right, the new day begins a minute late at most.
	clockSuspectMax = time.Minute
)

// steadyClock reads the wall clock and the steady time (account.ClockReading). Steady time is how long nodes have run
// on this log. It never goes back: after a restart it continues from the newest steady time in the log. The day comes
// from the wall clock. After a step of the wall clock the day is computed as if there were no step, until the step is
// undone or clockSuspectMax has passed.
type steadyClock struct {
	wall         func() time.Time
	steady       func() time.Duration // nil: use the monotonic reading of wall
	logger       *slog.Logger         // nil: do not log steps
	origin       time.Time            // wall time when resume was called
	steadyOrigin time.Duration        // result of steady at origin
	base         time.Duration        // steady time at origin; constant after resume
	newest       atomic.Int64         // newest steady time; not used if detectsSteps

	detectsSteps atomic.Bool  // wall has a monotonic reading, to compare the wall time with
	trustedWall  atomic.Int64 // wall time, without a suspected step, minus steady time, in ns since 1970

	mu        sync.Mutex
	suspected suspectedStep
}

// suspectedStep is a step of the wall clock that is not accepted yet.
type suspectedStep struct {
	active      bool          // there is such a step
	beforeStart bool          // at the start of the process the wall clock was behind the newest wall time in the log
	step        time.Duration // by how much the wall clock is ahead (result of stepAt)
	seenAt      time.Duration // steady time at which the step was detected
	since       time.Time     // wall time at which the wall clock became suspect
}

func newSteadyClock(wall func() time.Time, steady func() time.Duration) *steadyClock {
	c := &steadyClock{wall: wall, steady: steady, origin: wall()}
	if steady != nil {
		c.steadyOrigin = steady()
	}
	return c
}

// resume sets the steady time to base, the newest steady time in the log. newestWall is the newest wall time in the
// log, or zero.
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

// Now reads the clock. It does not allocate.
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

// steadyAt returns the steady time. wall is the present time. If detectsSteps, the monotonic reading of wall never goes
// back, so steadyAt does not need newest. Updates of newest would slow down requests on other processors.
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

// stepAt returns by how much the wall clock is ahead of the time that trustedWall gives.
func (c *steadyClock) stepAt(now account.ClockReading) time.Duration {
	return time.Duration(now.Wall.UnixNano() - int64(now.Steady) - c.trustedWall.Load())
}

// Check detects the beginning and the end of a step. It does not depend on requests that read the clock. It must be
// called about twice a second.
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
		c.trustedWall.Add(int64(step)) // accept drift and small corrections of the wall clock
	}
}

// dayWhileSuspect returns the day as if the wall clock had not stepped, or 0 if the step is accepted.
func (c *steadyClock) dayWhileSuspect(now account.ClockReading) engine.Date {
	c.mu.Lock()
	defer c.mu.Unlock()
	step := c.stepAt(now)
	if step.Abs() <= clockStepMin {
		return 0 // another goroutine has just accepted the step
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

// endSuspicion ends a suspected step because the wall clock no longer shows it. If suspected.beforeStart is true, it
// does so only when clockSuspectMax has passed.
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

// start returns the clock reading when resume was called.
func (c *steadyClock) start() account.ClockReading {
	return account.ClockReading{Wall: c.origin, Steady: c.base}
}

// Condition returns the health condition of the clock. Its state is clock_suspect while there is a suspected step.
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
