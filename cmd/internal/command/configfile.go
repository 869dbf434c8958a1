package command

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/tasard/tasard/cmd/internal/exit"
)

const configBytesMax = 1 << 20

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
		value, isValue, isList := configValue(keys[key])
		switch {
		case !slices.Contains(known, key):
			problems = append(problems, fmt.Errorf("%s:%d: unknown key %q%s", path, number, key, DidYouMean(key, known)))
		case !isValue:
			problems = append(problems, fmt.Errorf("%s:%d: %s: want a text, a whole number, true or false, or a list of texts", path, number, key))
		case isList && value == "": // an empty list sets nothing
		default:
			lines[key] = Given{Text: value, Origin: fmt.Sprintf("%s:%d: %s", path, number, key), Line: number, isList: isList}
		}
	}
	return lines, badSettings(problems)
}

func readConfigText(path string) (string, error) {
	file, err := os.Open(path) //nolint:gosec // G304: the operator names it
	if err != nil {
		return "", exit.Errorf(exit.BadData, "read configuration: %w", err)
	}
	defer func() { _ = file.Close() }() // nothing was written to it
	text, err := io.ReadAll(io.LimitReader(file, configBytesMax+1))
	switch {
	case err != nil:
		return "", exit.Errorf(exit.BadData, "read configuration: %w", err)
	case len(text) > configBytesMax:
		return "", exit.Errorf(exit.BadData, "%s: a configuration file has at most %d bytes", path, configBytesMax)
	}
	return string(text), nil
}

// configValue returns a value of the configuration file as text for the flag. It returns false for dates, tables and
// fractions, because no flag accepts them.
func configValue(value any) (text string, isValue, isList bool) {
	switch v := value.(type) {
	case string:
		return v, true, false
	case int64:
		return strconv.FormatInt(v, 10), true, false
	case bool:
		return strconv.FormatBool(v), true, false
	case []any:
		var texts []string
		for _, element := range v {
			text, isText := element.(string)
			if !isText {
				return "", false, true
			}
			texts = append(texts, text)
		}
		return strings.Join(texts, ","), true, true
	}
	return "", false, false
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
