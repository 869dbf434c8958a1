package values

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
)

// DateForm is the written form of a date.
type DateForm string

// The forms of dates. A time without a zone is local time in Santo Domingo.
const (
	ISODate DateForm = "iso"              // 2026-09-17; a time of 00:00:00 after it is ignored
	DayTime DateForm = "dd/mm/yyyy hh:mm" // 17/09/2026 12:30; am or pm may follow
	Instant DateForm = "instant"          // 2026-09-17T12:30:00-04:00, or jueves, 17 de septiembre de 2026 12:30 p
)

var errDate = errors.New("not a date of the expected form")

// Limits of the year of a date.
const (
	yearMin = 1900
	yearMax = 2999
)

// Patterns of the date forms. They match a whole text, because other dates in a text may mean something else. In a text
// with more than the date, the definition's pattern (Locator.Pattern) must select the date.
var (
	isoDatePattern     = regexp.MustCompile(`^([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[T ]00:00(?::00(?:\.0+)?)?(?:Z|[-+][0-9]{2}:?[0-9]{2})?)?$`)
	isoInstantPattern  = regexp.MustCompile(`^([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?)(?:(Z)|([-+][0-9]{2}):?([0-9]{2}))?$`)
	numericDatePattern = regexp.MustCompile(`^([0-9]{1,2})([-/.])([0-9]{1,2})([-/.])([0-9]{4})$`)
	dateTimePattern    = regexp.MustCompile(`^(.*[0-9]{4})(?: ?[-,] ?| )([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?(?: ?([ap])(?: ?\.? ?m)?\.?)?$`)
	spanishDatePattern = regexp.MustCompile(`^(?:[a-z]+,? )?([0-9]{1,2})(?: de | |-|/)([a-z]{3,10})\.?(?:,? del? |,? |-|/)([0-9]{4})$`)
	spanishMonths      = map[string]int{
		"ene": 1, "feb": 2, "mar": 3, "abr": 4, "may": 5, "jun": 6, "jul": 7, "ago": 8, "sep": 9, "set": 9, "oct": 10, "nov": 11, "dic": 12,
	}
)

// ParseDate parses a date in the given form, such as 17/09/2026. The second result is the instant (UTC) for a form with
// a time, otherwise zero. A time without a zone is local time in Santo Domingo.
func ParseDate(text string, form DateForm) (engine.Date, time.Time, error) {
	text = CollapseSpaces(text)
	if len(text) > priceBytesMax {
		return 0, time.Time{}, fmt.Errorf("%w: a text of %d bytes", errDate, len(text))
	}
	var day engine.Date
	var instant time.Time
	switch form {
	case ISODate:
		if match := isoDatePattern.FindStringSubmatch(text); match != nil {
			day = dateOf(match[1], match[2], match[3])
		}
	case DayTime:
		day, instant = parseDateTime(text, parseNumericDate)
	case Instant:
		if day, instant = parseInstant(text); day.IsZero() {
			day, instant = parseDateTime(text, parseSpanishDate)
		}
	}
	if day.IsZero() {
		return 0, time.Time{}, fmt.Errorf("%w: %.80q, want the form %s", errDate, text, form)
	}
	return day, instant, nil
}

// DateOfCells returns the date in three cells, or zero for an impossible day. The month is a Spanish name or a number.
func DateOfCells(year, month, day string) engine.Date {
	monthText := monthNumber(month)
	if monthText == "" && allDigits(month) {
		monthText = month
	}
	return dateOf(year, monthText, day)
}

// monthNumber returns the number of a month from its Spanish name, or "". Only the first three characters count.
func monthNumber(name string) string {
	runes := []rune(NormaliseLabel(name))
	if len(runes) < 3 {
		return ""
	}
	if number := spanishMonths[string(runes[:3])]; number > 0 {
		return strconv.Itoa(number)
	}
	return ""
}

// dateOf returns the date of a year, month and day, or zero for an impossible day.
func dateOf(year, month, day string) engine.Date {
	if len(year) != 4 || len(month) > 2 || len(day) > 2 {
		return 0
	}
	date, err := engine.ParseDate(fmt.Sprintf("%s-%02s-%02s", year, month, day))
	if err != nil || year < strconv.Itoa(yearMin) || year > strconv.Itoa(yearMax) {
		return 0
	}
	return date
}

func parseNumericDate(text string) engine.Date {
	match := numericDatePattern.FindStringSubmatch(text)
	if match == nil || match[2] != match[4] {
		return 0
	}
	return dateOf(match[5], match[3], match[1])
}

func parseSpanishDate(text string) engine.Date {
	match := spanishDatePattern.FindStringSubmatch(NormaliseLabel(text))
	if match == nil {
		return 0
	}
	return dateOf(match[3], monthNumber(match[2]), match[1])
}

// parseDateTime parses a date (with parseDay) and a time of day. The text may end with am, pm, a or p.
func parseDateTime(text string, parseDay func(string) engine.Date) (engine.Date, time.Time) {
	match := dateTimePattern.FindStringSubmatch(strings.ToLower(text))
	if match == nil {
		return 0, time.Time{}
	}
	day := parseDay(match[1])
	hour, _ := strconv.Atoi(match[2])
	meridiem := match[5]
	if day.IsZero() || meridiem != "" && (hour < 1 || hour > 12) {
		return 0, time.Time{}
	}
	if meridiem != "" {
		hour %= 12
	}
	if meridiem == "p" {
		hour += 12
	}
	return instantIn(day.String(), fmt.Sprintf("%02d:%s:%02s", hour, match[3], match[4]), "")
}

func parseInstant(text string) (engine.Date, time.Time) {
	match := isoInstantPattern.FindStringSubmatch(text)
	if match == nil {
		return 0, time.Time{}
	}
	clock, zone := match[2], match[3]
	if len(clock) == len("15:04") {
		clock += ":00"
	}
	if match[4] != "" {
		zone = match[4] + ":" + match[5]
	}
	return instantIn(match[1], clock, zone)
}

// instantIn returns a date in Santo Domingo and its instant (UTC), from a date, a time of day and a zone. Without a
// zone the time is local time in Santo Domingo. Both results are zero for an invalid text.
func instantIn(day, clock, zone string) (engine.Date, time.Time) {
	instant, err := time.ParseInLocation("2006-01-02T15:04:05", day+"T"+clock, engine.Location())
	if zone != "" {
		instant, err = time.Parse(time.RFC3339, day+"T"+clock+zone)
	}
	date := engine.DateOf(instant)
	if err != nil || instant.Year() < yearMin || instant.Year() > yearMax || date.IsZero() {
		return 0, time.Time{}
	}
	return date, instant.UTC().Truncate(time.Second)
}
