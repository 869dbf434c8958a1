package pages

import (
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/tasard/tasard/engine"
)

//go:embed frame
var frameFiles embed.FS

// Texts is a package's texts in all languages. Str and Prose of Localizer return them.
type Texts struct {
	files fs.FS
	words map[Language]map[string]string
}

// ReadTexts reads words.es.json and words.en.json from a package's embedded files. The texts are formats for package
// fmt. ReadTexts adds the texts of the Frame, with keys such as frame.name. It panics if a file is missing or invalid.
func ReadTexts(files fs.FS) *Texts {
	result := &Texts{files: files, words: map[Language]map[string]string{}}
	for _, language := range Languages() {
		words, name := map[string]string{}, "words."+string(language)+".json"
		for _, folder := range []fs.FS{Folder(frameFiles, "frame"), files} {
			data, err := fs.ReadFile(folder, name)
			if err == nil {
				err = json.Unmarshal(data, &words)
			}
			if err != nil {
				panic("pages: read the embedded " + name + ": " + err.Error())
			}
		}
		result.words[language] = words
	}
	return result
}

// In returns the Localizer of a request.
func (t *Texts) In(r *Request) *Localizer { return &Localizer{r.Language, r.Now, t} }

// Localizer formats texts, times and links in one language. It escapes texts in HTML nodes, except in Prose.
type Localizer struct {
	Language
	now   time.Time
	texts *Texts
}

// Str formats the text of a key. It returns "" if the key has no text.
func (l *Localizer) Str(key string, values ...any) string {
	text := l.texts.words[l.Language][key]
	if len(values) == 0 {
		return text
	}
	return fmt.Sprintf(text, values...)
}

// T returns the result of Str as an HTML node.
func (l *Localizer) T(key string, values ...any) Node { return Text(l.Str(key, values...)) }

// Count returns the text of key + ".one" if n is 1, otherwise the text of key + ".many" formatted with n.
func (l *Localizer) Count(key string, n int) string {
	if n == 1 {
		return l.Str(key + ".one")
	}
	return l.Str(key+".many", n)
}

// Time returns a time element with the day and time of day in Santo Domingo.
func (l *Localizer) Time(at time.Time, attributes ...Node) Node {
	return Time(DateTime(rfc3339(at)), Group(attributes), Text(l.Instant(at)))
}

func rfc3339(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Href returns an href attribute for a page in this language. page is the path of the page in Spanish.
func (l *Localizer) Href(page string) Node { return Href(l.Path(page)) }

// Action returns an action attribute for a form. page is the path of the page in Spanish.
func (l *Localizer) Action(page string) Node { return Action(l.Path(page)) }

// External returns a link to another site. If the address is not an http or https URL, it returns only the text.
func External(address, text string) Node {
	if scheme, _, _ := strings.Cut(address, ":"); !strings.EqualFold(scheme, "https") && !strings.EqualFold(scheme, "http") {
		return Text(text)
	}
	return A(Href(address), Rel("noopener nofollow external"), Text(text))
}

// Contact returns an introduction and a link to Config.Contact. Without a contact it returns nil.
func (f *Frame) Contact(introduction string) Node {
	contact := f.config.Contact
	link := External(contact, contact)
	switch {
	case contact == "":
		return nil
	case strings.Contains(contact, "@") && !strings.Contains(contact, "://"):
		link = A(Href("mailto:"+contact), Text(contact))
	}
	return Group{Text(introduction + " "), link}
}

// Slots maps the name of each placeholder {{name}} in a file of Prose to the content.
type Slots map[string]Node

// Prose returns a long text: the HTML of the embedded file name.<language>.html, with the placeholders replaced.
func (l *Localizer) Prose(name string, slots Slots) Node {
	return NodeFunc(func(w io.Writer) error {
		text, err := fs.ReadFile(l.texts.files, name+"."+string(l.Language)+".html")
		template := string(text)
		for err == nil && template != "" {
			var before, slot string
			before, template, _ = strings.Cut(template, "{{")
			slot, template, _ = strings.Cut(template, "}}")
			err = Group{Raw(before), slots[slot]}.Render(w)
		}
		return err
	})
}

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
