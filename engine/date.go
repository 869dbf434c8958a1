package engine

import (
	"errors"
	"math"
	"time"
	_ "time/tzdata" // every day is a Dominican day, also on a machine without zone files (T2)
)

// Zone is the name of the zone in which every day begins and ends (T2).
const Zone = "America/Santo_Domingo"

// santoDomingo is set once. Santo Domingo keeps UTC-4 without summer time; the zone data knows its past.
var santoDomingo = mustZone()

func mustZone() *time.Location {
	zone, err := time.LoadLocation(Zone)
	if err != nil {
		panic("engine: the embedded zone data lacks " + Zone)
	}
	return zone
}

// fixedOffset is since when, in seconds of Unix time, the zone has kept one offset from UTC, in seconds, and how the zone data goes on for
// ever. Every request asks what day it is: from then on two additions tell.
var fixedOffset = func() (s struct{ since, offset int64 }) {
	at := time.Unix(math.MaxInt32, 0).In(santoDomingo)
	since, until := at.ZoneBounds()
	if s.since = math.MaxInt64; until.IsZero() {
		_, offset := at.Zone()
		s.since, s.offset = since.Unix(), int64(offset)
	}
	return s
}()

// Location is the zone of Santo Domingo.
func Location() *time.Location { return santoDomingo }

// ErrDate is returned for a text that is no calendar date.
var ErrDate = errors.New("not a calendar date of the form YYYY-MM-DD")

// Date is a calendar date of the years 1 to 9999: days since 1 January of the year 1, plus one, so that dates order as
// numbers. The zero Date is no date at all.
type Date int32

// dateMax is 9999-12-31, the last one that the form can tell.
const dateMax = 3_652_059

const dateLayout = "2006-01-02"

const (
	secondsOfDay      = 24 * 60 * 60
	secondsBeforeUnix = 719_162 * secondsOfDay // from 0001-01-01 to 1970-01-01
)

// ParseDate reads strictly YYYY-MM-DD and refuses days that no calendar has (T10); the error is ErrDate.
func ParseDate(text string) (Date, error) {
	if len(text) != len(dateLayout) || text[4] != '-' || text[7] != '-' ||
		!allDigits(text[:4]) || !allDigits(text[5:7]) || !allDigits(text[8:]) {
		return 0, ErrDate
	}
	day, err := time.Parse(dateLayout, text)
	if err != nil || day.Year() < 1 {
		return 0, ErrDate
	}
	return Date((day.Unix()+secondsBeforeUnix)/secondsOfDay) + 1, nil
}

// DateOf is the Dominican calendar date at an instant; no date for an instant outside the years 1 to 9999.
func DateOf(t time.Time) Date {
	offset := fixedOffset.offset
	if t.Unix() < fixedOffset.since {
		_, past := t.In(santoDomingo).Zone()
		offset = int64(past)
	}
	seconds := t.Unix() + offset + secondsBeforeUnix
	if seconds < 0 || seconds >= dateMax*secondsOfDay {
		return 0
	}
	return Date(seconds/secondsOfDay) + 1
}

// IsZero reports that there is no date.
func (d Date) IsZero() bool { return d == 0 }

// AddDays moves by n days, but not out of the years 1 to 9999. No date stays no date.
func (d Date) AddDays(n int) Date {
	if d == 0 {
		return 0
	}
	return min(max(d+Date(min(max(n, -dateMax), dateMax)), 1), dateMax)
}

// String is YYYY-MM-DD, "" for no date.
func (d Date) String() string {
	if d == 0 {
		return ""
	}
	return d.utc().Format(dateLayout)
}

// Append appends String to dst.
func (d Date) Append(dst []byte) []byte {
	if d == 0 {
		return dst
	}
	return d.utc().AppendFormat(dst, dateLayout)
}

func (d Date) utc() time.Time {
	return time.Unix(int64(d-1)*secondsOfDay-secondsBeforeUnix, 0).UTC()
}

// Start is the instant at which the day begins in Santo Domingo, in UTC. The date must not be zero.
func (d Date) Start() time.Time {
	if start := int64(d-1)*secondsOfDay - secondsBeforeUnix - fixedOffset.offset; start >= fixedOffset.since {
		return time.Unix(start, 0).UTC()
	}
	midnight := d.atHour(0)
	if DateOf(midnight) < d { // summer time began at midnight (1966–1974): the day begins with the change
		_, midnight = midnight.ZoneBounds()
	}
	return midnight.UTC()
}

// atHour is the instant at which the clocks of Santo Domingo show a full hour.
func (d Date) atHour(hour int) time.Time {
	year, month, day := d.utc().Date()
	return time.Date(year, month, day, hour, 0, 0, 0, santoDomingo)
}

// refreshHours are the Dominican hours at which rates are refreshed (interface §1).
func refreshHours() [3]int { return [...]int{8, 12, 17} }

// NextRefresh is the first refresh slot after an instant, in UTC.
func NextRefresh(after time.Time) time.Time {
	day := DateOf(after)
	for _, hour := range refreshHours() {
		if slot := day.atHour(hour); slot.After(after) {
			return slot.UTC()
		}
	}
	return (day + 1).atHour(refreshHours()[0]).UTC()
}

// NextMidnight is the instant at which the next Dominican day begins, in UTC.
func NextMidnight(after time.Time) time.Time { return (DateOf(after) + 1).Start() }
