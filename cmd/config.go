package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/setting"
	"github.com/tasard/tasard/cmd/internal/terminal"
)

func (p *commands) newConfig() *cobra.Command {
	return command.Spec{
		Use:   "config",
		Short: "Show and check the settings of serve",
		Long: `config shows and checks the settings with which tasard serve would run: flags, TASARD_ variables and the configuration
file. Give it the flags of serve. It does not touch the data directory or a running node.`,
		Example: `  tasard config show --config tasard.toml
  tasard config check --config tasard.toml`,
		Subcommands: []*cobra.Command{p.newConfigShow(), p.newConfigCheck()},
	}.Command(p.Process)
}

func (p *commands) newConfigShow() (cmd *cobra.Command) {
	o, format := setting.DefaultServe(), "text"
	cmd = command.Spec{
		Use:   "show",
		Short: "Print every setting of serve with its origin",
		Long: `show prints every setting of serve, its value, and the flag, variable or line of the configuration file that sets it.
Secrets are files, which are named but not read. A password in an address is removed. With --format toml the output is
a configuration file; settings without a value are comments.`,
		Example: `  tasard config show --config tasard.toml
  TASARD_LISTEN=:8080 tasard config show --format toml`,
		Settings: func(flags *pflag.FlagSet) { setting.AddServe(flags, o) },
		Flags: func(flags *pflag.FlagSet) {
			flags.Var(setting.Enum(&format, "text", "toml", "json"), "format", "print a table, a configuration file or JSON")
		},
		Run: func(context.Context, []string) error {
			return printSettings(p.Stdout, resolvedSettings(cmd.Flags()), format)
		},
		DataOptional: true,
	}.Command(p.Process)
	return cmd
}

func (p *commands) newConfigCheck() *cobra.Command {
	o := setting.DefaultServe()
	cmd := command.Spec{
		Use:   "check --data DIR",
		Short: "Check everything that serve checks before it starts",
		Long: `check finds everything that would keep tasard serve from starting, without looking at the data directory: values,
named files, definitions, catalogue, certificate and key, secrets and their permissions, contradictions, and whether
the address belongs to this machine. It prints every problem, one a line, and exits with 78, or says that the
configuration is valid.`,
		Example: `  tasard config check --config /etc/tasard/tasard.toml
  tasard config check --data ./data --listen :8080`,
		Settings: func(flags *pflag.FlagSet) { setting.AddServe(flags, o) },
	}.Command(p.Process)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		problems := []error{setting.Resolve(cmd, p.Environ), setting.RequireData(cmd)}
		if problem := errors.Join(append(problems, setting.CheckServe(p.Process, cmd.Flags(), o))...); problem != nil {
			return exit.Wrap(exit.BadData, problem)
		}
		terminal.Fprintf(p.Stdout, "The configuration is valid: %s set, the others have their defaults.\n", terminal.Plural(countSet(cmd.Flags()), "setting"))
		return nil
	}
	return cmd
}

// resolvedSetting is a setting of serve with its value and the origin of the value. A setting is a flag that a variable
// or the configuration file can set too.
type resolvedSetting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	From  string `json:"from"` // origin of the value: a flag, a variable, FILE:LINE, or default
	Set   bool   `json:"set"`  // the value comes from a flag, a variable or the file

	redacted bool // a password was removed from Value
}

// resolvedSettings returns all settings of a command.
func resolvedSettings(flags *pflag.FlagSet) []resolvedSetting {
	var settings []resolvedSetting
	flags.VisitAll(func(flag *pflag.Flag) {
		if !setting.IsSetting(flag) {
			return
		}
		value := flag.Value.String()
		s := resolvedSetting{Name: flag.Name, Value: redactPassword(value), From: "default", Set: flag.Changed}
		s.redacted = s.Value != value
		if flag.Changed {
			s.From = "--" + flag.Name
		}
		if origin := flag.Annotations[setting.OriginAnnotation]; len(origin) > 0 {
			s.From = strings.TrimSuffix(origin[0], ": "+flag.Name)
		}
		settings = append(settings, s)
	})
	return settings
}

func countSet(flags *pflag.FlagSet) (count int) {
	for _, s := range resolvedSettings(flags) {
		if s.Set {
			count++
		}
	}
	return count
}

// redactPassword hides the user and password in a URL.
func redactPassword(text string) string {
	address, err := url.Parse(text)
	if err != nil || address.User == nil {
		return text
	}
	address.User = url.User("REDACTED")
	return address.String()
}

func printSettings(out io.Writer, settings []resolvedSetting, format string) error {
	switch format {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(map[string]any{"settings": settings})
	case "toml":
		return printTOML(out, settings)
	}
	table := terminal.NewTable(out, "NAME\tVALUE\tFROM\n")
	for _, s := range settings {
		terminal.Fprintf(table, "%s\t%s\t%s\n", s.Name, terminal.Sanitize(s.Value), terminal.Sanitize(s.From))
	}
	return table.Flush()
}

// printTOML prints settings as lines of a configuration file. A setting without a value, or with a password that was
// removed, becomes a comment.
func printTOML(out io.Writer, settings []resolvedSetting) error {
	for _, s := range settings {
		var value any = s.Value
		if number, err := strconv.ParseInt(s.Value, 10, 64); err == nil {
			value = number
		}
		if s.Value == "true" || s.Value == "false" {
			value = s.Value == "true"
		}
		var line bytes.Buffer
		if err := toml.NewEncoder(&line).Encode(map[string]any{s.Name: value}); err != nil {
			return fmt.Errorf("write %s: %w", s.Name, err)
		}
		comment := ""
		if s.Value == "" || s.redacted {
			comment = "# "
		}
		terminal.Fprintf(out, "%s%s  # %s\n", comment, bytes.TrimSpace(line.Bytes()), terminal.Sanitize(s.From))
	}
	return nil
}
