package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/engine"
)

// A setting is a flag that an environment variable or a line of the configuration file can set too. A command uses only
// the settings that it declares. All commands share the variables and the file, so every command refuses unknown names
// and bad values of any setting.
const (
	variablePrefix    = "TASARD_"
	settingAnnotation = "setting" // annotation of a flag that is a setting
	groupAnnotation   = "group"   // annotation with the heading of a flag in the help of serve
)

// MarkSettings marks all flags declared so far as settings, and adds --config. Flags that are not settings, such as
// --yes, must be declared afterwards.
func MarkSettings(flags *pflag.FlagSet) {
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Annotations == nil {
			flag.Annotations = map[string][]string{}
		}
		flag.Annotations[settingAnnotation] = nil
	})
	flags.String("config", "", "TOML `FILE` with settings, named like the flags")
	flags.Lookup("config").Annotations = map[string][]string{groupAnnotation: {CommonGroup}}
}

// IsSetting reports whether a flag is a setting. flag may be nil.
func IsSetting(flag *pflag.Flag) bool {
	if flag == nil {
		return false
	}
	_, ok := flag.Annotations[settingAnnotation]
	return ok
}

// Group returns the heading of a flag in the help of a command with many flags, or "".
func Group(flag *pflag.Flag) string {
	return strings.Join(flag.Annotations[groupAnnotation], "")
}

// collectSettings adds the settings of all commands below parent to the map settings, by name. For a setting of several
// commands, it adds the first command's flag.
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

// Resolve sets the flags missing on the command line from environment variables and the configuration file. It returns
// all errors, joined.
func Resolve(cmd *cobra.Command, environ []string) error {
	known := Names(cmd.Root())
	variables, err := readVariables(environ, known)
	problems := []error{err, apply(cmd, variables)}
	path := variables["config"].Text
	if config := cmd.Flags().Lookup("config"); config != nil {
		path = cmp.Or(config.Value.String(), path)
	}
	if path != "" {
		var lines map[string]Given
		text, err := readConfig(path)
		if err != nil {
			err = exit.Errorf(exit.BadData, "read configuration: %w", err)
		} else {
			lines, err = ParseConfig(path, text, known)
		}
		problems = append(problems, err, apply(cmd, lines))
	}
	return errors.Join(problems...)
}

// configBytesMax is the maximum size of a configuration file.
const configBytesMax = 1 << 20

// readConfig reads a configuration file or named pipe. A device may have no end.
func readConfig(path string) (string, error) {
	file, err := os.Open(path) //nolint:gosec // G304: the operator names it
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // nothing was written to it
	text, err := io.ReadAll(io.LimitReader(file, configBytesMax+1))
	if err == nil && len(text) > configBytesMax {
		err = fmt.Errorf("%s: the file is longer than %d bytes; shorten it", path, configBytesMax)
	}
	return string(text), err
}

// RequireData returns an error if the command needs a data directory and --data is not set.
func RequireData(cmd *cobra.Command) error {
	if data := cmd.Flags().Lookup("data"); IsSetting(data) && !data.Changed {
		return exit.Errorf(exit.Usage, "no data directory; give --data DIR, TASARD_DATA or data in the configuration file")
	}
	return nil
}

// Given is a setting's value from a variable or the configuration file.
type Given struct {
	Text   string // as for the flag; list elements are separated by commas
	Origin string // the variable, or the line of the file, for errors
	Line   int    // line number in the file, from 1
}

// apply sets the unset flags of cmd to the given values. It returns the errors of all bad values. It also checks other
// commands' settings, with the flags of those commands, so that every command refuses the same values.
func apply(cmd *cobra.Command, values map[string]Given) error {
	var problems []error
	others := collectSettings(cmd.Root(), map[string]*pflag.Flag{})
	for _, name := range slices.Sorted(maps.Keys(values)) {
		flag, value := cmd.Flags().Lookup(name), values[name]
		if !IsSetting(flag) {
			flag = others[name]
		}
		if flag == nil || flag.Changed { // nil for config
			continue
		}
		if err := flag.Value.Set(value.Text); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", value.Origin, err))
			continue
		}
		flag.Changed = true
	}
	return badSettings(problems)
}

func badSettings(problems []error) error {
	if len(problems) == 0 {
		return nil
	}
	return exit.Wrap(exit.BadData, errors.Join(problems...))
}

// readVariables returns the values of the TASARD_ variables by setting. An empty one counts as not set, because compose
// files pass variables without a value. An unknown variable is an error, unless an orchestrator has set it.
func readVariables(environ, known []string) (map[string]Given, error) {
	settings, names := map[string]string{}, []string{}
	for _, setting := range append(slices.Clone(known), "config") {
		settings[Variable(setting)] = setting
		names = append(names, Variable(setting))
	}
	values := map[string]Given{}
	var problems []error
	for _, entry := range environ {
		name, text, _ := strings.Cut(entry, "=")
		switch setting, isKnown := settings[name]; {
		case !strings.HasPrefix(name, variablePrefix):
		case isKnown && text != "":
			values[setting] = Given{Text: text, Origin: name}
		case !isKnown && !isServiceLink(name, text):
			problems = append(problems, fmt.Errorf("%s: unknown variable%s", name, DidYouMean(name, names)))
		}
	}
	return values, badSettings(problems)
}

// serviceLink matches variables that Kubernetes and Docker set in every container for a service named tasard..., such
// as TASARD_SERVICE_HOST and TASARD_METRICS_PORT_9090_TCP_PROTO.
var serviceLink = regexp.MustCompile(`^TASARD_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:ADDR|PORT|PROTO))?|ENV_\w+)$`)

func isServiceLink(name, text string) bool {
	isAddress := strings.HasPrefix(text, "tcp://") || strings.HasPrefix(text, "udp://") || strings.HasPrefix(text, "sctp://")
	return serviceLink.MatchString(name) || strings.HasSuffix(name, "_PORT") && isAddress || strings.HasSuffix(name, "_NAME") && strings.HasPrefix(text, "/")
}

// DidYouMean suggests the known word nearest to word, or returns "" if none is near.
func DidYouMean(word string, known []string) string {
	near, distanceMin := "", len(strings.TrimPrefix(word, variablePrefix))/3+2
	for _, candidate := range known {
		if d := engine.EditDistance(word, candidate); d < distanceMin {
			near, distanceMin = candidate, d
		}
	}
	if near == "" {
		return ""
	}
	return " (did you mean " + near + "?)"
}

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
