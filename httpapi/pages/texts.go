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

// Texts holds the texts of a package in all languages.
type Texts struct {
	files fs.FS
	words map[Language]map[string]string
}

// ReadTexts reads words.es.json and words.en.json from embedded files, and adds the texts of the frame. The values are
// formats for fmt. It panics if a file is missing or damaged.
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

// In returns the Localizer of a request.
func (t *Texts) In(r *Request) *Localizer { return &Localizer{r.Language, r.Now, t} }

// Localizer writes texts, times and links in one language. Nodes are escaped.
type Localizer struct {
	Language
	now   time.Time
	texts *Texts
}

// Str formats the text of a key.
func (l *Localizer) Str(key string, values ...any) string {
	text := l.texts.words[l.Language][key]
	if len(values) == 0 {
		return text
	}
	return fmt.Sprintf(text, values...)
}

// T is Str as a node.
func (l *Localizer) T(key string, values ...any) Node { return Text(l.Str(key, values...)) }

// Count formats the text key.one or key.many.
func (l *Localizer) Count(key string, n int) string {
	if n == 1 {
		return l.Str(key + ".one")
	}
	return l.Str(key+".many", n)
}

// Ago formats how long ago a time was, in one unit, rounded down.
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

// Time shows a time in Santo Domingo.
func (l *Localizer) Time(at time.Time, attributes ...Node) Node {
	return Time(DateTime(rfc3339(at)), Group(attributes), Text(l.Instant(at)))
}

// Since shows how long ago a time was.
func (l *Localizer) Since(at time.Time, attributes ...Node) Node {
	return Time(DateTime(rfc3339(at)), Group(attributes), Text(l.Ago(at)))
}

func rfc3339(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// Href links to a page, named by its Spanish path, in this language.
func (l *Localizer) Href(page string) Node { return Href(l.Path(page)) }

// Action sends a form to a page.
func (l *Localizer) Action(page string) Node { return Action(l.Path(page)) }

// External links to another site. Only http and https URLs become links.
func External(address, text string) Node {
	if scheme, _, _ := strings.Cut(address, ":"); !strings.EqualFold(scheme, "https") && !strings.EqualFold(scheme, "http") {
		return Text(text)
	}
	return A(Href(address), Rel("noopener nofollow external"), Text(text))
}

// Contact shows the contact of the operator after an introduction, or nothing if there is none.
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

// Slots are the values of the placeholders {{name}} in a Prose.
type Slots map[string]Node

// Prose is a long text from the embedded file name.<language>.html.
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
