package cmd

import (
	"cmp"
	"context"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/wal"
)

// topics returns the help texts without a command: tasard help TOPIC. Cobra treats commands that can't run as topics.
func topics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "settings", Short: "Flags, variables and the configuration file", Long: `Settings can be flags, environment variables or lines of a TOML file:

  --log-format json
  TASARD_LOG_FORMAT=json
  log-format = "json"      in the file of --config or TASARD_CONFIG

A flag wins over a variable, a variable over the file. Variables and file are the same for all commands: each command uses
the settings that it has, and every command refuses unknown names and bad values. Secrets are never settings; settings name
the files that hold them. An empty variable counts as not set; so do the variables that Kubernetes and Docker set for a
service named tasard, such as TASARD_SERVICE_HOST.`},
		{Use: "exit-codes", Short: "Exit codes of all commands", Long: exit.Help},
		{Use: "signals", Short: "Signals of a running node", Long: `SIGINT and SIGTERM stop a node in order: requests in flight are answered, accepted changes are on disk. With --drain-delay it
keeps answering for that time, while /readyz says 503 and every answer closes its connection. A second signal kills the
process; no acknowledged change is lost.

SIGHUP reads the certificates for callers and for other nodes with their keys again. On any error nothing changes, and the
error is logged. Everything else is read at a start.

A service manager is notified through NOTIFY_SOCKET (Type=notify-reload, WatchdogSec).`},
		{Use: "quotas", Short: "Quotas, leases and keys", Long: `Every account, and every client address without a key, has a quota of a day (--quota-day), which ends at midnight in Santo
Domingo, and of any 60 seconds (--quota-minute). All keys of an account share its quota. An account can have limits of its
own: tasard admin accounts limit.

The node writes requests of a day's quota to its log in leases (--lease). A crash costs an account at most one lease, and
never admits a request above the quota. With --lease 1 every request is durable before it is answered.

Users get a key with a login code by e-mail, at /account. tasard admin keys-required announces the day on which anonymous
access ends.`},
	}
}

// newHelp returns the command help. It prints the help of a command or of a topic.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command | topic]",
		Short: "Explain a command or a topic",
		Long:  "help explains a command, as --help after the command does, or a topic, such as settings.",
		Example: `  tasard help log repair
  tasard help settings`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := unknownCommand(cmd.Root(), args); err != nil {
				return err
			}
			target, _, _ := cmd.Root().Find(args) // unknownCommand has checked args
			target.InitDefaultHelpFlag()
			return target.Help()
		},
	}
}

// groupedFlagsMin is the minimum number of flags for a division into groups in the help of a command.
const groupedFlagsMin = 15

