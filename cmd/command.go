package cmd

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// process is what a command has of the world.
type process struct {
	name    string   // how the program was called, "" = tasard
	args    []string // without the program's name
	environ []string // NAME=value
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
	clock   func() time.Time
	seed    func() uint64 // chance that nobody can foresee
	random  io.Reader     // the same for secrets; safe for concurrent use

	// Where institutions are found. nil = the network, and the authorities of the system; the demo and tests have their own.
	dial  func(ctx context.Context, network, address string) (net.Conn, error)
	roots *x509.CertPool

	started func()       // is called when a node has read its log; nil = nothing
	errors  *slog.Logger // where the last word goes when logs are JSON; nil = a plain line
}

// called is how to call the program again in a shell that does as this one does.
func (p *process) called() string {
	if p.name == "" || strings.ContainsFunc(p.name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("./_-+", r)
	}) {
		return "tasard"
	}
	return p.name
}

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

// report is the last word on an error: one line for each problem.
func (p *process) report(err error) {
	if err == nil {
		return
	}
	if p.errors != nil {
		p.errors.Error(err.Error(), "exitCode", exitCode(err))
		return
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(err.Error(), "\n"), "\n") {
		say(p.stderr, "tasard: %s\n", line)
	}
}

// variable is the value of a variable of the environment, "" when there is none.
func (p *process) variable(name string) string {
	for _, entry := range p.environ {
		if text, found := strings.CutPrefix(entry, name+"="); found {
			return text
		}
	}
	return ""
}

// output remembers the first error, so that a command can write line by line and be judged at the end.
type output struct {
	to     io.Writer
	mu     sync.Mutex // one text at a time
	failed error
}

// Write writes until something fails.
func (o *output) Write(bytes []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed != nil {
		return 0, o.failed
	}
	n, err := o.to.Write(bytes)
	o.failed = err
	return n, err
}

// failure is the first error.
func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed
}

// say writes for people. The output remembers a failure of stdout; of one of stderr there is nobody left to tell.
func say(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }

// logger is the command's log, on stderr. When it is JSON, the last word is a line of it.
func (p *process) logger(o logOptions) *slog.Logger {
	logger := newLogger(p.stderr, o)
	if _, text := logger.Handler().(*lineHandler); !text {
		p.errors = logger
	}
	return logger
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

// noArguments refuses what is neither a command nor a flag.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fail(exitUsage, "%s takes no argument, found %q; %s --help shows its flags", cmd.CommandPath(), args[0], cmd.CommandPath())
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
