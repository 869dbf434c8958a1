package command

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/setting"
	"github.com/tasard/tasard/cmd/internal/terminal"
)

// Spec describes a command: its help, flags and function.
type Spec struct {
	Use, Short, Long, Example string

	Args     cobra.PositionalArgs // checks its arguments; nil: it takes none
	Settings func(*pflag.FlagSet) // declares flags that are also settings
	Flags    func(*pflag.FlagSet) // declares flags that are not settings, such as --yes

	// Run does the work, with all settings resolved and checked. Nil: the command is a group, and prints its help.
	Run          func(ctx context.Context, args []string) error
	DataOptional bool             // --data may be missing
	Subcommands  []*cobra.Command // of a group
}

// Command returns the cobra command for a process.
func (r Spec) Command(p *process.Process) *cobra.Command {
	cmd := &cobra.Command{Use: r.Use, Short: r.Short, Long: r.Long, Example: r.Example, Args: r.Args}
	if r.Args == nil {
		cmd.Args = noArguments
	}
	if r.Settings != nil {
		r.Settings(cmd.Flags())
		setting.MarkSettings(cmd.Flags())
	}
	if r.Flags != nil {
		r.Flags(cmd.Flags())
	}
	cmd.Flags().SortFlags = false
	cmd.AddCommand(r.Subcommands...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if r.Run == nil {
			return cmd.Help()
		}
		if err := setting.Resolve(cmd, p.Environ); err != nil {
			return err
		}
		if err := setting.RequireData(cmd); err != nil && !r.DataOptional {
			return err
		}
		return r.Run(cmd.Context(), args)
	}
	return cmd
}

// noArguments refuses arguments.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return exit.Errorf(exit.Usage, "unexpected argument %q; %s --help shows the flags", args[0], cmd.CommandPath())
}

// ExactArgs wants count arguments; what describes them.
func ExactArgs(count int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == count {
			return nil
		}
		return exit.Errorf(exit.Usage, "want %s, found %s", what, terminal.Plural(len(args), "argument"))
	}
}
