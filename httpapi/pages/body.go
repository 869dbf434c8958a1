package pages

import (
	"embed"
	"errors"
	"html/template"
	"io/fs"
	"strings"
	"time"
)

//go:embed all:frame
var frameFiles embed.FS

// Body is the inner part of a page, a template in each language.
type Body struct {
	templates map[Language]*template.Template
}

// Body reads a body from a folder of embedded files: name.html for both languages, or name.es.html and name.en.html; beside it every
// _*.html (embedded with all:), which only defines templates that bodies call, and words.es.json and words.en.json, the texts that t gives. It panics
// when they can't be read: they are part of the program.
//
// A body begins with its one h1. Besides what html/template has it may call
//
//	t KEY VALUE...        the text of a key, its verbs (%s, %d) filled in
//	count KEY N           the text of KEY.one or KEY.many
//	href PAGE             the path of a page, named by its Spanish path, in the language of this one
//	asset NAME            the path of an asset (Frame.Asset)
//	date DAY              21 de noviembre de 2026, of an engine.Date; shortDate: 21 nov
//	instant TIME          21 de noviembre de 2026, 2:05 p. m., in Santo Domingo; clock: 2:05 p. m.
//	machine TIME          for <time datetime>, in UTC
//	ago NOW TIME          hace 2 horas
//	language              es or en
//	pair NOW TIME         both as one value, for a template of a part
//	problem FIELD MAP     a field with the key of what is wrong with it; fields: those of a chart
//	mentions TEXT PART    whether a text has a part
//	service               the address of the service, without a slash at its end
func (f *Frame) Body(files fs.FS, name string) *Body {
	body := &Body{map[Language]*template.Template{}}
	for _, language := range Languages() {
		parsed, err := f.parse(files, name, language)
		if err != nil {
			panic("pages: the embedded template " + name + " is damaged: " + err.Error())
		}
		body.templates[language] = parsed
	}
	return body
}

func (f *Frame) parse(files fs.FS, name string, language Language) (*template.Template, error) {
	more, err := readWords(files, language)
	if err != nil {
		return nil, err
	}
	parsed, err := template.New(name).Funcs(f.functions(language, f.words[language].with(more))).ParseFS(frameFiles, "frame/layout.html")
	if err != nil {
		return nil, err
	}
	parts, err := fs.Glob(files, "_*.html")
	if err != nil {
		return nil, err
	}
	if len(parts) > 0 {
		if parsed, err = parsed.ParseFS(files, parts...); err != nil {
			return nil, err
		}
	}
	text, err := fs.ReadFile(files, name+".html")
	if errors.Is(err, fs.ErrNotExist) {
		text, err = fs.ReadFile(files, name+"."+string(language)+".html")
	}
	if err != nil {
		return nil, err
	}
	_, err = parsed.New("body").Parse(strings.TrimSpace(string(text)))
	return parsed, err
}

// functions are what templates may call.
func (f *Frame) functions(language Language, texts words) template.FuncMap {
	return template.FuncMap{
		"t": texts.text, "count": texts.counted, "ago": texts.ago,
		"href": language.Path, "asset": f.Asset,
		"date": language.Date, "shortDate": language.ShortDate, "instant": language.Instant, "clock": language.Clock,
		"machine":  func(at time.Time) string { return at.UTC().Format(time.RFC3339) },
		"language": func() string { return string(language) },
		"service":  func() string { return f.config.PublicURL },
		"pair":     func(now, at time.Time) moment { return moment{now, at} },
		"problem":  func(field string, problems map[string]string) problem { return problem{field, problems[field]} },
		"mentions": strings.Contains,
		"fields":   func() []string { return []string{parameterCurrency, "channel", "days"} },
	}
}

// moment is what the part "fresh" gets.
type moment struct{ Now, At time.Time }

// problem is what the part "problem" gets: a field, and the key of the text that says what is wrong with it, "" = nothing.
type problem struct{ ID, Key string }
