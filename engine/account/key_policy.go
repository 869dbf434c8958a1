package account

import (
	"fmt"
	"time"

	"github.com/tasard/tasard/engine"
)

// KeyNoticeMin is how far ahead the end of anonymous access must be announced (interface §5.3, K7).
const KeyNoticeMin = 14 * 24 * time.Hour

// KeyPolicy is the announced end of anonymous access; the zero value means that none is announced. It is immutable.
type KeyPolicy struct {
	AnnouncedAt time.Time
	RequiredAt  time.Time
	By          string
}

// Announced is the fact that the end of anonymous access is announced.
type Announced struct{ KeyPolicy }

// AnnouncementWithdrawn is the fact that it was taken back.
type AnnouncementWithdrawn struct {
	At time.Time
	By string
}

// Pending reports that the end is announced and has not come: every answer carries Deprecation, Sunset and Link.
func (t KeyPolicy) Pending(now time.Time) bool {
	return !t.RequiredAt.IsZero() && now.Before(t.RequiredAt)
}

// Required reports that keys are mandatory (K6, K7).
func (t KeyPolicy) Required(now time.Time) bool {
	return !t.RequiredAt.IsZero() && !now.Before(t.RequiredAt)
}

// Announce decides the end of anonymous access at an instant, whole seconds, at least 14 days ahead.
func (t KeyPolicy) Announce(at, now time.Time, by string) (*Announced, error) {
	at, now = plainUTC(at).Truncate(time.Second), plainUTC(now)
	if t.Required(now) {
		return nil, &engine.Error{Code: engine.CodeInvalidParameters, Message: fmt.Sprintf("keys are required since %s", t.RequiredAt.Format(time.RFC3339))}
	}
	if earliest := now.Add(KeyNoticeMin + time.Second - 1).Truncate(time.Second); at.Before(earliest) {
		return nil, &engine.Error{Code: engine.CodeInvalidParameters,
			Message: fmt.Sprintf("keys can't be required before %s: the notice is 14 days", earliest.Format(time.RFC3339))}
	}
	return &Announced{KeyPolicy{now.Truncate(time.Second), at, by}}, nil
}

// Withdraw decides to take the announcement back, before its day.
func (t KeyPolicy) Withdraw(now time.Time, by string) (*AnnouncementWithdrawn, error) {
	if !t.Pending(now) {
		return nil, &engine.Error{Code: engine.CodeInvalidParameters, Message: "no announcement is pending"}
	}
	return &AnnouncementWithdrawn{plainUTC(now), by}, nil
}
