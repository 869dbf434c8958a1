package setting

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/engine"
)

// A setting is a flag that an environment variable or a line of the configuration file can set too. Each command uses
// only those settings that it declares. But every command refuses unknown names and bad values of any setting, because
// all commands share the variables and the file.
const (
	variablePrefix    = "TASARD_"
	configVariable    = "TASARD_CONFIG"
	configBytesMax    = 1 << 20
	settingAnnotation = "setting" // annotation of a flag that is a setting
	OriginAnnotation  = "origin"  // annotation of a flag with the variable or line that has set it
)

// MarkSettings marks all flags declared so far as settings, and adds --config. Flags that are not settings, such as
// --yes, must be declared afterwards.
func MarkSettings(flags *pflag.FlagSet) {
	flags.VisitAll(func(flag *pflag.Flag) {
		flag.Annotations = map[string][]string{settingAnnotation: nil}
	})
	flags.String("config", "", "TOML `FILE` with settings, named like the flags")
}

// IsSetting reports whether a flag is a setting. flag may be nil.
func IsSetting(flag *pflag.Flag) bool {
	if flag == nil {
		return false
	}
	_, ok := flag.Annotations[settingAnnotation]
	return ok
}

// collectSettings adds the settings of all commands below parent to the map settings, whose keys are their names. If
// several commands have the same setting, it adds the flag of the first of these commands.
func collectSettings(parent *cobra.Command, settings map[string]*pflag.Flag) map[string]*pflag.Flag {
	for _, command := range parent.Commands() {
		command.Flags().VisitAll(func(flag *pflag.Flag) {
			if IsSetting(flag) && settings[flag.Name] == nil {
				settings[flag.Name] = flag
			}
		})
		collectSettings(command, settings)
	}
	return settings
}

// Variable returns the name of the environment variable for a flag.
func Variable(flag string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Names returns the sorted names of the settings of all commands.
func Names(root *cobra.Command) []string {
	return slices.Sorted(maps.Keys(collectSettings(root, map[string]*pflag.Flag{})))
}

// Resolve sets the flags of a command that are not on the command line from environment variables and from the
// configuration file. It returns all errors, joined.
func Resolve(cmd *cobra.Command, environ []string) error {
	known := Names(cmd.Root())
	variables, err := readVariables(environ, known)
	problems := []error{err, apply(cmd, known, func(name string) (string, string, bool) {
		text, ok := variables[Variable(name)]
		return text, Variable(name), ok
	})}
	path := variables[configVariable]
	if config := cmd.Flags().Lookup("config"); config != nil {
		path = cmp.Or(config.Value.String(), path)
	}
	if path != "" {
		problems = append(problems, resolveFromFile(cmd, path, known))
	}
	return errors.Join(problems...)
}

// RequireData returns an error if the command needs a data directory and --data is not set.
func RequireData(cmd *cobra.Command) error {
	if data := cmd.Flags().Lookup("data"); IsSetting(data) && !data.Changed {
		return exit.Errorf(exit.Usage, "no data directory; give --data DIR, TASARD_DATA or data in the configuration file")
	}
	return nil
}

func resolveFromFile(cmd *cobra.Command, path string, known []string) error {
	text, err := readConfigText(path)
	if err != nil {
		return err
	}
	file, err := ParseConfig(path, text, known)
	if err != nil {
		return err
	}
	return apply(cmd, known, func(name string) (string, string, bool) {
		line, ok := file[name]
		return line.Text, fmt.Sprintf("%s:%d: %s", path, line.Number, name), ok
	})
}

// apply sets the flags of cmd that have not been set yet to the texts that lookup returns. It returns the errors of all
// bad values. Settings that only other commands have are checked too, with the flags of those commands, so that every
// command refuses the same values.
func apply(cmd *cobra.Command, known []string, lookup func(name string) (text, origin string, ok bool)) error {
	var problems []error
	others := collectSettings(cmd.Root(), map[string]*pflag.Flag{})
	for _, name := range known {
		flag := cmd.Flags().Lookup(name)
		if !IsSetting(flag) {
			flag = others[name]
		}
		text, origin, ok := lookup(name)
		if flag.Changed || !ok {
			continue
		}
		if err := flag.Value.Set(text); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", origin, err))
			continue
		}
		flag.Changed = true
		flag.Annotations[OriginAnnotation] = []string{origin}
	}
	return badSettings(problems)
}

