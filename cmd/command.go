package cmd

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// run carries out the command that the arguments name and returns the exit code. When ctx ends, commands stop in order.
func (p *process) run(ctx context.Context) int {
	stdout := &output{to: p.stdout}
	p.stdout = stdout
	root := p.newRoot()
	var err error
	if !completes(p.args) {
		err = unknownCommand(root, p.args)
	}
	if err == nil {
		err = inFlags(root.ExecuteContext(ctx))
	}
	if failed := stdout.failure(); err == nil && failed != nil {
		err = fail(exitBroken, "write to standard output: %w", failed)
	}
	p.report(err)
	return exitCode(err)
}

func (p *process) newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "tasard",
		Short: "The Dominican exchange-rate node",
		Long: `tasard is the Dominican exchange-rate node: it collects what institutions publish as their rates for foreign
currency, and answers best rates, conversions, lists and history over HTTP.

Flags, variables and a configuration file say the same things: --log-format json, TASARD_LOG_FORMAT=json and, in the
TOML file that --config or TASARD_CONFIG names, log-format = "json". A flag wins over a variable, a variable over the
file. Unknown ones are errors.

` + exitTable,
		Example: `  tasard demo
  tasard serve --data ./data --collect-contact ana@example.com
  tasard sources list --data ./data
  tasard log verify --data ./data`,
		Args:              noArguments,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	var version bool
	plainSwitch(root.Flags(), &version, "version", "print the versions of program, contract and files")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if version {
			return p.settled(p.version)(cmd, nil)
		}
		return cmd.Help()
	}
	root.SetArgs(p.args)
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(newHelp())
	root.AddCommand(p.newServe(), p.newDemo(), p.newMock(), p.newMCP(), p.newImport(), p.newExport(), p.newSources(), p.newLog(), p.newBackup(), p.newRestore(), p.newAdmin(), p.newPing(), p.newConfig(), p.newDoctor(), p.newCompletion(), p.newMan(), p.newVersion())
	completeAll(root)
	return root
}

// unknownCommand is the error for arguments that name no command. The library would see a wrong flag first.
func unknownCommand(root *cobra.Command, args []string) error {
	root.InitDefaultHelpCmd()
	found, rest, _ := root.Find(args) // its error is the one that is made here, in other words
	if !found.HasSubCommands() || len(rest) == 0 || strings.HasPrefix(rest[0], "-") {
		return nil
	}
	var names []string
	for _, command := range found.Commands() {
		names = append(names, command.Name())
	}
	return fail(exitUsage, "unknown command %q%s; %s --help lists the commands",
		found.CommandPath()+" "+rest[0], didYouMean(rest[0], names), found.CommandPath())
}

// newHelp is the help command of the library with our own error for what it does not know.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:     "help [command]",
		Short:   "Explain a command",
		Long:    "help explains a command, as --help behind the command does.",
		Example: "  tasard help log repair",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := unknownCommand(cmd.Root(), args); err != nil {
				return err
			}
			found, _, _ := cmd.Root().Find(args) // unknownCommand has seen its error
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}

// flagError puts the library's errors about flags into our words.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var missing *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown)
	case errors.As(err, &missing):
		return fail(exitUsage, "--%s: want a value, found nothing", missing.GetFlag().Name)
	case errors.As(err, &invalid):
		return fail(exitUsage, "--%s: %w", invalid.GetFlag().Name, invalid.Unwrap())
	}
	return fail(exitUsage, "%w; %s --help shows the flags", err, cmd.CommandPath())
}

func unknownFlag(cmd *cobra.Command, unknown *pflag.NotExistError) error {
	name := "--" + unknown.GetSpecifiedName()
	if group := unknown.GetSpecifiedShortnames(); group != "" {
		name = "-" + group
	}
	known := []string{"--help"}
	cmd.Flags().VisitAll(func(flag *pflag.Flag) { known = append(known, "--"+flag.Name) })
	return fail(exitUsage, "%s: unknown flag of %s%s; %s --help shows the flags",
		name, cmd.CommandPath(), didYouMean(name, known), cmd.CommandPath())
}
