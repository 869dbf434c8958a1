package cmd

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
)

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
