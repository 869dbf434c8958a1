package client

import (
	"fmt"
	"time"
)

// Date is a day of the calendar, in Santo Domingo. The zero Date is none.
type Date struct {
	Year  int
	Month time.Month
	Day   int
}

// DateOf is the day of a time in its own location. Today in Santo Domingo is DateOf(now.In(...)) with America/Santo_Domingo.
func DateOf(t time.Time) Date {
	year, month, day := t.Date()
	return Date{year, month, day}
}

// ParseDate reads YYYY-MM-DD, a day that exists.
func ParseDate(text string) (Date, error) {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil || len(text) != len(time.DateOnly) {
		return Date{}, fmt.Errorf("want a date such as 2026-02-28, found %.40q", text)
	}
	return DateOf(t), nil
}

func (d Date) midnight() time.Time { return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC) }

// IsZero tells no date.
func (d Date) IsZero() bool { return d == Date{} }

// AddDays is so many days later.
func (d Date) AddDays(days int) Date { return DateOf(d.midnight().AddDate(0, 0, days)) }

// Compare is -1 for an earlier day, 1 for a later one.
func (d Date) Compare(other Date) int { return d.midnight().Compare(other.midnight()) }

// String is YYYY-MM-DD.
func (d Date) String() string { return d.midnight().Format(time.DateOnly) }

// MarshalText is encoding.TextMarshaler.
func (d Date) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText is encoding.TextUnmarshaler.
func (d *Date) UnmarshalText(text []byte) error {
	read, err := ParseDate(string(text))
	if err != nil {
		return err
	}
	*d = read
	return nil
}
