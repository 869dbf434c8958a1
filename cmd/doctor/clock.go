package doctor

import (
	"context"
	"time"

	"github.com/tasard/tasard/cmd/internal/terminal"
)

const (
	// clockYearMin is the year of the program's first build: an earlier clock was never set.
	clockYearMin = 2026
	// clockStepMax is the largest difference between wall and monotonic time during the examination.
	clockStepMax = 100 * time.Millisecond
	// clockErrorMax is an error of the clock that clients notice: quotas count whole seconds.
	clockErrorMax = 500 * time.Millisecond
)

// clockState is the kernel's report on its clock.
type clockState struct {
	known        bool // false: the system does not report it
	synchronised bool
	errorMax     time.Duration
}

// clock compares wall and monotonic time, and queries the kernel's synchronisation. It is the last check, so that
// some time has passed since the start.
func (d *doctor) clock(context.Context) {
	now := d.Clock()
	const mend = "set the clock, and synchronise it with chrony or systemd-timesyncd"
	if now.UTC().Year() < clockYearMin {
		d.add(findingFail, "clock", mend, "it is %s: the clock was never set", terminal.FormatInstant(now))
		return
	}
	// With monotonic readings Sub is monotonic; without them it is the time of day.
	if step := now.Round(0).Sub(d.began.Round(0)) - now.Sub(d.began); step.Abs() > clockStepMax {
		d.add(findingWarn, "clock", "check the time synchronisation: expiry and quotas depend on the clock", "the clock has just stepped by %s", step)
		return
	}
	switch state := systemClock(); {
	case !state.known:
		d.add(findingOK, "clock", "", "it is %s; this system does not report synchronisation", terminal.FormatInstant(now))
	case !state.synchronised:
		d.add(findingWarn, "clock", mend, "it is %s; the clock is not synchronised", terminal.FormatInstant(now))
	case state.errorMax > clockErrorMax:
		d.add(findingWarn, "clock", mend, "it is %s; the clock is synchronised, but may be wrong by %s", terminal.FormatInstant(now), state.errorMax)
	default:
		d.add(findingOK, "clock", "", "it is %s; the clock is synchronised, wrong by at most %s", terminal.FormatInstant(now), state.errorMax)
	}
}
