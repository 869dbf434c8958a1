package pages

import (
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"
)

//go:embed frame
var frameFiles embed.FS

// Texts are what the pages of a package say in each language.
type Texts struct {
	files fs.FS
	words map[Language]map[string]string
}

// ReadTexts reads words.es.json and words.en.json, {"key": "text with %s"}, of a folder of embedded files; the frame's texts are added.
// It panics when they can't be read: they are part of the program.
func ReadTexts(files fs.FS) *Texts {
	t := &Texts{files, map[Language]map[string]string{}}
	for _, language := range Languages() {
		words, name := map[string]string{}, "words."+string(language)+".json"
		for _, folder := range []fs.FS{sub(frameFiles, "frame"), files} {
			data, err := fs.ReadFile(folder, name)
			if err == nil {
				err = json.Unmarshal(data, &words)
			}
			if err != nil {
				panic("pages: read the embedded " + name + ": " + err.Error())
			}
		}
		t.words[language] = words
	}
	return t
}

// In is the writer of a page for a request.
func (t *Texts) In(r *Request) *Localizer { return &Localizer{r.Language, r.Now, t} }

// Localizer writes texts, times and links in one language. Everything that it is given is escaped.
type Localizer struct {
	Language
	now   time.Time
	texts *Texts
}

// Str is the text of a key with values in the places of its verbs. Tests hold that every key of the program has a text.
func (l *Localizer) Str(key string, values ...any) string {
	text := l.texts.words[l.Language][key]
	if len(values) == 0 {
		return text
	}
	return fmt.Sprintf(text, values...)
}

// T is Str as a node.
func (l *Localizer) T(key string, values ...any) Node { return Text(l.Str(key, values...)) }

// Count is the text of key.one or key.many.
func (l *Localizer) Count(key string, n int) string {
	if n == 1 {
		return l.Str(key + ".one")
	}
	return l.Str(key+".many", n)
}

// Ago says how long ago something was, in one unit, rounded down.
func (l *Localizer) Ago(at time.Time) string {
	const day = 24 * time.Hour
	switch passed := l.now.Sub(at); {
	case passed < time.Minute:
		return l.Str("ago.now")
	case passed < time.Hour:
		return l.Count("ago.minutes", int(passed/time.Minute))
	case passed < day:
		return l.Count("ago.hours", int(passed/time.Hour))
	default:
		return l.Count("ago.days", int(passed/day))
	}
}

// Time is an instant, for programs in UTC, for people as the clocks of Santo Domingo show it.
func (l *Localizer) Time(at time.Time, attributes ...Node) Node {
	return Time(DateTime(rfc3339(at)), Group(attributes), Text(l.Instant(at)))
}

// Since is how long ago an instant was.
func (l *Localizer) Since(at time.Time, attributes ...Node) Node {
	return Time(DateTime(rfc3339(at)), Group(attributes), Text(l.Ago(at)))
}

func rfc3339(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// Href is the attribute of a link to a page, named by its Spanish path, in this language.
func (l *Localizer) Href(page string) Node { return Href(l.Path(page)) }

// Action is the attribute of a form that is sent to a page.
func (l *Localizer) Action(page string) Node { return Action(l.Path(page)) }

// External links to a page of another site. An address of another scheme, as javascript:, stays a text.
func External(address, text string) Node {
	if scheme, _, _ := strings.Cut(address, ":"); !strings.EqualFold(scheme, "https") && !strings.EqualFold(scheme, "http") {
		return Text(text)
	}
	return A(Href(address), Rel("noopener nofollow external"), Text(text))
}

// Contact tells the reader where to write to the operator: an introduction and a link. Without an operator's contact it is nothing.
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

// Slots fill the places {{name}} of a Prose.
type Slots map[string]Node

// Prose is a long text with its markup, name.<language>.html among the embedded files.
func (l *Localizer) Prose(name string, slots Slots) Node {
	return NodeFunc(func(w io.Writer) error {
		text, err := fs.ReadFile(l.texts.files, name+"."+string(l.Language)+".html")
		rest := string(text)
		for err == nil && rest != "" {
			var before, slot string
			before, rest, _ = strings.Cut(rest, "{{")
			slot, rest, _ = strings.Cut(rest, "}}")
			err = Group{Raw(before), slots[slot]}.Render(w)
		}
		return err
	})
}
