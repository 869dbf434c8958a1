package source

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
)

var errDate = errors.New("not a date of the expected form")

// The years that a date may have. A year has four digits.
const (
	yearMin = 1900
	yearMax = 2999
)

// The forms of dates. The pattern of a definition must cut off any text around a date, which might be a date of
// something else.
var (
	isoDatePattern         = regexp.MustCompile(`^([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[T ]00:00(?::00(?:\.0+)?)?(?:Z|[-+][0-9]{2}:?[0-9]{2})?)?$`)
	isoInstantPattern      = regexp.MustCompile(`^([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?)(Z|[-+][0-9]{2}:[0-9]{2})?$`)
	numericDatePattern     = regexp.MustCompile(`^([0-9]{1,2})([-/.])([0-9]{1,2})([-/.])([0-9]{4})$`)
	numericDateTimePattern = regexp.MustCompile(`^([0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{4})(?: ?[-,] ?| )([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?(?: ?([ap]) ?\.? ?m\.?)?$`)
	spanishDatePattern     = regexp.MustCompile(`^(?:[a-z]+,? )?([0-9]{1,2})(?: de | |-|/)([a-z]{3,10})\.?(?:,? del? |,? |-|/)([0-9]{4})$`)
	spanishMonths          = map[string]int{
		"ene": 1, "feb": 2, "mar": 3, "abr": 4, "may": 5, "jun": 6, "jul": 7, "ago": 8, "sep": 9, "set": 9, "oct": 10, "nov": 11, "dic": 12,
	}
)

// parseDate parses a date of one form, and the instant for the forms that have a time: in Santo Domingo unless a zone
// is given.
func parseDate(text string, form DateForm) (engine.Date, time.Time, error) {
	text = collapseSpaces(text)
	if len(text) > priceBytesMax {
		return 0, time.Time{}, fmt.Errorf("%w: a text of %d bytes", errDate, len(text))
	}
	var day engine.Date
	var moment time.Time
	switch form {
	case ISODate:
		if found := isoDatePattern.FindStringSubmatch(text); found != nil {
			day = dateOf(found[1], found[2], found[3])
		}
	case DayMonthYear:
		day = parseNumericDate(text)
	case SpanishDate:
		if found := spanishDatePattern.FindStringSubmatch(normaliseLabel(text)); found != nil {
			day = dateOf(found[3], monthNumber(found[2]), found[1])
		}
	case DayTime:
		day, moment = parseNumericDateTime(text)
	case ISOInstant:
		day, moment = parseInstant(text)
	}
	if day.IsZero() {
		return 0, time.Time{}, fmt.Errorf("%w: %.80q, want the form %s", errDate, text, form)
	}
	return day, moment, nil
}

// monthNumber returns the month of a Spanish name by its first three characters, otherwise "".
func monthNumber(name string) string {
	letters := []rune(normaliseLabel(name))
	if len(letters) < 3 {
		return ""
	}
	if number := spanishMonths[string(letters[:3])]; number > 0 {
		return strconv.Itoa(number)
	}
	return ""
}

// dateOf returns the date of three numbers, zero if there is no such day.
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
	found := numericDatePattern.FindStringSubmatch(text)
	if found == nil || found[2] != found[4] {
		return 0
	}
	return dateOf(found[5], found[3], found[1])
}

func parseNumericDateTime(text string) (engine.Date, time.Time) {
	found := numericDateTimePattern.FindStringSubmatch(strings.ToLower(text))
	if found == nil {
		return 0, time.Time{}
	}
	day := parseNumericDate(found[1])
	hour, _ := strconv.Atoi(found[2])
	half := found[5]
	if day.IsZero() || half != "" && (hour < 1 || hour > 12) {
		return 0, time.Time{}
	}
	if half != "" {
		hour %= 12
	}
	if half == "p" {
		hour += 12
	}
	return instantIn(day.String(), fmt.Sprintf("%02d:%s:%02s", hour, found[3], found[4]), "")
}

func parseInstant(text string) (engine.Date, time.Time) {
	found := isoInstantPattern.FindStringSubmatch(text)
	if found == nil {
		return 0, time.Time{}
	}
	return instantIn(found[1], found[2], found[3])
}

// instantIn returns an instant and its date in Santo Domingo, the time zone of a page that names none.
func instantIn(day, clock, zone string) (engine.Date, time.Time) {
	moment, err := time.ParseInLocation("2006-01-02T15:04:05", day+"T"+clock, engine.Location())
	if zone != "" {
		moment, err = time.Parse(time.RFC3339, day+"T"+clock+zone)
	}
	date := engine.DateOf(moment)
	if err != nil || moment.Year() < yearMin || moment.Year() > yearMax || date.IsZero() {
		return 0, time.Time{}
	}
	return date, moment.UTC().Truncate(time.Second)
}
