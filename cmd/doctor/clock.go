package doctor

import (
	"context"
	"time"

	"github.com/tasard/tasard/cmd/internal/terminal"
)

const (
	// clockYearMin is the year of the first build of this program: a clock that is behind it was never set.
	clockYearMin = 2026
	// clockStepMax is how far time of day and monotonic time may come apart while the doctor works.
	clockStepMax = 100 * time.Millisecond
	// clockErrorMax is an error of the clock that callers would see: quotas and switches are of whole seconds.
	clockErrorMax = 500 * time.Millisecond
)

// clockState is what the system says of its clock.
type clockState struct {
	known        bool // it says something
	synchronised bool
	errorMax     time.Duration
}

// clock holds the clock against itself, and asks the system how it is kept. It is the last check, so that the others have taken some time.
func (d *doctor) clock(context.Context) {
	now := d.Clock()
	const mend = "set the clock, and let a service such as chrony or systemd-timesyncd keep it"
	if now.UTC().Year() < clockYearMin {
		d.add(findingFail, "clock", mend, "the time of day is %s: the clock was never set", terminal.FormatInstant(now))
		return
	}
	// With monotonic readings Sub is monotonic; without them it is the time of day.
	if step := now.Round(0).Sub(d.began.Round(0)) - now.Sub(d.began); step.Abs() > clockStepMax {
		d.add(findingWarn, "clock", "look at what keeps the clock: rates expire and quotas end by it", "the time of day has just stepped by %s", step)
		return
	}
	switch state := systemClock(); {
	case !state.known:
		d.add(findingOK, "clock", "", "it is %s; this system does not say whether the clock is kept", terminal.FormatInstant(now))
	case !state.synchronised:
		d.add(findingWarn, "clock", mend, "it is %s, and nothing that the kernel knows of keeps the clock", terminal.FormatInstant(now))
	case state.errorMax > clockErrorMax:
		d.add(findingWarn, "clock", mend, "it is %s, the clock is kept, but may be wrong by %s", terminal.FormatInstant(now), state.errorMax)
	default:
		d.add(findingOK, "clock", "", "it is %s, the clock is kept, wrong by %s at most", terminal.FormatInstant(now), state.errorMax)
	}
}
