package cmd

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
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
	root := p.newRoot()
	header := doc.GenManHeader{Section: manSection, Source: strings.TrimSpace("tasard " + process.Version()), Manual: "tasard", Date: new(p.builtAt())}
	if directory == "" {
		text, err := manPage(root, header)
		if err == nil {
			_, err = p.Stdout.Write(text)
		}
		return err
	}
	if err := os.MkdirAll(directory, manDirMode); err != nil {
		return exit.Errorf(exit.CannotWrite, "%w", err)
	}
	return manPages(root, header, directory)
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
func manPages(cmd *cobra.Command, header doc.GenManHeader, directory string) error {
	text, err := manPage(cmd, header)
	if err != nil {
		return err
	}
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + "." + header.Section
	if err := os.WriteFile(filepath.Join(directory, name), text, manFileMode); err != nil {
		if node.IsWriteRefused(err) {
			return exit.Errorf(exit.CannotWrite, "%w", err)
		}
		return fmt.Errorf("write manual page: %w", err)
	}
	for _, child := range cmd.Commands() {
		if !child.IsAvailableCommand() {
			continue
		}
		if err := manPages(child, header, directory); err != nil {
			return err
		}
	}
	return nil
}

// manPage returns the manual page of a command. cobra changes header, so manPage gets a copy.
func manPage(cmd *cobra.Command, header doc.GenManHeader) ([]byte, error) {
	cmd.DisableAutoGenTag = true
	cmd.InitDefaultHelpFlag()
	if !cmd.HasParent() {
		cmd.Long += manTopics()
	}
	cmd.Long = manText(cmd.Long)
	var page bytes.Buffer
	if err := doc.GenMan(cmd, &header, &page); err != nil {
		return nil, fmt.Errorf("make the manual page of %s: %w", cmd.CommandPath(), err)
	}
	return page.Bytes(), nil
}

// manText converts a help text for cobra's generator, which expects Markdown. Indented lines become literal blocks;
// elsewhere special characters are escaped.
func manText(help string) string {
	escaper := strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "<", `\<`, "`", "\\`", "[", `\[`)
	var text strings.Builder
	table := false
	for line := range strings.SplitSeq(help, "\n") {
		indented := strings.HasPrefix(line, "  ")
		if indented != table {
			text.WriteString("\n")
		}
		if table = indented; indented {
			text.WriteString("  " + line + "\n")
			continue
		}
		text.WriteString(escaper.Replace(line) + "\n")
	}
	return text.String()
}
