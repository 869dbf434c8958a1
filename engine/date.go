package engine

import (
	"errors"
	"time"
	_ "time/tzdata" // every day is a Dominican day, also on a machine without zone files (T2)
)

// Zone is the name of the zone in which every day begins and ends (T2).
const Zone = "America/Santo_Domingo"

// Santo Domingo keeps UTC-4 without summer time; the zone data knows its past.
var santoDomingo = mustZone()

func mustZone() *time.Location {
	zone, err := time.LoadLocation(Zone)
	if err != nil {
		panic("engine: the embedded zone data lacks " + Zone)
	}
	return zone
}

// Location is the zone of Santo Domingo.
func Location() *time.Location { return santoDomingo }

// ErrDate is returned for a text that is no calendar date.
var ErrDate = errors.New("not a calendar date of the form YYYY-MM-DD")

// Date is a calendar date: days since 1 January of the year 1, plus one. The zero Date is no date at all.
type Date int32

const dateLayout = "2006-01-02"

// secondsBeforeUnix is from 0001-01-01 to 1970-01-01.
const secondsBeforeUnix = 62135596800

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
	return dateOfUTC(day), nil
}

// DateOf is the Dominican calendar date at an instant.
func DateOf(t time.Time) Date {
	year, month, day := t.In(santoDomingo).Date()
	return dateOfUTC(time.Date(year, month, day, 0, 0, 0, 0, time.UTC))
}

func dateOfUTC(midnight time.Time) Date {
	return Date((midnight.Unix()+secondsBeforeUnix)/86400) + 1
}

// IsZero reports that there is no date.
func (d Date) IsZero() bool { return d == 0 }

// AddDays moves by n days.
func (d Date) AddDays(n int) Date { return d + Date(n) }

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
	return time.Unix(int64(d-1)*86400-secondsBeforeUnix, 0).UTC()
}

// Start is the instant at which the day begins in Santo Domingo.
func (d Date) Start() time.Time {
	year, month, day := d.utc().Date()
	return time.Date(year, month, day, 0, 0, 0, 0, santoDomingo).UTC()
}

// refreshHours are the Dominican hours at which rates are refreshed (interface §1).
var refreshHours = [...]int{8, 12, 17}

// NextRefresh is the first refresh slot after an instant.
func NextRefresh(after time.Time) time.Time {
	day := DateOf(after)
	for _, date := range [...]Date{day, day + 1} {
		for _, hour := range refreshHours {
			if slot := date.Start().Add(time.Duration(hour) * time.Hour); slot.After(after) {
				return slot
			}
		}
	}
	return (day + 2).Start()
}

// NextMidnight is the instant at which the next Dominican day begins.
func NextMidnight(after time.Time) time.Time { return (DateOf(after) + 1).Start() }
