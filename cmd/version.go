package cmd

import (
	"cmp"
	"context"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/wal"
)

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
