package engine

import (
	"errors"
	"math"
	"time"
	_ "time/tzdata" // for machines without a time zone database
)

// santoDomingo is the time zone of all dates: UTC-4 without daylight saving time since 2000, and other offsets before.
var santoDomingo = mustZone(time.LoadLocation("America/Santo_Domingo"))

func mustZone(zone *time.Location, err error) *time.Location {
	if err != nil {
		panic("engine: the time zone database lacks a zone: " + err.Error())
	}
	return zone
}

// fixedOffset is the zone's current offset from UTC and the Unix time of its start, both in seconds. It saves a search
// of the zone data in DateOf and Start, which every request calls: 6 % of its instructions. If the zone data contains a
// later change of the offset, since is so late that the offset is never used.
var fixedOffset = func() (s struct{ since, offset int64 }) {
	future := time.Unix(math.MaxInt32, 0).In(santoDomingo)
	since, until := future.ZoneBounds()
	if s.since = math.MaxInt64; until.IsZero() {
		_, offset := future.Zone()
		s.since, s.offset = since.Unix(), int64(offset)
	}
	return s
}()

// Location returns the time zone of Santo Domingo.
func Location() *time.Location { return santoDomingo }

// ErrDate is the error of ParseDate.
var ErrDate = errors.New("not a calendar date of the form YYYY-MM-DD")

// Date is a calendar date of the years 1 to 9999, counted in days: 1 is 0001-01-01. The zero Date means no date.
type Date int32

const dateMax = 3_652_059 // 9999-12-31

const dateLayout = "2006-01-02"

const (
	secondsOfDay      = 24 * 60 * 60
	secondsBeforeUnix = 719_162 * secondsOfDay // from 0001-01-01 to 1970-01-01
)

// ParseDate parses a date of the form YYYY-MM-DD, which must exist. The error is ErrDate.
func ParseDate(text string) (Date, error) {
	if len(text) != len(dateLayout) || !allDigits(text[:4]) || !allDigits(text[5:7]) || !allDigits(text[8:]) {
		return 0, ErrDate
	}
	day, err := time.Parse(dateLayout, text)
	if err != nil || day.Year() < 1 {
		return 0, ErrDate
	}
	return Date((day.Unix()+secondsBeforeUnix)/secondsOfDay) + 1, nil
}

// DateOf returns the date in Santo Domingo at the time t. It returns the zero Date outside the years 1 to 9999.
func DateOf(t time.Time) Date {
	offset := fixedOffset.offset
	if t.Unix() < fixedOffset.since {
		_, oldOffset := t.In(santoDomingo).Zone()
		offset = int64(oldOffset)
	}
	seconds := t.Unix() + offset + secondsBeforeUnix
	if seconds < 0 || seconds >= dateMax*secondsOfDay {
		return 0
	}
	return Date(seconds/secondsOfDay) + 1
}

// IsZero reports whether d is the zero Date.
func (d Date) IsZero() bool { return d == 0 }

// AddDays returns the date n days later, limited to the years 1 to 9999. The zero Date stays zero.
func (d Date) AddDays(n int) Date {
	if d == 0 {
		return 0
	}
	return min(max(d+Date(min(max(n, -dateMax), dateMax)), 1), dateMax)
}

// String returns the date as YYYY-MM-DD, or "" for the zero Date.
func (d Date) String() string { return string(d.Append(make([]byte, 0, len(dateLayout)))) }

// Append appends the text of String to dst.
func (d Date) Append(dst []byte) []byte {
	if d == 0 {
		return dst
	}
	return d.utc().AppendFormat(dst, dateLayout)
}

func (d Date) utc() time.Time {
	return time.Unix(int64(d-1)*secondsOfDay-secondsBeforeUnix, 0).UTC()
}

// Start returns the beginning of the day in Santo Domingo, in UTC. The date must not be zero.
func (d Date) Start() time.Time {
	if start := d.utc().Unix() - fixedOffset.offset; start >= fixedOffset.since {
		return time.Unix(start, 0).UTC()
	}
	midnight := d.atHour(0)
	if DateOf(midnight) < d { // clocks were advanced at midnight (1966–1974), so that day began later
		_, midnight = midnight.ZoneBounds()
	}
	return midnight.UTC()
}

func (d Date) atHour(hour int) time.Time {
	year, month, day := d.utc().Date()
	return time.Date(year, month, day, hour, 0, 0, 0, santoDomingo)
}

// refreshHours returns the hours at which sources are fetched, in Santo Domingo time.
func refreshHours() [3]int { return [...]int{8, 12, 17} }

// NextRefresh returns the next scheduled time for fetching sources, in UTC.
func NextRefresh(after time.Time) time.Time {
	day := DateOf(after)
	for _, hour := range refreshHours() {
		if slot := day.atHour(hour); slot.After(after) {
			return slot.UTC()
		}
	}
	return (day + 1).atHour(refreshHours()[0]).UTC()
}

// NextMidnight returns the start of the next day in Santo Domingo, in UTC.
func NextMidnight(after time.Time) time.Time { return (DateOf(after) + 1).Start() }
