package cmd

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/backup"
	"github.com/tasard/tasard/cmd/doctor"
	"github.com/tasard/tasard/cmd/intake"
	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/cmd/operator"
	"github.com/tasard/tasard/cmd/sources"
)

// commands makes and runs the commands of tasard. Process is their environment: arguments, variables, streams, clock.
type commands struct{ *process.Process }

// run runs the command named in the arguments, and returns the exit code. When ctx ends, the command stops in an
// orderly way.
func (p *commands) run(ctx context.Context) int {
	stdout := &terminal.ErrWriter{W: p.Stdout}
	p.Stdout = stdout
	root := p.newRoot()
	executed, err := root, error(nil)
	if len(p.Args) == 0 || !strings.HasPrefix(p.Args[0], cobra.ShellCompRequestCmd) { // a completion script calls hidden commands
		err = unknownCommand(root, p.Args)
	}
	if err == nil {
		executed, err = root.ExecuteContextC(ctx)
		err = command.Explain(err)
	}
	if writeErr := stdout.Err(); err == nil && writeErr != nil {
		err = exit.Errorf(exit.IOError, "write to standard output: %w", writeErr)
	}
	p.Report(executed.CommandPath(), err)
	p.CloseLog()
	return exit.Code(err)
}

func (p *commands) newRoot() *cobra.Command {
	version := false
	root := command.Spec{
		Use:   "tasard",
		Short: "The Dominican exchange-rate node",
		Long: `tasard is the Dominican exchange-rate node: it collects the rates that Dominican institutions publish for foreign
currency, and serves best rates, conversions, lists and history over HTTP.

tasard help settings, exit-codes, signals and quotas explain more.`,
		Example: `  tasard demo
  tasard serve --data ./data --collect-contact ana@example.com
  tasard sources list --data ./data
  tasard log verify --data ./data`,
		Flags: func(flags *pflag.FlagSet) {
			command.BoolFlag(flags, &version, "version", "print the versions of program, contract and log")
		},
		Run: p.version,
		Subcommands: []*cobra.Command{
			p.newServe(), p.newDemo(), p.newMock(), p.newMCP(), intake.New(p.Process), p.newExport(), sources.New(p.Process), sources.NewDefinitions(p.Process),
			backup.NewLog(p.Process), backup.New(p.Process), backup.NewRestore(p.Process), operator.New(p.Process), operator.NewPing(p.Process),
			p.newConfig(), doctor.New(p.Process), p.newMan(), p.newVersion(),
		},
	}.Command(p.Process)
	printVersion := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if version {
			return printVersion(cmd, args)
		}
		return cmd.Help()
	}
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetArgs(p.Args)
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(newHelp())
	root.SetUsageFunc(usage)
	root.AddCommand(topics()...)
	root.InitDefaultCompletionCmd()
	return root
}

// unknownCommand returns an error if the arguments name no command. Without this check cobra would report an unknown
// flag before the unknown command.
func unknownCommand(root *cobra.Command, args []string) error {
	root.InitDefaultHelpCmd()
	parent, remaining, _ := root.Find(args) // its error is replaced by the one below
	if !parent.HasSubCommands() || len(remaining) == 0 || strings.HasPrefix(remaining[0], "-") {
		return nil
	}
	var names []string
	for _, child := range parent.Commands() {
		names = append(names, child.Name())
	}
	return exit.Errorf(exit.Usage, "unknown command %q%s; %s --help lists the commands",
		parent.CommandPath()+" "+remaining[0], command.DidYouMean(remaining[0], names), parent.CommandPath())
}

// flagError rewrites cobra's errors about flags, and gives them an exit code.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var missing *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown)
	case errors.As(err, &missing):
		return exit.Errorf(exit.Usage, "--%s: no value", missing.GetFlag().Name)
	case errors.As(err, &invalid):
		return exit.Errorf(exit.Usage, "--%s: %w", invalid.GetFlag().Name, invalid.Unwrap())
	}
	return exit.Errorf(exit.Usage, "%w; %s --help shows the flags", err, cmd.CommandPath())
}

func unknownFlag(cmd *cobra.Command, unknown *pflag.NotExistError) error {
	name := "--" + unknown.GetSpecifiedName()
	if group := unknown.GetSpecifiedShortnames(); group != "" {
		name = "-" + group
	}
	known := []string{"--help"}
	cmd.Flags().VisitAll(func(flag *pflag.Flag) { known = append(known, "--"+flag.Name) })
	return exit.Errorf(exit.Usage, "%s: unknown flag%s; %s --help shows the flags", name, command.DidYouMean(name, known), cmd.CommandPath())
}
