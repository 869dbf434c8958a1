package pages

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"time"
)

// words are the texts of one language, by key.
type words map[string]string

// readWords reads words.<language>.json of a folder, {"key": "text with %s"}. A folder may have none.
func readWords(files fs.FS, language Language) (words, error) {
	name := "words." + string(language) + ".json"
	data, err := fs.ReadFile(files, name)
	if errors.Is(err, fs.ErrNotExist) {
		return words{}, nil
	}
	var texts words
	if err == nil {
		err = json.Unmarshal(data, &texts)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return texts, nil
}

// mustWords are the texts of a folder of embedded files in all languages.
func mustWords(files fs.FS) map[Language]words {
	all := map[Language]words{}
	for _, language := range Languages() {
		texts, err := readWords(files, language)
		if err != nil {
			panic("pages: the embedded texts are damaged: " + err.Error())
		}
		all[language] = texts
	}
	return all
}

// with are both, where more wins.
func (w words) with(more words) words {
	all := maps.Clone(w)
	maps.Copy(all, more)
	return all
}

// text is the text of a key, with values in the places of its verbs.
func (w words) text(key string, values ...any) (string, error) {
	text, ok := w[key]
	if !ok {
		return "", fmt.Errorf("no text has the key %q; add it to words.es.json and words.en.json", key)
	}
	if len(values) == 0 {
		return text, nil
	}
	return fmt.Sprintf(text, values...), nil
}

// counted is the text of key.one or key.many.
func (w words) counted(key string, n int) (string, error) {
	if n == 1 {
		return w.text(key + ".one")
	}
	return w.text(key+".many", n)
}

// ago says how long ago something was, in one unit, rounded down.
func (w words) ago(now, at time.Time) (string, error) {
	const day = 24 * time.Hour
	switch passed := now.Sub(at); {
	case passed < time.Minute:
		return w.text("ago.now")
	case passed < time.Hour:
		return w.counted("ago.minutes", int(passed/time.Minute))
	case passed < day:
		return w.counted("ago.hours", int(passed/time.Hour))
	default:
		return w.counted("ago.days", int(passed/day))
	}
}
