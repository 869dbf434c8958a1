package pages

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
)

// Language is a language of the pages.
type Language string

// Languages.
const (
	Spanish Language = "es"
	English Language = "en"
)

// Languages returns all languages, the default first.
func Languages() []Language { return []Language{Spanish, English} }

const englishRoot = "/en"

// Other returns the other language.
func (l Language) Other() Language {
	if l == Spanish {
		return English
	}
	return Spanish
}

// Path returns the path of a page in this language. Pages are named by their Spanish path.
func (l Language) Path(page string) string {
	switch {
	case l == Spanish:
		return page
	case page == "/":
		return englishRoot
	}
	return englishRoot + page
}

// splitPath is the inverse of Path.
func splitPath(path string) (Language, string) {
	rest, english := strings.CutPrefix(path, englishRoot)
	switch {
	case english && rest == "":
		return English, "/"
	case english && rest[0] == '/':
		return English, rest
	}
	return Spanish, path
}

// months are the names of the months.
func (l Language) months() [12]string {
	if l == Spanish {
		return [...]string{"enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre"}
	}
	return [...]string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
}

// Date formats a day: 21 de noviembre de 2026, 21 November 2026.
func (l Language) Date(day engine.Date) string {
	at := day.Start().In(engine.Location())
	of := " "
	if l == Spanish {
		of = " de "
	}
	return strconv.Itoa(at.Day()) + of + l.months()[at.Month()-1] + of + strconv.Itoa(at.Year())
}

// ShortDate formats a day without the year: 21 nov, 21 Nov.
func (l Language) ShortDate(day engine.Date) string {
	at := day.Start().In(engine.Location())
	return strconv.Itoa(at.Day()) + " " + l.months()[at.Month()-1][:3]
}

// Instant formats a time in Santo Domingo: 21 de noviembre de 2026, 2:05 p. m.
func (l Language) Instant(at time.Time) string {
	return l.Date(engine.DateOf(at)) + ", " + l.Clock(at)
}

// Clock formats the time of day in Santo Domingo: 2:05 p. m., 2:05 pm.
func (l Language) Clock(at time.Time) string {
	at = at.In(engine.Location())
	half := "am"
	if at.Hour() >= 12 {
		half = "pm"
	}
	if l == Spanish {
		half = half[:1] + ".\u00a0m."
	}
	return fmt.Sprintf("%d:%02d\u00a0%s", (at.Hour()+11)%12+1, at.Minute(), half)
}

// prefersEnglish reports whether Accept-Language has English before Spanish. Browsers list languages by preference, so
// weights are ignored.
func prefersEnglish(accepted string) bool {
	for choice := range strings.SplitSeq(accepted, ",") {
		tag, _, _ := strings.Cut(strings.TrimSpace(choice), ";")
		primary, _, _ := strings.Cut(strings.ToLower(tag), "-")
		switch Language(primary) {
		case Spanish:
			return false
		case English:
			return true
		}
	}
	return false
}