// usage prints the part of a command's help after the description. It works like cobra's own function, but with flags
// in groups.
func usage(cmd *cobra.Command) error {
	out := cmd.OutOrStderr()
	if cmd.IsAdditionalHelpTopicCommand() {
		return nil
	}
	terminal.Fprintf(out, "Usage:\n  %s\n", cmd.UseLine())
	if cmd.HasAvailableSubCommands() {
		terminal.Fprintf(out, "  %s [command]\n", cmd.CommandPath())
	}
	if cmd.HasExample() {
		terminal.Fprintf(out, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		terminal.Fprintf(out, "\nCommands:\n")
		for _, child := range cmd.Commands() {
			if child.IsAvailableCommand() || child.Name() == "help" {
				terminal.Fprintf(out, "  %-*s %s\n", child.NamePadding(), child.Name(), child.Short)
			}
		}
	}
	for _, group := range flagGroups(cmd.LocalFlags()) {
		terminal.Fprintf(out, "\n%s:\n%s", group.title, group.flags.FlagUsages())
	}
	if cmd.HasHelpSubCommands() {
		terminal.Fprintf(out, "\nTopics:\n")
		for _, topic := range cmd.Commands() {
			if topic.IsAdditionalHelpTopicCommand() {
				terminal.Fprintf(out, "  %-*s %s\n", topic.NamePadding(), topic.Name(), topic.Short)
			}
		}
	}
	if cmd.HasAvailableSubCommands() {
		terminal.Fprintf(out, "\n%s --help explains a command.\n", cmd.CommandPath()+" COMMAND")
	}
	return nil
}

// flagGroup is a group of flags with its heading.
type flagGroup struct {
	title string
	flags *pflag.FlagSet
}

// flagGroups divides a command's flags into the groups of their settings. Fewer than groupedFlagsMin flags form one
// group.
func flagGroups(all *pflag.FlagSet) (groups []flagGroup) {
	count := 0
	all.VisitAll(func(*pflag.Flag) { count++ })
	others := all
	if count >= groupedFlagsMin {
		others = newFlagSet()
		all.VisitAll(func(flag *pflag.Flag) {
			title := command.Group(flag)
			if title == "" {
				others.AddFlag(flag)
				return
			}
			i := slices.IndexFunc(groups, func(g flagGroup) bool { return g.title == title })
			if i < 0 {
				i, groups = len(groups), append(groups, flagGroup{title, newFlagSet()})
			}
			groups[i].flags.AddFlag(flag)
		})
	}
	title := "Flags"
	if len(groups) > 0 {
		title = "Other flags"
	}
	if others.HasAvailableFlags() {
		groups = append(groups, flagGroup{title, others})
	}
	return groups
}

func newFlagSet() *pflag.FlagSet {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.SortFlags = false
	return flags
}

const manDirMode = 0o755

func (p *commands) newMan() *cobra.Command {
	var directory string
	return command.Spec{
		Use:   "man",
		Short: "Print the manual page",
		Long: `man prints the manual page of the program. With --dir it writes one page for each command into a directory, which it
creates if needed: tasard.1, tasard-serve.1 and so on.`,
		Example: `  tasard man | man -l -
  tasard man --dir /usr/local/share/man/man1`,
		Flags: func(flags *pflag.FlagSet) {
			flags.Var(command.Path(&directory, "DIR"), "dir", "write the pages of all commands into `DIR`")
		},
		Run: func(context.Context, []string) error { return p.man(directory) },
	}.Command(p.Process)
}

func (p *commands) man(directory string) error {
	root := p.newRoot()
	root.DisableAutoGenTag = true
	header := &doc.GenManHeader{Section: "1", Source: strings.TrimSpace("tasard " + process.Version()), Manual: "tasard"}
	if directory == "" {
		return doc.GenMan(root, header, p.Stdout)
	}
	err := os.MkdirAll(directory, manDirMode)
	if err == nil {
		err = doc.GenManTree(root, header, directory)
	}
	if err != nil {
		return exit.Errorf(exit.CannotWrite, "write the manual pages: %w", err)
	}
	return nil
}

// contractVersion is the version of the /v1 API.
const contractVersion = "1.0.0"

func (p *commands) newVersion() *cobra.Command {
	return command.Spec{
		Use:   "version",
		Short: "Print the versions of program, contract and log",
		Long:  "version prints the version of the program and those of the HTTP contract and the log format that it supports.",
		Example: `  tasard version
  tasard --version`,
		Run: p.version,
	}.Command(p.Process)
}

func (p *commands) version(context.Context, []string) error {
	build, _ := debug.ReadBuildInfo()
	printVersion(p.Stdout, build)
	return nil
}

func printVersion(out io.Writer, build *debug.BuildInfo) {
	version, commit := "(unknown)", cmp.Or(process.Commit(build), "(unknown)")
	if build != nil {
		version = build.Main.Version
	}
	terminal.Fprintf(out, "tasard    %s\ncommit    %s\ngo        %s %s/%s\ncontract  /v1, %s\nlog       format %d\n",
		version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH, contractVersion, wal.FormatVersion)
}
