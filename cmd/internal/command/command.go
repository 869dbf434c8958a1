package command

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/terminal"
)

// Spec describes a command.
type Spec struct {
	Use, Short, Long, Example string

	Args     cobra.PositionalArgs // checks the arguments; nil allows none
	Settings func(*pflag.FlagSet) // declares flags that a variable or the configuration file can set too
	Flags    func(*pflag.FlagSet) // declares flags for the command line only, such as --yes

	// Run is called when all flags have their checked values, also from variables and the configuration file. A command
	// without Run is a group of commands and prints its help.
	Run          func(ctx context.Context, args []string) error
	DataOptional bool             // the command also works without --data
	Subcommands  []*cobra.Command // only for a group
}

// Command returns the cobra command of s.
func (s Spec) Command(p *process.Process) *cobra.Command {
	cmd := &cobra.Command{Use: s.Use, Short: s.Short, Long: s.Long, Example: s.Example, Args: s.Args}
	if s.Args == nil {
		cmd.Args = noArguments
	}
	if s.Settings != nil {
		s.Settings(cmd.Flags())
		MarkSettings(cmd.Flags())
	}
	if s.Flags != nil {
		s.Flags(cmd.Flags())
	}
	cmd.Flags().SortFlags = false
	cmd.AddCommand(s.Subcommands...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if s.Run == nil {
			return cmd.Help()
		}
		if err := Resolve(cmd, p.Environ); err != nil {
			return err
		}
		if err := RequireData(cmd); err != nil && !s.DataOptional {
			return err
		}
		return s.Run(cmd.Context(), args)
	}
	return cmd
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return exit.Errorf(exit.Usage, "unexpected argument %q; %s --help shows the flags", args[0], cmd.CommandPath())
}

// ExactArgs returns a function that checks the number of arguments. noun describes the expected ones in the error, such
// as "one backup".
func ExactArgs(count int, noun string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == count {
			return nil
		}
		return exit.Errorf(exit.Usage, "want %s, found %s", noun, terminal.Plural(len(args), "argument"))
	}
}
