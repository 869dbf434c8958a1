package cmd

import (
	"context"

	"github.com/spf13/cobra"
)

// noArguments refuses what is neither a command nor a flag.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fail(exitUsage, "%s takes no argument, found %q; %s --help shows its flags", cmd.CommandPath(), args[0], cmd.CommandPath())
}

// settled wraps the work of a command that has settings: they are complete when it begins.
func (p *process) settled(work func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := settle(cmd, p.environ); err != nil {
			return err
		}
		if err := needData(cmd); err != nil {
			return err
		}
		return work(cmd.Context(), args)
	}
}

// settledAlone is settled for a command that needs no data directory.
func (p *process) settledAlone(cmd *cobra.Command, work func(ctx context.Context, args []string) error) {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := settle(cmd, p.environ); err != nil {
			return err
		}
		return work(cmd.Context(), args)
	}
}
