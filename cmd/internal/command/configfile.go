package command

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/tasard/tasard/cmd/internal/exit"
)

// ParseConfig parses a configuration file. It returns all errors, joined. For a file that is not TOML, they have no
// lines.
func ParseConfig(path, text string, known []string) (map[string]Given, error) {
	var keys map[string]any
	if _, err := toml.Decode(text, &keys); err != nil {
		var syntax toml.ParseError
		if errors.As(err, &syntax) {
			return nil, exit.Errorf(exit.BadData, "%s:%d: %s", path, max(1, syntax.Position.Line), syntax.Message)
		}
		return nil, exit.Errorf(exit.BadData, "%s: %w", path, err)
	}
	lines := map[string]Given{}
	var problems []error
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		number := lineOfKey(text, key)
		value, isValue := configValue(keys[key])
		switch {
		case !slices.Contains(known, key):
			problems = append(problems, fmt.Errorf("%s:%d: unknown key %q%s", path, number, key, DidYouMean(key, known)))
		case !isValue:
			problems = append(problems, fmt.Errorf("%s:%d: %s: want a text, a whole number, true or false, or a list of texts", path, number, key))
		case value == nil: // an empty list sets nothing
		default:
			lines[key] = Given{Text: *value, Origin: fmt.Sprintf("%s:%d: %s", path, number, key), Line: number}
		}
	}
	return lines, badSettings(problems)
}

// configValue returns a value of the configuration file as text for the flag, or nil for an empty list. It returns
// false for dates, tables and fractions, because no flag accepts them.
func configValue(value any) (text *string, isValue bool) {
	switch v := value.(type) {
	case string, int64, bool:
		one := fmt.Sprint(v)
		return &one, true
	case []any:
		var texts []string
		for _, element := range v {
			one, isText := element.(string)
			if !isText {
				return nil, false
			}
			texts = append(texts, one)
		}
		if all := strings.Join(texts, ","); len(texts) > 0 {
			return &all, true
		}
		return nil, true
	}
	return nil, false
}

// lineOfKey returns the line number of a top-level TOML key or table. The TOML library does not report line numbers.
func lineOfKey(text, key string) int {
	for i, line := range strings.Split(text, "\n") {
		name, _, _ := strings.Cut(line, "=")
		name, _, _ = strings.Cut(strings.Trim(strings.TrimSpace(name), "[]"), ".")
		if strings.Trim(strings.TrimSpace(name), `"'`) == key {
			return i + 1
		}
	}
	return 1
}