func badSettings(problems []error) error {
	if len(problems) == 0 {
		return nil
	}
	return exit.Wrap(exit.BadData, errors.Join(problems...))
}

// readVariables returns the TASARD_ variables by name. An unknown variable is an error.
func readVariables(environ, known []string) (map[string]string, error) {
	names := []string{configVariable}
	for _, setting := range known {
		names = append(names, Variable(setting))
	}
	variables := map[string]string{}
	var problems []error
	for _, entry := range environ {
		name, text, _ := strings.Cut(entry, "=")
		switch {
		case !strings.HasPrefix(name, variablePrefix):
		case slices.Contains(names, name):
			variables[name] = text
		default:
			problems = append(problems, fmt.Errorf("%s: unknown variable%s", name, DidYouMean(name, names)))
		}
	}
	return variables, badSettings(problems)
}

// ConfigLine is the value of a setting in the configuration file.
type ConfigLine struct {
	Text   string // the value, as text for the flag
	Number int    // line number, from 1
}

// ParseConfig parses a configuration file. It returns all errors, joined.
func ParseConfig(path, text string, known []string) (map[string]ConfigLine, error) {
	var keys map[string]any
	if _, err := toml.Decode(text, &keys); err != nil {
		var syntax toml.ParseError
		if errors.As(err, &syntax) {
			return nil, exit.Errorf(exit.BadData, "%s:%d: %s", path, max(1, syntax.Position.Line), syntax.Message)
		}
		return nil, exit.Errorf(exit.BadData, "%s: %w", path, err)
	}
	lines := map[string]ConfigLine{}
	var problems []error
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		number := lineOfKey(text, key)
		value, scalar := configValue(keys[key])
		switch {
		case !slices.Contains(known, key):
			problems = append(problems, fmt.Errorf("%s:%d: unknown key %q%s", path, number, key, DidYouMean(key, known)))
		case !scalar:
			problems = append(problems, fmt.Errorf("%s:%d: %s: want a text, a whole number, true or false", path, number, key))
		default:
			lines[key] = ConfigLine{value, number}
		}
	}
	return lines, badSettings(problems)
}

func readConfigText(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", exit.Errorf(exit.BadData, "%s: no such configuration file", path)
	case err != nil:
		return "", exit.Errorf(exit.BadData, "read configuration: %w", err)
	case info.IsDir():
		return "", exit.Errorf(exit.BadData, "%s: want a configuration file, found a directory", path)
	case info.Size() > configBytesMax:
		return "", exit.Errorf(exit.BadData, "%s: %d bytes; a configuration file has at most %d", path, info.Size(), configBytesMax)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", exit.Errorf(exit.BadData, "read configuration: %w", err)
	}
	return string(text), nil
}

// configValue returns a value of the configuration file as text for the flag. It returns false for dates, lists, tables
// and fractions, because no flag accepts them.
func configValue(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case int64:
		return strconv.FormatInt(v, 10), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
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

// DidYouMean returns a suggestion of the known word that is nearest to word, or "" if none is near.
func DidYouMean(word string, known []string) string {
	nearest, distanceMin := "", len(strings.TrimPrefix(word, variablePrefix))/3+2
	for _, candidate := range known {
		if d := engine.EditDistance(word, candidate); d < distanceMin {
			nearest, distanceMin = candidate, d
		}
	}
	if nearest == "" {
		return ""
	}
	return " (did you mean " + nearest + "?)"
}
