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

// monotonicClock reads the wall clock and the monotonic time (account.ClockReading). Monotonic time is how long nodes
// have run on this log. It never goes back: after a restart it continues from the newest monotonic time in the log.
// The day comes from the wall clock. After a step of the wall clock the day is computed as if there were no step,
// until the step is undone or clockSuspectMax has passed.
type monotonicClock struct {
	wall            func() time.Time
	monotonic       func() time.Duration // nil: use the monotonic reading of wall
	logger          *slog.Logger         // nil: do not log steps
	origin          time.Time            // wall time when resume was called
	monotonicOrigin time.Duration        // result of monotonic at origin
	base            time.Duration        // monotonic time at origin; constant after resume
	newest          atomic.Int64         // newest monotonic time; not used if detectsSteps

	detectsSteps atomic.Bool  // wall has a monotonic reading, to compare the wall time with
	trustedWall  atomic.Int64 // wall time, without a suspected step, minus monotonic time, in ns since 1970

	mu        sync.Mutex
	suspected suspectedStep
}

// suspectedStep is a step of the wall clock that is not accepted yet.
type suspectedStep struct {
	active      bool          // there is such a step
	beforeStart bool          // at the start of the process the wall clock was behind the newest wall time in the log
	step        time.Duration // by how much the wall clock is ahead (result of stepAt)
	seenAt      time.Duration // monotonic time at which the step was detected
	since       time.Time     // wall time at which the wall clock became suspect
}

func newMonotonicClock(wall func() time.Time, monotonic func() time.Duration) *monotonicClock {
	c := &monotonicClock{wall: wall, monotonic: monotonic, origin: wall()}
	if monotonic != nil {
		c.monotonicOrigin = monotonic()
	}
	return c
}

// resume sets the monotonic time to base, the newest monotonic time in the log. newestWall is the newest wall time in
// the log, or zero.
func (c *monotonicClock) resume(base time.Duration, newestWall time.Time) {
	c.base = base
	c.newest.Store(int64(base))
	c.origin = c.wall()
	if c.monotonic != nil {
		c.monotonicOrigin = c.monotonic()
	}
	c.trustedWall.Store(c.origin.UnixNano() - int64(base))
	if behind := c.origin.Sub(newestWall.Round(0)); !newestWall.IsZero() && behind < -clockStepMin {
		c.mu.Lock()
		c.suspected = suspectedStep{active: true, beforeStart: true, step: behind, seenAt: base, since: c.origin}
		c.mu.Unlock()
		c.logWarn("clock_suspect: the wall clock is behind what the log has seen; was it set back?", behind)
	}
	hasMonotonic := c.origin != c.origin.Round(0) // Round removes the monotonic reading
	c.detectsSteps.Store(c.monotonic == nil && hasMonotonic)
}

// Now reads the clock. It does not allocate.
func (c *monotonicClock) Now() account.ClockReading {
	wall := c.wall()
	moment := account.ClockReading{Wall: wall, Monotonic: c.monotonicAt(wall)}
	if c.detectsSteps.Load() {
		if c.stepAt(moment).Abs() > clockStepMin {
			moment.Day = c.dayWhileSuspect(moment)
		}
	}
	return moment
}

// monotonicAt returns the monotonic time. wall is the present time. If detectsSteps, the monotonic reading of wall
// never goes back, so monotonicAt does not need newest. Updates of newest would slow down requests on other
// processors.
func (c *monotonicClock) monotonicAt(wall time.Time) time.Duration {
	elapsed := wall.Sub(c.origin)
	switch {
	case c.monotonic != nil:
		elapsed = c.monotonic() - c.monotonicOrigin
	case c.detectsSteps.Load():
		return c.base + elapsed
	}
	monotonic := int64(c.base + elapsed)
	for {
		last := c.newest.Load()
		if monotonic <= last {
			return time.Duration(last)
		}
		if c.newest.CompareAndSwap(last, monotonic) {
			return time.Duration(monotonic)
		}
	}
}

// stepAt returns by how much the wall clock is ahead of the time that trustedWall gives.
func (c *monotonicClock) stepAt(now account.ClockReading) time.Duration {
	return time.Duration(now.Wall.UnixNano() - int64(now.Monotonic) - c.trustedWall.Load())
}

// Check detects the beginning and the end of a step. It does not depend on requests that read the clock. It must be
// called about twice a second.
func (c *monotonicClock) Check() {
	if !c.detectsSteps.Load() {
		if c.currentStep().active {
			c.endSuspicion(c.wall())
		}
		return
	}
	wall := c.wall()
	now := account.ClockReading{Wall: wall, Monotonic: c.monotonicAt(wall)}
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
func (c *monotonicClock) dayWhileSuspect(now account.ClockReading) engine.Date {
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
		c.suspected = suspectedStep{active: true, step: step, seenAt: now.Monotonic, since: since}
		c.logWarn("clock_suspect: the wall clock stepped; days of quotas wait up to a minute for it", step)
	}
	if now.Monotonic-c.suspected.seenAt >= clockSuspectMax {
		c.suspected = suspectedStep{}
		c.trustedWall.Add(int64(step))
		c.logInfo("the wall clock has kept to its new time for a minute and is believed", step)
		return 0
	}
	return engine.DateOf(time.Unix(0, c.trustedWall.Load()+int64(now.Monotonic)))
}

// endSuspicion ends a suspected step because the wall clock no longer shows it. If suspected.beforeStart is true, it
// does so only when clockSuspectMax has passed.
func (c *monotonicClock) endSuspicion(wall time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.suspected.active:
		return
	case !c.suspected.beforeStart:
		c.logInfo("the wall clock is back where it was before its step", c.suspected.step)
	case c.monotonicAt(wall)-c.suspected.seenAt < clockSuspectMax:
		return
	}
	c.suspected = suspectedStep{}
}

func (c *monotonicClock) currentStep() suspectedStep {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.suspected
}

func (c *monotonicClock) logWarn(message string, step time.Duration) {
	if c.logger != nil {
		c.logger.Warn(message, "step", step.Round(time.Millisecond).String())
	}
}

func (c *monotonicClock) logInfo(message string, step time.Duration) {
	if c.logger != nil {
		c.logger.Info(message, "step", step.Round(time.Millisecond).String())
	}
}

// start returns the clock reading when resume was called.
func (c *monotonicClock) start() account.ClockReading {
	return account.ClockReading{Wall: c.origin, Monotonic: c.base}
}

// Condition returns the health condition of the clock. Its state is clock_suspect while there is a suspected step.
func (c *monotonicClock) Condition() engine.Condition {
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
