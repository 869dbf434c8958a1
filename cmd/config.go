package cmd

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/terminal"
)

func (p *commands) newConfig() *cobra.Command {
	return command.Spec{
		Use:   "config",
		Short: "Check the settings of serve",
		Long: `config checks the settings with which tasard serve would run: flags, TASARD_ variables and the configuration file. Give
it the flags of serve. It does not touch the data directory or a running node.`,
		Example: `  tasard config check --config tasard.toml
  TASARD_LISTEN=:8080 tasard config check --data ./data`,
		Subcommands: []*cobra.Command{p.newConfigCheck()},
	}.Command(p.Process)
}

func (p *commands) newConfigCheck() *cobra.Command {
	o := command.Default()
	cmd := command.Spec{
		Use:   "check --data DIR",
		Short: "Check everything that serve checks before it starts",
		Long: `check finds everything that would keep tasard serve from starting, without looking at the data directory: values,
named files, definitions, catalogue, certificate and key, secrets and their permissions, contradictions, and whether
the address belongs to this machine. It prints every problem, one a line, and exits with 78, or says that the
configuration is valid. Names and values come first: while one of them is wrong, the rest is not checked.`,
		Example: `  tasard config check --config /etc/tasard/tasard.toml
  tasard config check --data ./data --listen :8080`,
		Settings: func(flags *pflag.FlagSet) { command.Add(flags, o) },
	}.Command(p.Process)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		problem := command.Resolve(cmd, p.Environ)
		if problem == nil {
			problem = errors.Join(command.RequireData(cmd), command.CheckServe(p.Process, o))
		}
		if problem != nil {
			return exit.Wrap(exit.BadData, problem)
		}
		terminal.Fprintf(p.Stdout, "The configuration is valid.\n")
		return nil
	}
	return cmd
}
