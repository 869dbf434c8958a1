package doctor

import (
	"context"
	"time"

	"github.com/tasard/tasard/cmd/internal/terminal"
)

const (
	// clockYearMin is the year of the program's first build. A clock that shows an earlier year was never set.
	clockYearMin = 2026
	// clockStepMax is the largest step of the clock for which the doctor does not warn.
	clockStepMax = 100 * time.Millisecond
	// clockErrorMax is the largest error of the clock for which the doctor does not warn. It can be this large because
	// quotas count in whole seconds.
	clockErrorMax = 500 * time.Millisecond
)

// clockState is what the kernel reports about the clock.
type clockState struct {
	known        bool // false if the system does not report the state of its clock
	synchronised bool
	errorMax     time.Duration
}

// clock checks whether the clock is synchronised, and whether it has stepped since the doctor started. It must be the
// final check: the more time has passed since the start, the more steps it can find.
func (d *doctor) clock(context.Context) {
	now := d.Clock()
	const advice = "set the clock, and synchronise it with chrony or systemd-timesyncd"
	if now.UTC().Year() < clockYearMin {
		d.add(findingFail, "clock", advice, "it is %s: the clock was never set", terminal.FormatInstant(now))
		return
	}
	// Round(0) removes the monotonic reading. The first Sub therefore uses wall time, and the second Sub monotonic time.
	if step := now.Round(0).Sub(d.startedAt.Round(0)) - now.Sub(d.startedAt); step.Abs() > clockStepMax {
		d.add(findingWarn, "clock", "check the time synchronisation: expiry and quotas depend on the clock", "the clock has just stepped by %s", step)
		return
	}
	switch clock := systemClock(); {
	case !clock.known:
		d.add(findingOK, "clock", "", "it is %s; this system does not report synchronisation", terminal.FormatInstant(now))
	case !clock.synchronised:
		d.add(findingWarn, "clock", advice, "it is %s; the clock is not synchronised", terminal.FormatInstant(now))
	case clock.errorMax > clockErrorMax:
		d.add(findingWarn, "clock", advice, "it is %s; the clock is synchronised, but may be wrong by %s", terminal.FormatInstant(now), clock.errorMax)
	default:
		d.add(findingOK, "clock", "", "it is %s; the clock is synchronised, wrong by at most %s", terminal.FormatInstant(now), clock.errorMax)
	}
}
