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

// Languages returns all languages. The first is the default.
func Languages() []Language { return []Language{Spanish, English} }

const englishRoot = "/en"

// Other returns the other language.
func (l Language) Other() Language {
	if l == Spanish {
		return English
	}
	return Spanish
}

// Path returns the path of a page in this language. page is the path of the page in Spanish.
func (l Language) Path(page string) string {
	switch {
	case l == Spanish:
		return page
	case page == "/":
		return englishRoot
	}
	return englishRoot + page
}

// splitPath is the inverse of Path: it returns the language of a path, and the path of the page in Spanish.
func splitPath(path string) (Language, string) {
	page, isEnglish := strings.CutPrefix(path, englishRoot)
	switch {
	case isEnglish && page == "":
		return English, "/"
	case isEnglish && page[0] == '/':
		return English, page
	}
	return Spanish, path
}

func (l Language) months() [12]string {
	if l == Spanish {
		return [...]string{"enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre"}
	}
	return [...]string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
}

// Date formats a day: 21 de noviembre de 2026, 21 November 2026.
func (l Language) Date(day engine.Date) string {
	t := day.Start().In(engine.Location())
	separator := " "
	if l == Spanish {
		separator = " de "
	}
	return strconv.Itoa(t.Day()) + separator + l.months()[t.Month()-1] + separator + strconv.Itoa(t.Year())
}

// ShortDate formats a day without the year: 21 nov, 21 Nov.
func (l Language) ShortDate(day engine.Date) string {
	t := day.Start().In(engine.Location())
	return strconv.Itoa(t.Day()) + " " + l.months()[t.Month()-1][:3]
}

// Instant formats a day and time of day in Santo Domingo: 21 de noviembre de 2026, 2:05 p. m.
func (l Language) Instant(t time.Time) string {
	return l.Date(engine.DateOf(t)) + ", " + l.Clock(t)
}

// Clock formats the time of day in Santo Domingo: 2:05 p. m., 2:05 pm.
func (l Language) Clock(t time.Time) string {
	t = t.In(engine.Location())
	suffix := "am"
	if t.Hour() >= 12 {
		suffix = "pm"
	}
	if l == Spanish {
		suffix = suffix[:1] + ".\u00a0m."
	}
	return fmt.Sprintf("%d:%02d\u00a0%s", (t.Hour()+11)%12+1, t.Minute(), suffix)
}
