package account

import (
	"fmt"
	"time"

	"github.com/tasard/tasard/engine"
)

// KeyNoticeMin is the minimum time from an announcement until API keys are required.
const KeyNoticeMin = 14 * 24 * time.Hour

// KeyPolicy is the time from which every request needs an API key. The zero value means never.
type KeyPolicy struct {
	AnnouncedAt time.Time `json:"announcedAt,omitzero"`
	RequiredAt  time.Time `json:"requiredAt,omitzero"`
	By          string    `json:"by,omitempty"`
}

// Announced is the event of an announcement that keys will be required.
type Announced struct{ KeyPolicy }

// AnnouncementWithdrawn is the event of a withdrawn announcement.
type AnnouncementWithdrawn struct {
	At time.Time
	By string
}

// Pending reports whether keys will be required later. Until then every response has the headers Deprecation, Sunset
// and Link.
func (p KeyPolicy) Pending(now time.Time) bool {
	return !p.RequiredAt.IsZero() && now.Before(p.RequiredAt)
}

// Required reports whether keys are required.
func (p KeyPolicy) Required(now time.Time) bool {
	return !p.RequiredAt.IsZero() && !now.Before(p.RequiredAt)
}

// Announce returns the event that requires keys from requiredAt, rounded down to a second.
func (p KeyPolicy) Announce(requiredAt, now time.Time, by string) (*Announced, error) {
	requiredAt, now = plainUTC(requiredAt).Truncate(time.Second), plainUTC(now)
	if p.Required(now) {
		return nil, &engine.Error{Code: engine.CodeInvalidParameters, Message: fmt.Sprintf("keys are required since %s", p.RequiredAt.Format(time.RFC3339))}
	}
	if earliest := now.Add(KeyNoticeMin + time.Second - 1).Truncate(time.Second); requiredAt.Before(earliest) {
		return nil, &engine.Error{Code: engine.CodeInvalidParameters,
			Message: fmt.Sprintf("keys can't be required before %s: the notice is 14 days", earliest.Format(time.RFC3339))}
	}
	return &Announced{KeyPolicy{now.Truncate(time.Second), requiredAt, by}}, nil
}

// Withdraw returns the event that withdraws a pending announcement.
func (p KeyPolicy) Withdraw(now time.Time, by string) (*AnnouncementWithdrawn, error) {
	if !p.Pending(now) {
		return nil, &engine.Error{Code: engine.CodeInvalidParameters, Message: "no announcement is pending"}
	}
	return &AnnouncementWithdrawn{plainUTC(now), by}, nil
}
