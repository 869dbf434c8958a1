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
	return command.Row{
		Use:   "config",
		Short: "Look at the settings of serve",
		Long: `config shows and checks what tasard serve would run with: its flags, the TASARD_ variables and the configuration file. Give
it the flags that serve is given. It touches neither the data directory nor a running node.`,
		Example: `  tasard config show --config tasard.toml
  tasard config check --config tasard.toml`,
		Below: []*cobra.Command{p.newConfigShow(), p.newConfigCheck()},
	}.Command(p.Process)
}

func (p *commands) newConfigShow() (cmd *cobra.Command) {
	o, format := setting.DefaultServe(), "text"
	cmd = command.Row{
		Use:   "show",
		Short: "Print every setting of serve and where it comes from",
		Long: `show prints every setting of serve, its value, and which flag, variable or line of the configuration file it comes from.
Secrets are never settings, but the names of files that hold them: those are shown, and not read. A password within an
address is left out. As TOML the output is a configuration file again, with what is not set as remarks.`,
		Example: `  tasard config show --config tasard.toml
  TASARD_LISTEN=:8080 tasard config show --format toml`,
		Settings: func(flags *pflag.FlagSet) { setting.AddServe(flags, o) },
		Flags: func(flags *pflag.FlagSet) {
			flags.Var(setting.Word(&format, "text", "toml", "json"), "format", "print a table, a configuration file or JSON")
		},
		Run:   func(context.Context, []string) error { return printSettings(p.Stdout, settingsOf(cmd.Flags()), format) },
		Alone: true,
	}.Command(p.Process)
	return cmd
}

func (p *commands) newConfigCheck() *cobra.Command {
	o := setting.DefaultServe()
	cmd := command.Row{
		Use:   "check --data DIR",
		Short: "Check everything that serve checks before it starts",
		Long: `check looks for all that would keep tasard serve from starting, as far as that can be told without the data directory: the
values, the files that they name, definitions, catalogue, certificate and key, secrets and who may read them, what goes
together, whether the address is one of this machine. It prints every problem, one a line, with exit code 78, or says that
there is none.`,
		Example:  "  tasard config check --config /etc/tasard/tasard.toml",
		Settings: func(flags *pflag.FlagSet) { setting.AddServe(flags, o) },
	}.Command(p.Process)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		problems := []error{setting.Settle(cmd, p.Environ), setting.NeedData(cmd)}
		if problem := errors.Join(append(problems, setting.CheckServe(p.Process, o))...); problem != nil {
			return exit.Wrap(exit.BadData, problem)
		}
		terminal.Say(p.Stdout, "The configuration is good: %s set, the others have their defaults.\n", terminal.Counted(countSet(cmd.Flags()), "setting"))
		return nil
	}
	return cmd
}

// A shown setting is one of serve as it is in force.
type shownSetting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	From  string `json:"from"` // a flag, a variable, FILE:LINE, or default
	Set   bool   `json:"set"`

	redacted bool // a password was left out
}

// settingsOf are the settings of a command by name, with where they come from.
func settingsOf(flags *pflag.FlagSet) []shownSetting {
	var all []shownSetting
	flags.VisitAll(func(flag *pflag.Flag) {
		if !setting.Marked(flag) {
			return
		}
		value := flag.Value.String()
		one := shownSetting{Name: flag.Name, Value: withoutPassword(value), From: "default", Set: flag.Changed}
		one.redacted = one.Value != value
		if flag.Changed {
			one.From = "--" + flag.Name
		}
		if origin := flag.Annotations[setting.OriginMark]; len(origin) > 0 {
			one.From = strings.TrimSuffix(origin[0], ": "+flag.Name)
		}
		all = append(all, one)
	})
	return all
}

func countSet(flags *pflag.FlagSet) (count int) {
	for _, one := range settingsOf(flags) {
		if one.Set {
			count++
		}
	}
	return count
}

// withoutPassword leaves out who logs in, where a value is an address that says it.
func withoutPassword(text string) string {
	address, err := url.Parse(text)
	if err != nil || address.User == nil {
		return text
	}
	address.User = url.User("REDACTED")
	return address.String()
}

func printSettings(out io.Writer, settings []shownSetting, format string) error {
	switch format {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(map[string]any{"settings": settings})
	case "toml":
		return printConfig(out, settings)
	}
	table := terminal.Table(out, "NAME\tVALUE\tFROM\n")
	for _, one := range settings {
		terminal.Say(table, "%s\t%s\t%s\n", one.Name, terminal.Printable(one.Value), terminal.Printable(one.From))
	}
	return table.Flush()
}

// printConfig prints a configuration file. What has no value, and what had its password taken out, is a remark.
func printConfig(out io.Writer, settings []shownSetting) error {
	for _, one := range settings {
		var value any = one.Value
		if number, err := strconv.ParseInt(one.Value, 10, 64); err == nil {
			value = number
		}
		if one.Value == "true" || one.Value == "false" {
			value = one.Value == "true"
		}
		var line bytes.Buffer
		if err := toml.NewEncoder(&line).Encode(map[string]any{one.Name: value}); err != nil {
			return fmt.Errorf("write %s: %w", one.Name, err)
		}
		remark := ""
		if one.Value == "" || one.redacted {
			remark = "# "
		}
		terminal.Say(out, "%s%s  # %s\n", remark, bytes.TrimSpace(line.Bytes()), terminal.Printable(one.From))
	}
	return nil
}
