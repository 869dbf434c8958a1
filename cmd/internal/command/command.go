package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/setting"
)

// NoArguments refuses what is neither a command nor a flag.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return exit.Fail(exit.Usage, "%s takes no argument, found %q; %s --help shows its flags", cmd.CommandPath(), args[0], cmd.CommandPath())
}

// Settled wraps the work of a command that has settings: they are complete when it begins.
func Settled(p *process.Process, work func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := setting.Settle(cmd, p.Environ); err != nil {
			return err
		}
		if err := setting.NeedData(cmd); err != nil {
			return err
		}
		return work(cmd.Context(), args)
	}
}

// SettledAlone is settled for a command that needs no data directory.
func SettledAlone(p *process.Process, cmd *cobra.Command, work func(ctx context.Context, args []string) error) {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := setting.Settle(cmd, p.Environ); err != nil {
			return err
		}
		return work(cmd.Context(), args)
	}
}
