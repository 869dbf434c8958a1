package client

import (
	"fmt"
	"time"
)

// Date is a calendar day in Santo Domingo. The zero Date means no date.
type Date struct {
	Year  int
	Month time.Month
	Day   int
}

// DateOf returns the day of a time in the location of that time.
func DateOf(t time.Time) Date {
	year, month, day := t.Date()
	return Date{year, month, day}
}

// ParseDate parses YYYY-MM-DD. The day must exist.
func ParseDate(text string) (Date, error) {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil || len(text) != len(time.DateOnly) {
		return Date{}, fmt.Errorf("want a date such as 2026-02-28, found %.40q", text)
	}
	return DateOf(t), nil
}

func (d Date) midnight() time.Time { return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC) }

// valid returns an error if the day does not exist. The zero Date is valid: it means that no day is given.
func (d Date) valid() error {
	if d.IsZero() || DateOf(d.midnight()) == d {
		return nil
	}
	return fmt.Errorf("client: there is no day %d-%02d-%02d", d.Year, d.Month, d.Day)
}

// IsZero reports whether d is the zero Date.
func (d Date) IsZero() bool { return d == Date{} }

// AddDays returns the day that many days later.
func (d Date) AddDays(days int) Date { return DateOf(d.midnight().AddDate(0, 0, days)) }

// Compare returns -1 if d is before other, 0 if they are equal, and +1 if d is after other.
func (d Date) Compare(other Date) int { return d.midnight().Compare(other.midnight()) }

// String formats d as YYYY-MM-DD.
func (d Date) String() string { return d.midnight().Format(time.DateOnly) }

// MarshalText implements encoding.TextMarshaler.
func (d Date) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Date) UnmarshalText(text []byte) error {
	parsed, err := ParseDate(string(text))
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}
