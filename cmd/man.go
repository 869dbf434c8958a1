package cmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/setting"
	"github.com/tasard/tasard/node"
)

const (
	manSection  = "1"
	manDirMode  = 0o755
	manFileMode = 0o644
)

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
			flags.Var(setting.Path(&directory, "DIR"), "dir", "write the pages of all commands into `DIR`")
		},
		Run: func(context.Context, []string) error { return p.man(directory) },
	}.Command(p.Process)
}

func (p *commands) man(directory string) error {
	root, builtAt := p.newRoot(), p.builtAt()
	if directory == "" {
		_, err := io.WriteString(p.Stdout, manPage(root, builtAt))
		return err
	}
	if err := os.MkdirAll(directory, manDirMode); err != nil {
		return exit.Errorf(exit.CannotWrite, "%w", err)
	}
	return manPages(root, builtAt, directory)
}

// builtAt returns the time of the commit from which the program was built: the same commit then gives the same pages.
// If that time is unknown, builtAt returns the current time.
func (p *commands) builtAt() time.Time {
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range build.Settings {
			if commitTime, err := time.Parse(time.RFC3339, setting.Value); err == nil && setting.Key == "vcs.time" {
				return commitTime
			}
		}
	}
	return p.Clock()
}

// manPages writes the manual pages of a command and its subcommands into a directory.
func manPages(cmd *cobra.Command, builtAt time.Time, directory string) error {
	path := filepath.Join(directory, manName(cmd)+"."+manSection)
	if err := os.WriteFile(path, []byte(manPage(cmd, builtAt)), manFileMode); err != nil {
		if node.IsWriteRefused(err) {
			return exit.Errorf(exit.CannotWrite, "%w", err)
		}
		return fmt.Errorf("write manual page: %w", err)
	}
	for _, child := range cmd.Commands() {
		if !child.IsAvailableCommand() {
			continue
		}
		if err := manPages(child, builtAt, directory); err != nil {
			return err
		}
	}
	return nil
}

func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage returns the manual page of a command, in the macros of man(7).
func manPage(cmd *cobra.Command, builtAt time.Time) string {
	cmd.InitDefaultHelpFlag()
	var page strings.Builder
	fmt.Fprintf(&page, ".TH \"%s\" \"%s\" \"%s\" \"%s\" \"tasard\"\n.nh\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.B %s\n.SH DESCRIPTION\n%s",
		strings.ToUpper(manName(cmd)), manSection, builtAt.Format("Jan 2006"), strings.TrimSpace("tasard "+process.Version()),
		manName(cmd), roff(cmd.Short), roff(cmd.UseLine()), manText(cmd.Long))
	for _, group := range flagGroups(cmd.LocalFlags()) {
		fmt.Fprintf(&page, ".SH %s\n", strings.ToUpper(group.title))
		group.flags.VisitAll(func(flag *pflag.Flag) {
			kind, usage := pflag.UnquoteUsage(flag)
			if flag.DefValue != "" && flag.DefValue != "false" {
				usage += fmt.Sprintf(" (default %s)", flag.DefValue)
			}
			names := "--" + flag.Name
			if flag.Shorthand != "" {
				names = "-" + flag.Shorthand + ", " + names
			}
			fmt.Fprintf(&page, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(names+" "+kind)), roff(usage))
		})
	}
	if cmd.HasExample() {
		fmt.Fprintf(&page, ".SH EXAMPLE\n%s", manText(cmd.Example))
	}
	if !cmd.HasParent() {
		for _, t := range topics() {
			fmt.Fprintf(&page, ".SH %s\n%s", strings.ToUpper(t.name), manText(t.text))
		}
	}
	var others []string
	for _, other := range append([]*cobra.Command{cmd.Parent()}, cmd.Commands()...) {
		if other != nil && (other == cmd.Parent() || other.IsAvailableCommand()) {
			others = append(others, `\fB`+roff(manName(other))+`\fP(`+manSection+")")
		}
	}
	fmt.Fprintf(&page, ".SH SEE ALSO\n%s\n", strings.Join(others, ",\n"))
	return page.String()
}

// manText returns a help text for a manual page. Indented lines become literal blocks.
func manText(help string) string {
	var text strings.Builder
	literal := false
	for line := range strings.SplitSeq(help, "\n") {
		if indented := strings.HasPrefix(line, "  "); indented != literal {
			literal = indented
			text.WriteString(map[bool]string{true: ".EX\n", false: ".EE\n"}[literal])
		}
		if line == "" {
			text.WriteString(".PP\n")
			continue
		}
		text.WriteString(roff(line) + "\n")
	}
	if literal {
		text.WriteString(".EE\n")
	}
	return text.String()
}

// roff escapes the characters of a line that have a meaning in a manual page.
func roff(line string) string {
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		line = `\&` + line
	}
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", "\\`", "^", `\(ha`, "~", `\(ti`).Replace(line)
}
