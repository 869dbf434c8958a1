package values

import (
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

func TestT10_DateForms(t *testing.T) {
	for form, days := range map[DateForm]map[string][]string{ // by what is read: a day, and a moment
		ISODate: {
			"2026-09-17 ": {
				"2026-09-17", "2026-09-17T00:00:00Z", "2026-09-17T00:00:00", "2026-09-17T00:00:00.000Z", "2026-09-17 00:00", "2026-09-17T00:00:00-04:00",
			},
			"2024-02-29 ": {" 2024-02-29\u00a0"},
		},
		DayTime: {
			"2026-09-17 2026-09-17T12:15:00Z": {"17/09/2026 08:15", "17/09/2026 8:15"},
			"2026-09-17 2026-09-18T03:59:58Z": {"17/09/2026 23:59:58"},
			"2026-09-17 2026-09-18T00:15:00Z": {"17/09/2026, 08:15 p. m."},
			"2026-09-17 2026-09-17T04:15:00Z": {"17/09/2026 12:15 AM"},
			"2026-09-17 2026-09-17T16:15:00Z": {"17/09/2026 12:15 pm"},
			"2026-09-17 2026-09-17T17:15:00Z": {"17/09/2026 - 1:15PM"},
		},
		Instant: {
			"2026-09-17 2026-09-18T02:30:00Z": {"2026-09-18T02:30:00Z"},
			"2026-09-17 2026-09-17T16:30:00Z": {"2026-09-17T12:30:00-04:00", "2026-09-17T12:30:00", "2026-09-17 12:30:00.123456", "jueves, 17 de septiembre de 2026 12:30 p", "17-sep-2026, 12:30"},
			"2026-01-22 2026-01-22T14:30:00Z": {"Jueves, 22 de enero de 2026 10:30 a", "22 de enero de 2026 10:30 a. m.", "22/ene/2026 10:30AM"},
			"2026-01-23 2026-01-23T18:45:00Z": {"viernes, 23 de enero de 2026 02:45 p"},
			"2026-01-22 2026-01-22T04:05:00Z": {"jueves, 22 de enero de 2026 12:05 a"},
		},
	} {
		for want, texts := range days {
			for _, text := range texts {
				day, moment, err := ParseDate(text, form)
				got := day.String() + " "
				if !moment.IsZero() {
					got += moment.Format(time.RFC3339)
				}
				if err != nil || got != want {
					t.Errorf("%s %q is %s, %v; want %s", form, text, got, err, want)
				}
			}
		}
	}
}

func TestT10_InvalidDates(t *testing.T) {
	for _, c := range []struct {
		form DateForm
		text string
	}{
		{Instant, "22 de enero de 2026"}, {Instant, "22 de enero de 2026 14:30 p"}, {Instant, "22/01/2026 10:30 a"}, {Instant, "30 de febrero de 2026 10:30 a"},
		{Instant, "22 de enero de 2026 10:30 x"}, {ISODate, ""}, {ISODate, "17/09/2026"}, {ISODate, "2026-9-17"}, {ISODate, "26-09-17"}, {ISODate, "2026-02-29"}, {ISODate, "2026-13-01"},
		{ISODate, "2026-09-17T03:00:00Z"}, {ISODate, "2026-09-17 y"}, {ISODate, "0000-01-01"}, {ISODate, "1899-12-31"}, {ISODate, "3000-01-01"},
		{ISODate, "２０２６-09-17"}, {ISODate, "2026-09-17T00:00:00Z 2026-09-18"},

		{DayTime, "17/09/2026"}, {DayTime, "17/09/26 08:15"}, {DayTime, "17/09/2026 24:00"}, {DayTime, "17/09/2026 08:60"},
		{DayTime, "17/09/2026 13:00 pm"}, {DayTime, "17/09/2026 0:30 am"}, {DayTime, "31/09/2026 08:15"}, {DayTime, "17/09/2026 08:15:61"},
		{Instant, "17 de 2026"}, {Instant, "17 de se de 2026"}, {Instant, "17 de xyz de 2026"}, {Instant, "31-sep-2026"},
		{Instant, "17-sep-26"}, {Instant, "Enero-Marzo"}, {Instant, "septiembre 2026"}, {Instant, "17 de january de 2026"},
		{Instant, "2026-09-17"}, {Instant, "2026-09-17T25:00:00Z"}, {Instant, "2026-09-17T12:30:00 -0400"},
		{Instant, "2026-09-17T12:30:00+99:99"}, {Instant, "0001-01-01T00:00:00Z"},
		{"", "2026-09-17"},
	} {
		if day, moment, err := ParseDate(c.text, c.form); err == nil {
			t.Errorf("%s %q is %s %s, want an error", c.form, c.text, day, moment)
		}
	}
}

func FuzzReadDate(f *testing.F) {
	for _, text := range []string{
		"2026-09-17", "2026-09-17T00:00:00Z", "17/09/2026 08:15 p. m.", "17 de septiembre de 2026", "2026-09-17T12:30:00-04:00", "1-ene-2026", "",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, form := range []DateForm{ISODate, DayTime, Instant} {
			day, moment, err := ParseDate(text, form)
			switch {
			case err != nil && (!day.IsZero() || !moment.IsZero()):
				t.Fatalf("%s %q: an error with %s %s", form, text, day, moment)
			case err == nil && (day.IsZero() || day.String() < "1899-12-31" || day.String() > "3000-01-01"):
				t.Fatalf("%s %q is %s", form, text, day)
			case !moment.IsZero() && engine.DateOf(moment) != day:
				t.Fatalf("%s %q is %s and the moment %s", form, text, day, moment)
			}
		}
	})
}
