package source_test

import (
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

func date(t *testing.T, text string) engine.Date {
	t.Helper()
	if text == "" {
		return 0
	}
	date, err := engine.ParseDate(text)
	if err != nil {
		t.Fatal(err)
	}
	return date
}

// The holiday weekend is that of 2026-11-09: a Monday on which neither the central bank nor the banks work.
func TestT3_ExpiryIsTheEarlierOfBothEnds(t *testing.T) {
	local := func(text string) time.Time {
		at, err := time.ParseInLocation("2006-01-02 15:04", text, engine.Location())
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	for _, test := range []struct{ id, what, checked, effective, want string }{
		{"popular-site", "undated: 26 h after the check", "2026-11-06 17:00", "", "2026-11-07 19:00"},
		{"popular-site", "a date that the source gives nonetheless ends nothing", "2026-11-06 17:00", "2020-01-01", "2026-11-07 19:00"},
		{"bdi-site", "dated today: the check ends first", "2026-11-06 17:00", "2026-11-06", "2026-11-07 19:00"},
		{"bdi-site", "Friday's value on the Monday holiday is believed", "2026-11-09 17:00", "2026-11-06", "2026-11-10 19:00"},
		{"bdi-site", "and on Tuesday morning", "2026-11-10 08:00", "2026-11-06", "2026-11-11 10:00"},
		{"bdi-site", "but not for ever: five days after Friday's end", "2026-11-11 17:00", "2026-11-06", "2026-11-12 00:00"},
		{"bdi-site", "a frozen page has expired already", "2026-11-20 17:00", "2026-11-06", "2026-11-12 00:00"},
		{"bdi-site", "without a date only the check counts", "2026-11-20 17:00", "", "2026-11-21 19:00"},
		{"bcrd-reference", "checked on Friday, no more answers: over the weekend and the holiday to Tuesday", "2026-11-06 17:00", "2026-11-06", "2026-11-10 19:00"},
		{"bcrd-reference", "checked at 17:00 on the holiday: the date ends first", "2026-11-09 17:00", "2026-11-06", "2026-11-12 00:00"},
		{"bcrd-reference", "Monday 08:00, an ordinary weekend", "2026-11-16 08:00", "2026-11-13", "2026-11-19 00:00"},
		{"bcrd-usd", "the frozen workbook of 2022 expired then", "2026-11-16 08:00", "2022-07-19", "2022-07-25 00:00"},
	} {
		d, known := source.DefaultSet().Find(test.id)
		if !known {
			t.Fatalf("there is no source %s", test.id)
		}
		if got, want := d.ExpiresAt(local(test.checked), date(t, test.effective)), local(test.want); !got.Equal(want) {
			t.Errorf("%s, %s: expires at %s, want %s", test.id, test.what, got.In(engine.Location()), want)
		}
	}
}

// Whoever tells a day is believed for five days after it at most, so that no frozen page is served as current.
func TestT3_DatedSourcesExpireByTheirDate(t *testing.T) {
	for _, d := range source.DefaultSet().Definitions() {
		dated := false
		for _, page := range d.Pages {
			rows := page.Extract.Rows
			dated = dated || page.Extract.Date != nil || page.Extract.Sheet != nil || rows != nil && rows.Date != nil
		}
		want := time.Duration(0)
		if dated {
			want = 120 * time.Hour
		}
		if d.Expiry.AfterDate != want {
			t.Errorf("%s expires %s after its date, want %s", d.ID, d.Expiry.AfterDate, want)
		}
	}
}
